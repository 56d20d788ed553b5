#pragma once

// Tested by: tests/unit/cli/output/output_file_test.cpp

#include <string_view>

namespace espalier::cli {

/// Writes the whole text to a descriptor. Gives 0, or the error number of the write that failed.
int write_all(int descriptor, std::string_view text);

}  // namespace espalier::cli
