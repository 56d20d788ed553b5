#pragma once

#include <string>
#include <string_view>

namespace espalier {

/// What made a plan, at the end of what it makes: " by ring"; " by-hand" of a name that says "by" itself; nothing of an
/// empty one.
inline std::string by_algorithm(std::string_view name) {
  if (name.empty()) return {};
  return (name.starts_with("by") ? " " : " by ") + std::string(name);
}

}  // namespace espalier
