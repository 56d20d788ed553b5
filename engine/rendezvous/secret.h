#pragma once

// Tested by: tests/unit/engine/rendezvous/secret_test.cpp

#include <string>

#include "base/result.h"
#include "engine/rendezvous/environment.h"

namespace espalier::engine::rendezvous {

/// Shortest secret that a job may have, in bytes.
inline constexpr std::size_t shortest_secret = 8;
/// Longest secret that is read from a file, in bytes.
inline constexpr std::size_t longest_secret = 4096;

/// A fresh secret of 256 bits from the operating system, as 64 hexadecimal digits.
Result<std::string> random_secret();

/// The secret in a file, without the newline at its end.
/// Errors: unavailable when it cannot be read; invalid_input when others than its owner may read or write it, when it
/// is no regular file, belongs to another user, or is shorter than `shortest_secret` or longer than `longest_secret`.
Result<std::string> read_secret_file(const std::string& path);

/// The secret that ESPALIER_SECRET holds, or the file that ESPALIER_SECRET_FILE names.
/// Errors: unavailable when neither is set; invalid_input when both are, or as `read_secret_file`.
Result<std::string> find_secret(const Environment& environment);

}  // namespace espalier::engine::rendezvous
