#pragma once

#include <string_view>

namespace espalier::cli {

/// Writes the whole text to a descriptor. Gives 0, or the error number of the write that failed.
int write_all(int descriptor, std::string_view text);

}  // namespace espalier::cli
