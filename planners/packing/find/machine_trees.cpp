#include "planners/packing/find/machine_trees.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <span>
#include <string>

#include "planners/packing/find/shallow_tree_search.h"
#include "planners/packing/find/shallow_trees.h"
#include "planners/packing/realize_trees.h"

namespace espalier::planners {

namespace {

constexpr std::size_t most_machines = 256;
constexpr __int128 most_machine_capacity = std::int64_t{1} << 56U;
constexpr std::uint32_t no_arc = UINT32_MAX;

using ArcPath = std::vector<std::uint32_t>;

/// The quotient of a network by its machines, for trees of one root. A vertex of the network is a node.
class MachineQuotient {
 public:
  /// Requires: a network that outlives this.
  MachineQuotient(const Topology& topology, const FlowNetwork& network, Rank root)
      : network_(network), root_(root.value()), machine_of_(network.vertex_count()) {
    std::map<std::string, std::uint32_t> hosts;
    for (const std::uint32_t node : network.rank_vertices()) {
      const std::string& host = topology.node(NodeId(node)).host;
      if (host.empty()) return;
      hosts.try_emplace(host, static_cast<std::uint32_t>(hosts.size()));
    }
    members_.resize(hosts.size());
    vertex_count_ = static_cast<std::uint32_t>(hosts.size());
    for (std::uint32_t v = 0; v < machine_of_.size(); ++v) {
      const auto host = hosts.find(topology.node(NodeId(v)).host);
      machine_of_[v] = host != hosts.end() ? host->second : vertex_count_++;
    }
    for (std::uint32_t rank = 0; rank < network.rank_count(); ++rank) {
      members_[machine_of_[network.vertex_of(Rank(rank))]].push_back(rank);
    }
  }

  [[nodiscard]] std::size_t machine_count() const { return members_.size(); }

  /// The network between machines, for trees that carry `rate`; nothing where numbers are too large.
  std::optional<RootNetwork> between(__int128 rate) {
    __int128 sum = rate;
    const std::uint32_t root = machine_of_[network_.vertex_of(Rank(root_))];
    std::vector<FlowArc> arcs;
    for (std::uint32_t a = 0; a < network_.arcs().size(); ++a) {
      const FlowArc& arc = network_.arcs()[a];
      const std::uint32_t tail = machine_of_[arc.tail];
      const std::uint32_t head = machine_of_[arc.head];
      if (tail == head || head == root) continue;
      sum += arc.capacity;
      if (sum >= most_machine_capacity) return std::nullopt;
      arcs.push_back({tail, head, arc.capacity, arc.link});
      arcs_between_.push_back(a);
    }
    std::vector<std::uint32_t> machines(machine_count());
    std::iota(machines.begin(), machines.end(), 0U);
    return RootNetwork{
        {vertex_count_, std::move(arcs), std::move(machines)}, Rank(root), static_cast<std::int64_t>(rate), {}};
  }

  /// Trees over machines that together carry `rate`, as trees over ranks. Nothing where ranks of a machine do not reach
  /// each other by its switches, or links have no room for that.
  std::optional<std::vector<Arborescence>> lift(std::span<const ParentTree> trees, std::int64_t rate) {
    std::int64_t weights = 0;
    for (const ParentTree& tree : trees) weights += tree.weight;
    for (const FlowArc& arc : network_.arcs()) {
      const __int128 whole = static_cast<__int128>(arc.capacity) * weights / rate;
      room_.push_back(static_cast<std::int64_t>(std::min(whole, most_machine_capacity)));
    }
    std::vector<Arborescence> lifted;
    for (const ParentTree& machines : trees) {
      auto tree = expand(machines);
      if (!tree) return std::nullopt;
      if (network_.direction() == Direction::reversed) std::reverse(tree->members.begin() + 1, tree->members.end());
      lifted.push_back(over_links(network_, *tree));
    }
    if (std::ranges::any_of(room_, [](std::int64_t room) { return room < 0; })) return std::nullopt;
    reduce_weights(lifted);
    return lifted;
  }

 private:
  [[nodiscard]] std::uint32_t rank_at(std::uint32_t vertex) const { return network_.rank_at(vertex).value(); }

  /// A tree over machines as one over ranks. Nothing where ranks of a machine do not reach each other by its switches.
  std::optional<ParentTree> expand(const ParentTree& machines) {
    std::vector<std::vector<std::uint32_t>> exits(machine_count());  // children by machine
    for (const std::uint32_t machine : machines.members) {
      if (machines.depth[machine] > 0) exits[machines.parent[machine]].push_back(machine);
    }
    ParentTree tree = ParentTree::of_root(root_, network_.rank_count(), machines.weight);
    std::vector<std::uint32_t> entry(machine_count(), root_);
    std::vector<std::uint32_t> downwards = machines.members;
    std::ranges::stable_sort(downwards, [&](auto a, auto b) { return machines.depth[a] < machines.depth[b]; });
    for (const std::uint32_t machine : downwards) {
      const std::uint32_t hub = hub_of(machine, entry[machine], exits[machine], machines);
      if (!spread_inside(tree, machine, entry[machine], hub)) return std::nullopt;
      for (const std::uint32_t child : exits[machine]) {
        const auto crossing = cross(machines.path[child]);
        if (!crossing) return std::nullopt;
        entry[child] = rank_at(network_.arcs()[crossing->back()].head);
        attach(tree, *crossing);
      }
    }
    return tree;
  }

  /// Adds the rank at the end of a path to a tree.
  void attach(ParentTree& tree, const ArcPath& path) {
    for (const std::uint32_t a : path) room_[a] -= tree.weight;
    tree.add(rank_at(network_.arcs()[path.back()].head), rank_at(network_.arcs()[path.front()].tail), path);
  }

