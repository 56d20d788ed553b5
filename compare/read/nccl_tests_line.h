#pragma once

// Tested by: tests/unit/compare/read/nccl_tests_test.cpp

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace espalier::compare::nccl_tests {

/// One line without what others put around it.
struct CleanLine {
  std::string text;              ///< Without ANSI codes, launcher prefixes and NCCL's own log.
  bool was_interrupted = false;  ///< NCCL's log began in the middle of it: the rest of a row may follow later.
};

/// Takes ANSI codes, labels of ranks ("0: ", "[1,0]<stdout>:", "node1: ", and "[0]" also within the line) and NCCL's
/// log messages off a line.
CleanLine clean_line(std::string_view line);

/// The words of a line, parted by blanks.
std::vector<std::string_view> split_words(std::string_view line);

/// A number as nccl-tests prints it; nothing for "N/A" and other words.
std::optional<double> parse_decimal(std::string_view word);

/// Whether a word is a reduction as nccl-tests prints it: "sum", ..., or "none".
bool is_operation(std::string_view word);

}  // namespace espalier::compare::nccl_tests
