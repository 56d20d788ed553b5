#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace espalier::scenario {

/// Whether bytes begin as gzip's do.
[[nodiscard]] inline bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

/// What gzip packed: one member or several behind each other. Never holds more than `most` bytes and 64 KiB.
/// Errors: invalid_input where the bytes are torn, damaged or something else; too_large past `most`.
/// Source: RFC 1952.
[[nodiscard]] Result<std::string> unpack_gzip(std::string_view bytes, std::size_t most);

}  // namespace espalier::scenario
