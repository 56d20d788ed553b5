#include "sim/critical_path/single_changes.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/check.h"
#include "topology/bundles.h"

namespace espalier::sim {
namespace {

/// What more bandwidth shortens.
constexpr std::array of_bandwidth = {PathUse::moving, PathUse::queueing, PathUse::sharing, PathUse::slowed};

class Suggestions {
 public:
  Suggestions(std::span<const PathTime> path, const Topology& topology)
      : path_(path), topology_(topology), bundles_(topology) {}

  /// Where time went in one of these ways.
  [[nodiscard]] std::vector<std::string> find(std::span<const PathUse> uses) const {
    constexpr std::size_t most = 3;
    std::vector<std::string> names;
    for (const PathTime& share : path_) {
      const bool counts = std::ranges::find(uses, share.use) != uses.end();
      if (counts && std::ranges::find(names, share.where) == names.end() && names.size() < most) {
        names.push_back(share.where);
      }
    }
    return names;
  }

  void change_class(const std::string& name, ChangeKind kind, const std::string& what) {
    SingleChange change{kind, {}, {}, {}};
    for (std::size_t i = 0; i < topology_.link_count(); ++i) {
      if (class_of(topology_.link(LinkId(i))) == name) change.links.emplace_back(i);
    }
    const std::size_t count = change.links.size();
    if (count == 0) return;  // nodes, which have no class
    change.what = what + " " + name + " (" + std::to_string(count) + (count == 1 ? " link)" : " links)");
    changes_.push_back(std::move(change));
  }

  /// A link, with those parallel to it.
  void change_link(LinkId link) {
    const std::size_t bundle = bundles_.bundle_of(link);
    const std::string name = bundle_name(topology_, bundles_, bundle);
    changes_.push_back(
        {ChangeKind::bandwidth, "twice the bandwidth of " + name + " alone", bundles_.strands(bundle), {}});
  }

  /// Every node that is a rank, or every one that is none.
  void change_nodes(const std::string& name, ChangeKind kind, const std::string& what) {
    SingleChange change{kind, what + " " + name, {}, {}};
    for (std::size_t i = 0; i < topology_.node_count(); ++i) {
      if (topology_.node(NodeId(i)).is_rank == (name == "ranks")) change.nodes.emplace_back(i);
    }
    changes_.push_back(std::move(change));
  }

  /// The link on which most of the path's time was spent moving or waiting.
  [[nodiscard]] LinkId slowest_link() const {
    for (const PathTime& share : path_) {
      if (std::ranges::find(of_bandwidth, share.use) == of_bandwidth.end()) continue;
      const LinkId link = topology_.find_link(share.max_at);
      return link.is_none() ? link : first_strand(link);
    }
    return {};
  }

  [[nodiscard]] LinkId first_strand(LinkId link) const { return bundles_.strands(bundles_.bundle_of(link)).front(); }

  std::vector<SingleChange> take() { return std::move(changes_); }

 private:
  std::span<const PathTime> path_;
  const Topology& topology_;
  Bundles bundles_;
  std::vector<SingleChange> changes_;
};

}  // namespace

std::string_view to_string(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::bandwidth: return "bandwidth";
    case ChangeKind::latency: return "latency";
    case ChangeKind::overhead: return "overhead";
    case ChangeKind::reduction: return "reduction";
    case ChangeKind::backplane: return "backplane";
  }
  ESPALIER_CHECK(false, "a change without a name");
}

Result<Topology> SingleChange::apply(const Topology& topology) const {
  std::vector<Link> changed_links(topology.links().begin(), topology.links().end());
  std::vector<Node> changed_nodes(topology.nodes().begin(), topology.nodes().end());
  for (const LinkId id : links) {
    Link& link = changed_links[id.index()];
    if (kind == ChangeKind::bandwidth) link.nominal.bytes_per_second *= 2;
    if (kind == ChangeKind::latency) link.latency.count /= 2;
    if (kind == ChangeKind::overhead) link.overhead = {};
  }
  for (const NodeId id : nodes) {
    Node& node = changed_nodes[id.index()];
    if (kind == ChangeKind::reduction) node.reduce_bandwidth.bytes_per_second *= 2;
    if (kind == ChangeKind::backplane) node.bandwidth.bytes_per_second *= 2;
  }
  return Topology::make(topology.name(), std::move(changed_nodes), std::move(changed_links));
}

std::vector<SingleChange> suggest_changes(std::span<const PathTime> path, LinkId busiest, const Topology& topology) {
  Suggestions suggestions(path, topology);
  std::vector<std::string> classes = suggestions.find(of_bandwidth);
  if (!busiest.is_none()) {
    const std::string name = class_of(topology.link(busiest));
    if (std::ranges::find(classes, name) == classes.end()) classes.push_back(name);
  }
  for (const std::string& name : classes) {
    suggestions.change_class(name, ChangeKind::bandwidth, "twice the bandwidth of");
  }
  std::set<LinkId> links;
  if (const LinkId slowest = suggestions.slowest_link(); !slowest.is_none()) links.insert(slowest);
  if (!busiest.is_none()) links.insert(suggestions.first_strand(busiest));
  for (const LinkId link : links) suggestions.change_link(link);
  for (const std::string& name : suggestions.find(std::array{PathUse::latency})) {
    suggestions.change_class(name, ChangeKind::latency, "half the latency of");
  }
  for (const std::string& name : suggestions.find(std::array{PathUse::overhead})) {
    suggestions.change_class(name, ChangeKind::overhead, "no per-message overhead on");
  }
  for (const std::string& name : suggestions.find(std::array{PathUse::reducing})) {
    suggestions.change_nodes(name, ChangeKind::reduction, "twice the reduction rate of");
  }
  for (const std::string& name : suggestions.find(std::array{PathUse::in_backplane})) {
    suggestions.change_nodes(name, ChangeKind::backplane, "twice the backplane of");
  }
  return suggestions.take();
}

}  // namespace espalier::sim
