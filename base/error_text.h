#pragma once

#include <string>
#include <system_error>

namespace espalier {

/// What an errno means, in words; unlike std::strerror, for any thread.
inline std::string error_text(int number) { return std::generic_category().message(number); }

}  // namespace espalier
