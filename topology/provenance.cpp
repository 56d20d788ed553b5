#include "topology/provenance.h"

#include <array>

namespace espalier {
namespace {

constexpr std::array<std::string_view, 4> origin_names = {"assumed", "preset", "captured", "measured"};

}  // namespace

std::string_view to_string(Origin origin) { return origin_names[static_cast<std::size_t>(origin)]; }

std::optional<Origin> find_origin(std::string_view name) {
  for (std::size_t i = 0; i < origin_names.size(); ++i) {
    if (origin_names[i] == name) return static_cast<Origin>(i);
  }
  return std::nullopt;
}

}  // namespace espalier