  /// The path of arcs between two machines with its ends: from the nearest rank of the one to the nearest of the other.
  [[nodiscard]] std::optional<ArcPath> cross(const ArcPath& arcs) const {
    ArcPath path;
    for (const std::uint32_t a : arcs) path.push_back(arcs_between_[a]);
    const auto before = to_rank(network_.arcs()[path.front()].tail, false);
    const auto after = to_rank(network_.arcs()[path.back()].head, true);
    if (!before || !after) return std::nullopt;
    path.insert(path.begin(), before->begin(), before->end());
    path.insert(path.end(), after->begin(), after->end());
    return path;
  }

  /// The shortest path inside a machine from a vertex to a rank, or, not `forwards`, from a rank to the vertex: least
  /// loaded of equal ones by their first steps. `target`: which rank, or any.
  [[nodiscard]] std::optional<ArcPath> to_rank(std::uint32_t vertex, bool forwards, Rank target = {}) const {
    std::map<std::uint32_t, std::uint32_t> came;
    std::vector<std::uint32_t> queue = {vertex};
    came[vertex] = no_arc;
    for (std::size_t done = 0; done < queue.size(); ++done) {
      const Rank rank = network_.rank_at(queue[done]);
      if (!rank.is_none() && (target.is_none() || rank == target)) {
        ArcPath path;
        std::uint32_t v = queue[done];
        for (std::uint32_t a = came[v]; a != no_arc; a = came[v]) {
          path.push_back(a);
          v = forwards ? network_.arcs()[a].tail : network_.arcs()[a].head;
        }
        if (forwards) std::reverse(path.begin(), path.end());
        return path;
      }
      if (!rank.is_none() && done > 0) continue;
      const auto arcs = forwards ? network_.arcs_from(queue[done]) : network_.arcs_to(queue[done]);
      std::vector<std::uint32_t> steps(arcs.begin(), arcs.end());
      std::ranges::stable_sort(steps, [&](auto a, auto b) { return room_[a] > room_[b]; });
      for (const std::uint32_t a : steps) {
        const std::uint32_t other = forwards ? network_.arcs()[a].head : network_.arcs()[a].tail;
        if (machine_of_[other] != machine_of_[vertex] || !came.try_emplace(other, a).second) continue;
        queue.push_back(other);
      }
    }
    return std::nullopt;
  }

  /// The rank that hands a tree to the others of a machine: the one where it enters. The root gives it to one of the
  /// others, for it may not have the capacity for more: to one that sends it on to other machines, or, where the root's
  /// own links lead straight out, to the others in turn.
  std::uint32_t hub_of(std::uint32_t machine, std::uint32_t entry, const std::vector<std::uint32_t>& exits,
                       const ParentTree& machines) {
    const std::vector<std::uint32_t>& members = members_[machine];
    if (machine != machines.root() || members.size() == 1) return entry;
    std::uint32_t hub = entry;
    for (const std::uint32_t child : exits) {
      const std::uint32_t exit = network_.arcs()[arcs_between_[machines.path[child].front()]].tail;
      const auto path = to_rank(exit, false);
      if (!path) continue;  // crossing to the child fails
      const std::uint32_t sender = rank_at(path->empty() ? exit : network_.arcs()[path->front()].tail);
      if (sender != entry) hub = sender;
    }
    while (hub == entry) hub = members[hubs_++ % members.size()];
    return hub;
  }

  /// Hands the tree to all ranks of a machine, all at once where there is room for that.
  bool spread_inside(ParentTree& tree, std::uint32_t machine, std::uint32_t entry, std::uint32_t hub) {
    if (hub != entry && !reach(tree, entry, hub)) return false;
    std::vector<std::uint32_t> senders = {hub};
    for (const std::uint32_t rank : members_[machine]) {
      if (rank == entry || rank == hub) continue;
      const bool is_reached =
          std::ranges::any_of(senders, [&](std::uint32_t sender) { return reach(tree, sender, rank); });
      if (!is_reached && (hub == entry || !reach(tree, entry, rank))) return false;
      senders.push_back(rank);
    }
    return true;
  }

  bool reach(ParentTree& tree, std::uint32_t from, std::uint32_t to) {
    const auto path = to_rank(network_.vertex_of(Rank(from)), true, Rank(to));
    if (!path || std::ranges::any_of(*path, [&](std::uint32_t a) { return room_[a] < tree.weight; })) return false;
    attach(tree, *path);
    return true;
  }

  const FlowNetwork& network_;
  std::uint32_t root_;
  std::uint32_t vertex_count_ = 0;
  std::vector<std::uint32_t> machine_of_;            ///< By vertex: its machine, or a vertex of its own.
  std::vector<std::vector<std::uint32_t>> members_;  ///< By machine: its ranks.
  std::vector<std::uint32_t> arcs_between_;          ///< By arc between machines.
  std::vector<std::int64_t> room_;                   ///< By arc: what trees may still take.
  std::size_t hubs_ = 0;
};

}  // namespace

std::optional<std::vector<Arborescence>> machine_trees(const PackingProblem& problem) {
  if (problem.has_backplanes() || !problem.all_relay()) return std::nullopt;
  MachineQuotient machines(problem.topology(), problem.network, problem.root);
  const std::size_t count = machines.machine_count();
  if (count < 2 || count > most_machines || count == problem.rank_count()) return std::nullopt;
  const auto network = machines.between(problem.cut.capacity);
  const auto found = network ? find_shallow_trees(*network) : std::nullopt;
  return found ? machines.lift(*found, network->rate) : std::nullopt;
}

}  // namespace espalier::planners
