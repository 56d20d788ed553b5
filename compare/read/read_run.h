#pragma once

// Tested by: tests/unit/compare/read/others_test.cpp

#include <string_view>
#include <variant>

#include "base/result.h"
#include "compare/read/measurements.h"
#include "compare/read/nccl_tests.h"
#include "schedule/timeline/timeline.h"

namespace espalier::compare {

/// Reads an `espalier/results/1` document, of `simulate --json` or `run --json`. Keys that are not known are passed
/// over. Errors: invalid_input with file:line:column; unsupported for another version.
Result<Measurements> read_results(std::string_view text, std::string_view name);

/// What ran, in either form.
using RunFile = std::variant<Timeline, Measurements>;

/// Reads a timeline (Chrome trace or compact binary), a results document, or the text or JSON of nccl-tests; which one
/// it is, is seen from the content. `name` stands for the file in messages.
/// Errors: those of the readers; invalid_input, naming what the file seems to be, when it is none of them; too_large
/// when the durations of a timeline add up to 2^62 ps.
Result<RunFile> read_run(std::string_view text, std::string_view name, const NcclTestsHints& hints);

}  // namespace espalier::compare
