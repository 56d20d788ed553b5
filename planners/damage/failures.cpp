#include "planners/damage/failures.h"

#include <fmt/format.h>

#include <map>

#include "base/format_units.h"
#include "planners/damage/alike.h"

namespace espalier::planners {
namespace {

std::string node_text(const Node& node) {
  return fmt::format("{}{}", to_string(node.kind), node.is_rank ? " (rank)" : "");
}

/// Failures in order; a further one that is like an earlier one is added to it.
class Groups {
 public:
  void add(std::uint32_t kind, std::string name, const std::string& what, Parts parts) {
    const auto [place, is_new] = index_.emplace(kind, failures_.size());
    if (is_new) failures_.push_back({name, what, std::move(parts), {}});
    failures_[place->second].alike.push_back(std::move(name));
  }
  std::vector<Failure> take() && { return std::move(failures_); }

 private:
  std::map<std::uint32_t, std::size_t> index_;
  std::vector<Failure> failures_;
};

Alike all_different(const Topology& topology, const std::vector<Cable>& cables) {
  Alike alike;
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < topology.node_count(); ++i) alike.of_node.push_back(number++);
  for (std::size_t i = 0; i < cables.size(); ++i) alike.of_cable.push_back(number++);
  return alike;
}

}  // namespace

std::string cable_kind_text(const Topology& topology, const Cable& cable) {
  const Link& link = topology.link(cable.there);
  const char* noun = cable.back.is_none() ? "link" : "cable";
  if (!link.link_class.empty()) return fmt::format("{} {}", link.link_class, noun);
  const std::string rate = format_bandwidth(link.bandwidth());
  const std::string back = cable.back.is_none() ? rate : format_bandwidth(topology.link(cable.back).bandwidth());
  return rate == back ? fmt::format("{} {}", rate, noun) : fmt::format("{} and {} {}", rate, back, noun);
}

std::vector<Failure> single_failures(const Topology& topology, const FailureOptions& options) {
  const std::vector<Cable> cables = find_cables(topology);
  const Alike alike = options.each ? all_different(topology, cables) : find_alike(topology, cables, options.root);
  Groups groups;
  for (std::size_t i = 0; i < cables.size(); ++i) {
    Parts parts{{}, {cables[i].there}};
    if (!cables[i].back.is_none()) parts.links.push_back(cables[i].back);
    groups.add(alike.of_cable[i], cable_name(topology, cables[i]), cable_kind_text(topology, cables[i]),
               std::move(parts));
  }
  for (std::size_t i = 0; i < topology.node_count(); ++i) {
    const Node& node = topology.node(NodeId(i));
    if (node.is_rank && (!options.ranks || topology.rank_of(NodeId(i)) == options.root)) continue;
    groups.add(alike.of_node[i], node.id, node_text(node), Parts{{NodeId(i)}, {}});
  }
  return std::move(groups).take();
}

}  // namespace espalier::planners
