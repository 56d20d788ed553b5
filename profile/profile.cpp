#include "profile/profile.h"

#include "base/suggest.h"

namespace espalier::profile {

std::string_view to_string(LinkKind kind) {
  switch (kind) {
    case LinkKind::fabric: return "fabric";
    case LinkKind::pcie: return "pcie";
    case LinkKind::network: return "network";
  }
  return "";
}

std::string_view to_string(Shape shape) {
  switch (shape) {
    case Shape::ring: return "ring";
    case Shape::tree: return "tree";
    case Shape::nvls: return "nvls";
    case Shape::nvls_tree: return "nvls_tree";
    case Shape::p2p: return "p2p";
  }
  return "";
}

Result<Picoseconds> Profile::launch(std::string_view launch_name) const {
  if (launch_name.empty()) return launches.front().second;
  std::vector<std::string_view> names;
  for (const auto& [known, time] : launches) {
    if (known == launch_name) return time;
    names.push_back(known);
  }
  return fail(ErrorCode::invalid_input,
              "profile " + name + " has no launch '" + std::string(launch_name.substr(0, 60)) + "'",
              suggest(launch_name, names));
}

}  // namespace espalier::profile
