#pragma once

// How often a random test is repeated: a build's tests few times, more where an environment variable asks for it.

#include <cstdint>
#include <cstdlib>

namespace espalier::test {

inline std::int64_t rounds(const char* variable, std::int64_t usual) {
  const char* const asked = std::getenv(variable);
  return asked != nullptr ? std::atoll(asked) : usual;
}

}  // namespace espalier::test
