#pragma once

// Tested by: tests/unit/schedule/timeline/timeline_test.cpp

#include <iosfwd>
#include <string_view>

#include "base/result.h"
#include "schedule/timeline/timeline.h"

namespace espalier {

/// Writes a timeline in the compact form of docs/timeline.md, about a tenth of the Chrome trace, as a stream.
/// Requires: no span that ends before it begins.
/// Errors: unavailable when the stream does not take it all.
Result<void> write_binary_timeline(std::ostream& out, const Timeline& timeline);

/// Reads it back, exactly. `name` stands for the file in messages. Memory goes with what is there, not with what the
/// file claims.
/// Errors: invalid_input when it is another kind of file, is cut off or damaged, or has spans on lanes without a name.
Result<Timeline> read_binary_timeline(std::string_view bytes, std::string_view name);

}  // namespace espalier
