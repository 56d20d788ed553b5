#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace espalier {

/// "1 rank", "0 ranks", "8 ranks": for nouns whose plural is theirs with an s.
inline std::string counted(std::uint64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

}  // namespace espalier
