#include "topology/import/draft.h"

#include <algorithm>
#include <array>

namespace espalier {

std::string_view to_string(Medium medium) {
  constexpr std::array<std::string_view, 6> names = {"nvlink", "xgmi", "c2c", "pcie", "smp", "net"};
  return names[static_cast<std::size_t>(medium)];
}

void Draft::warn(std::string_view code, int line, std::string message, std::string help) {
  Diagnostic warning;
  warning.severity = Severity::warning;
  warning.code = code;
  warning.place = {file, line, 0};
  warning.message = std::move(message);
  warning.help = std::move(help);
  warnings.push_back(std::move(warning));
}

std::optional<std::size_t> Draft::find(const DraftNode& like) const {
  const auto is_like = [&](const DraftNode& node) {
    if (node.host != like.host) return false;
    if (!node.bus.empty() && !like.bus.empty()) return node.bus == like.bus && node.kind == like.kind;
    return node.id == like.id;
  };
  const auto found = std::ranges::find_if(nodes, is_like);
  if (found == nodes.end()) return std::nullopt;
  return static_cast<std::size_t>(found - nodes.begin());
}

bool Draft::has(Medium medium) const {
  return std::ranges::any_of(links, [&](const DraftLink& link) { return link.medium == medium; });
}

}  // namespace espalier
