#pragma once

// Tested by: tests/unit/compare/read/nccl_tests_test.cpp

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "compare/read/measurements.h"

namespace espalier::compare {

/// What is known of a file from outside, for where the file itself does not say.
struct NcclTestsHints {
  std::string collective;  ///< "all_reduce", ...; empty: taken from the file's name, if that has one.
  std::string traffic;     ///< What alltoallv_perf sent, as load_traffic has it; empty: its own pattern.
};

/// Reads what nccl-tests prints, of one or several runs, out-of-place and in-place columns or one of them, of all
/// versions with rows of size, count, type and time. Line prefixes of srun, mpirun and pdsh, ANSI colours and lines of
/// NCCL's own log are passed over, also where the log was printed into the middle of a row. `name` stands for the file.
/// Errors: invalid_input with file:line for a row that cannot be read, and for a text without rows.
/// Cost: linear in the text.
/// Source: nccl-tests, src/common.cu and src/util.cu (the printed table), doc/PERFORMANCE.md (size, algbw, busbw).
Result<Measurements> read_nccl_tests_text(std::string_view text, std::string_view name, const NcclTestsHints& hints);

/// Reads what nccl-tests writes with `-J`. Of the document only sizes, times, checks, the program's name and the number
/// of devices are kept; its `env`, host names and process ids are not.
/// Errors: invalid_input with file:line:column.
/// Source: nccl-tests, src/util.cu (JSON_FILE_VERSION 3).
Result<Measurements> read_nccl_tests_json(std::string_view text, std::string_view name, const NcclTestsHints& hints);

/// The collective that a program of nccl-tests measures: "alltoall_perf" and "/opt/alltoall_perf" are "all_to_all";
/// nothing for any other word.
std::optional<std::string> collective_of_program(std::string_view program);

/// Whether such a program sends unequal blocks: "alltoallv_perf", an all_to_all.
bool sends_unequal_blocks(std::string_view program);

/// The traffic of the rows that such a program wrote, by their runs, as load_traffic has it. Beside rows of other
/// programs they are left out, with a warning. Errors: invalid_input where no number of ranks is known; load_traffic's.
Result<void> give_unequal_blocks(Measurements& measurements, const std::set<std::uint32_t>& runs,
                                 const std::string& traffic);

/// The collective that a file's name mentions: "allreduce-2n.log" is "all_reduce"; empty when there is none.
std::string collective_of_file_name(std::string_view name);

}  // namespace espalier::compare
