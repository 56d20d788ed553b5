#include "topology/draw/layout.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <queue>

namespace espalier {
namespace {

constexpr double spacing = 84;       // Between neighbours of a row.
constexpr double row_distance = 78;  // Between rows.
constexpr double frame_margin = 26;
constexpr double host_gap = 30;

/// Rows of a machine, from the top.
int row_of(const Node& node) {
  if (node.is_rank) return 3;
  switch (node.kind) {
    case NodeKind::nic: return 0;
    case NodeKind::cpu: return 1;
    case NodeKind::pcie: return 2;
    default: return 4;
  }
}
constexpr int host_rows = 5;

class LayoutMaker {
 public:
  explicit LayoutMaker(const Topology& topology) : topology_(topology) {
    layout_.nodes.resize(topology.node_count());
    is_placed_.resize(topology.node_count(), false);
  }

  TopologyLayout make() {
    const bool has_hosts = std::ranges::any_of(topology_.nodes(), [](const Node& node) { return !node.host.empty(); });
    std::map<std::string, std::size_t> places;
    for (std::uint32_t i = 0; i < topology_.node_count(); ++i) {
      const Node& node = topology_.node(NodeId(i));
      if (has_hosts && node.host.empty() && !node.is_rank) {
        fabric_.push_back(i);
        continue;
      }
      const auto [place, is_new] = places.emplace(node.host, machines_.size());
      if (is_new) machines_.push_back({node.host, {}});
      machines_[place->second].nodes.push_back(i);
    }
    const std::vector<int> levels = fabric_levels();
    const int highest = levels.empty() ? 0 : *std::ranges::max_element(levels);
    double left = host_gap;
    const double top = 70 + highest * row_distance;
    for (const Machine& machine : machines_) left += place_machine(machine, left, top) + host_gap;
    std::size_t widest = 5;
    for (int level = 1; level <= highest; ++level) {
      widest = std::max(widest, static_cast<std::size_t>(std::ranges::count(levels, level)));
    }
    layout_.width = std::max(left, spacing * static_cast<double>(widest) + 2 * host_gap);
    for (int level = 1; level <= highest; ++level) place_fabric(levels, level, top - level * row_distance + 20);
    return std::move(layout_);
  }

 private:
  struct Machine {
    std::string name;
    std::vector<std::uint32_t> nodes;
  };

  [[nodiscard]] std::vector<std::uint32_t> neighbours(std::uint32_t node) const {
    std::vector<std::uint32_t> found;
    for (const LinkId link : topology_.out_links(NodeId(node))) {
      found.push_back(static_cast<std::uint32_t>(topology_.link(link).head.index()));
    }
    for (const LinkId link : topology_.in_links(NodeId(node))) {
      found.push_back(static_cast<std::uint32_t>(topology_.link(link).tail.index()));
    }
    return found;
  }

  /// How many hops the switches of the fabric are from the machines; 1 for those that none leads to.
  [[nodiscard]] std::vector<int> fabric_levels() const {
    std::vector<int> level(topology_.node_count(), 0);
    std::queue<std::uint32_t> waiting;
    for (const std::uint32_t node : fabric_) level[node] = -1;
    for (std::uint32_t i = 0; i < level.size(); ++i) {
      if (level[i] == 0) waiting.push(i);
    }
    for (; !waiting.empty(); waiting.pop()) {
      for (const std::uint32_t next : neighbours(waiting.front())) {
        if (level[next] >= 0) continue;
        level[next] = level[waiting.front()] + 1;
        waiting.push(next);
      }
    }
    std::vector<int> of_fabric;
    for (const std::uint32_t node : fabric_) of_fabric.push_back(std::max(level[node], 1));
    return of_fabric;
  }

  /// Returns the width it takes.
  double place_machine(const Machine& machine, double left, double top) {
    std::vector<std::vector<std::uint32_t>> rows(host_rows);
    for (const std::uint32_t node : machine.nodes) {
      rows[static_cast<std::size_t>(row_of(topology_.node(NodeId(node))))].push_back(node);
    }
    std::size_t most = 1;
    int used = 0;
    for (const auto& row : rows) {
      most = std::max(most, row.size());
      used += row.empty() ? 0 : 1;
    }
    constexpr std::size_t least_in_circle = 3;
    const bool in_circle = rows[3].size() == machine.nodes.size() && most >= least_in_circle;
    const double radius = spacing * static_cast<double>(most) / (2 * std::numbers::pi) + 30;
    const double width = (in_circle ? 2 * radius : spacing * static_cast<double>(most)) + 2 * frame_margin;
    const double height = (in_circle ? 2 * radius : row_distance * (used - 1) + 40) + 2 * frame_margin;
    if (in_circle) {
      place_circle(rows[3], left + width / 2, top + height / 2, radius);
    } else {
      // Ranks first: the others stand where what they are joined with does.
      for (const int row : {3, 2, 1, 0, 4}) {
        if (rows[static_cast<std::size_t>(row)].empty()) continue;
        int above = 0;
        for (int upper = 0; upper < row; ++upper) above += rows[static_cast<std::size_t>(upper)].empty() ? 0 : 1;
        place_row(rows[static_cast<std::size_t>(row)], left + frame_margin, width - 2 * frame_margin,
                  top + frame_margin + 20 + above * row_distance);
      }
    }
    if (!machine.name.empty()) layout_.hosts.push_back({machine.name, left, top, width, height});
    layout_.height = std::max(layout_.height, top + height + host_gap);
    return width;
  }

  void place_circle(const std::vector<std::uint32_t>& nodes, double x, double y, double radius) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const double turn = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(nodes.size());
      place(nodes[i], x + radius * std::sin(turn), y - radius * std::cos(turn));
      layout_.nodes[nodes[i]].in_row = false;
    }
  }

  /// Side by side over the width, in the order of where their placed neighbours are.
  void place_row(std::vector<std::uint32_t> nodes, double left, double width, double y) {
    std::vector<std::pair<double, std::uint32_t>> keyed;
    for (const std::uint32_t node : nodes) {
      double sum = 0;
      int count = 0;
      for (const std::uint32_t other : neighbours(node)) {
        if (!is_placed_[other]) continue;
        sum += layout_.nodes[other].x;
        ++count;
      }
      keyed.emplace_back(count == 0 ? std::numeric_limits<double>::max() : sum / count, node);
    }
    const bool is_first =
        std::ranges::none_of(keyed, [](const auto& key) { return key.first < std::numeric_limits<double>::max(); });
    if (!is_first) std::ranges::stable_sort(keyed, {}, [](const auto& key) { return key.first; });
    const double step = width / static_cast<double>(keyed.size());
    for (std::size_t i = 0; i < keyed.size(); ++i) {
      place(keyed[i].second, left + step * (static_cast<double>(i) + 0.5), y);
    }
  }

  void place_fabric(const std::vector<int>& levels, int level, double y) {
    std::vector<std::uint32_t> row;
    for (std::size_t i = 0; i < fabric_.size(); ++i) {
      if (levels[i] == level) row.push_back(fabric_[i]);
    }
    if (!row.empty()) place_row(std::move(row), host_gap, layout_.width - 2 * host_gap, y);
  }

  void place(std::uint32_t node, double x, double y) {
    layout_.nodes[node] = {x, y};
    is_placed_[node] = true;
  }

  const Topology& topology_;
  TopologyLayout layout_;
  std::vector<Machine> machines_;
  std::vector<std::uint32_t> fabric_;
  std::vector<bool> is_placed_;
};

}  // namespace

TopologyLayout lay_out(const Topology& topology) { return LayoutMaker(topology).make(); }

}  // namespace espalier
