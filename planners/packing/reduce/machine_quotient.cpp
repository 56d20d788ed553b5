#include "planners/packing/reduce/machine_quotient.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "planners/graph/rank_groups.h"
#include "planners/packing/realize_trees.h"

namespace espalier::planners {

namespace {

constexpr std::size_t max_machines = 256;
constexpr __int128 max_machine_capacity = std::int64_t{1} << 56U;
constexpr std::uint32_t no_arc = UINT32_MAX;

using ArcPath = std::vector<std::uint32_t>;

constexpr std::uint32_t no_machine = UINT32_MAX;

/// The machine of every node, numbered by their first ranks; no_machine for what stands between them. What is no rank
/// belongs to the machine that it names, and where ranks name none, to one that all of its neighbours but one belong
/// to.
std::vector<std::uint32_t> machines_of(const Topology& topology, const std::vector<std::vector<Rank>>& machines) {
  std::vector<std::uint32_t> machine_of(topology.node_count(), no_machine);
  std::map<std::string, std::uint32_t> named;
  for (std::uint32_t machine = 0; machine < machines.size(); ++machine) {
    for (const Rank rank : machines[machine]) machine_of[topology.node_of(rank).index()] = machine;
    const std::string& host = topology.node(topology.node_of(machines[machine].front())).host;
    if (!host.empty()) named.emplace(host, machine);
  }
  const auto neighbours_of = [&](NodeId node) {
    std::set<NodeId> neighbours;
    for (const LinkId id : topology.out_links(node)) neighbours.insert(topology.link(id).head);
    for (const LinkId id : topology.in_links(node)) neighbours.insert(topology.link(id).tail);
    return neighbours;
  };
  const auto machine_around = [&](const std::set<NodeId>& neighbours) {
    std::map<std::uint32_t, std::size_t> count;
    for (const NodeId neighbour : neighbours) ++count[machine_of[neighbour.index()]];
    count.erase(no_machine);
    const auto most = std::ranges::max_element(count, {}, [](const auto& entry) { return entry.second; });
    return most != count.end() && most->second + 1 >= neighbours.size() ? most->first : no_machine;
  };
  std::vector<NodeId> open;
  for (std::size_t i = topology.node_count(); i-- > 0;) open.emplace_back(i);
  while (!open.empty()) {
    const NodeId node = open.back();
    open.pop_back();
    std::uint32_t& machine = machine_of[node.index()];
    if (machine != no_machine) continue;
    if (!named.empty()) {
      if (const auto host = named.find(topology.node(node).host); host != named.end()) machine = host->second;
      continue;
    }
    const std::set<NodeId> neighbours = neighbours_of(node);
    machine = machine_around(neighbours);
    // Those next to it may be inside now, too.
    if (machine != no_machine) open.insert(open.end(), neighbours.begin(), neighbours.end());
  }
  return machine_of;
}

}  // namespace

/// Trees over machines become trees over ranks one by one, each where those before it left room.
class MachineLift {
 public:
  /// `weights`: of all trees.
  MachineLift(const MachineQuotient& quotient, std::int64_t weights) : of_(quotient), network_(quotient.network_) {
    for (const FlowArc& arc : network_.arcs()) {
      const __int128 whole = static_cast<__int128>(arc.capacity) * weights / quotient.between_.rate;
      room_.push_back(static_cast<std::int64_t>(std::min(whole, max_machine_capacity)));
    }
  }

  [[nodiscard]] bool fits() const {
    return std::ranges::none_of(room_, [](std::int64_t room) { return room < 0; });
  }

  std::optional<ParentTree> expand(const ParentTree& machines) {
    std::vector<std::vector<std::uint32_t>> exits(of_.members_.size());  // children by machine
    for (const std::uint32_t machine : machines.members) {
      if (machines.depth[machine] > 0) exits[machines.parent[machine]].push_back(machine);
    }
    ParentTree tree = ParentTree::of_root(of_.root_.value(), network_.rank_count(), machines.weight);
    std::vector<std::uint32_t> entry(of_.members_.size(), of_.root_.value());
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

 private:
  [[nodiscard]] std::uint32_t rank_at(std::uint32_t vertex) const { return network_.rank_at(vertex).value(); }

  /// Adds the rank at the end of a path to a tree.
  void attach(ParentTree& tree, const ArcPath& path) {
    for (const std::uint32_t a : path) room_[a] -= tree.weight;
    tree.add(rank_at(network_.arcs()[path.back()].head), rank_at(network_.arcs()[path.front()].tail), path);
  }

  /// The path of arcs between two machines with its ends: from the nearest rank of the one to the nearest of the other.
  [[nodiscard]] std::optional<ArcPath> cross(const ArcPath& arcs) const {
    ArcPath path;
    for (const std::uint32_t a : arcs) path.push_back(of_.arcs_between_[a]);
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
        if (of_.machine_of_[other] != of_.machine_of_[vertex] || !came.try_emplace(other, a).second) continue;
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
    const std::vector<std::uint32_t>& members = of_.members_[machine];
    if (machine != machines.root() || members.size() == 1) return entry;
    std::uint32_t hub = entry;
    for (const std::uint32_t child : exits) {
      const std::uint32_t exit = network_.arcs()[of_.arcs_between_[machines.path[child].front()]].tail;
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
    for (const std::uint32_t rank : of_.members_[machine]) {
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

  const MachineQuotient& of_;
  const FlowNetwork& network_;
  std::vector<std::int64_t> room_;  ///< By arc: what trees may still take.
  std::size_t hubs_ = 0;
};

std::optional<MachineQuotient> MachineQuotient::make(const PackingProblem& problem) {
  if (problem.has_backplanes() || !problem.all_relay()) return std::nullopt;
  const FlowNetwork& network = problem.network;
  std::vector<std::vector<Rank>> ranks = group_ranks(problem.topology()).groups;
  const std::size_t machines = ranks.size();
  if (machines < 2 || machines > max_machines || machines == problem.rank_count()) return std::nullopt;
  std::ranges::sort(ranks, {}, [](const std::vector<Rank>& machine) { return machine.front(); });
  auto vertices = static_cast<std::uint32_t>(machines);
  std::vector<std::uint32_t> machine_of = machines_of(problem.topology(), ranks);
  for (std::uint32_t& machine : machine_of) {
    if (machine == no_machine) machine = vertices++;
  }
  const std::uint32_t root = machine_of[network.vertex_of(problem.root)];
  __int128 sum = problem.cut.capacity;
  std::vector<FlowArc> arcs;
  std::vector<std::uint32_t> arcs_between;
  for (std::uint32_t a = 0; a < network.arcs().size(); ++a) {
    const FlowArc& arc = network.arcs()[a];
    const std::uint32_t tail = machine_of[arc.tail];
    const std::uint32_t head = machine_of[arc.head];
    if (tail == head || head == root) continue;
    sum += arc.capacity;
    if (sum >= max_machine_capacity) return std::nullopt;
    arcs.push_back({tail, head, arc.capacity, arc.link});
    arcs_between.push_back(a);
  }
  std::vector<std::uint32_t> all(machines);
  std::iota(all.begin(), all.end(), 0U);
  const auto rate = static_cast<std::int64_t>(problem.cut.capacity);
  MachineQuotient quotient(problem, {{vertices, std::move(arcs), std::move(all)}, Rank(root), rate, {}});
  quotient.machine_of_ = std::move(machine_of);
  quotient.arcs_between_ = std::move(arcs_between);
  quotient.members_.resize(machines);
  for (std::uint32_t rank = 0; rank < network.rank_count(); ++rank) {
    quotient.members_[quotient.machine_of_[network.vertex_of(Rank(rank))]].push_back(rank);
  }
  return quotient;
}

std::optional<std::vector<Arborescence>> MachineQuotient::lift(std::span<const ParentTree> trees) const {
  std::int64_t weights = 0;
  for (const ParentTree& tree : trees) weights += tree.weight;
  MachineLift over_ranks(*this, weights);
  std::vector<Arborescence> lifted;
  for (const ParentTree& machines : trees) {
    auto tree = over_ranks.expand(machines);
    if (!tree) return std::nullopt;
    if (network_.direction() == Direction::reversed) std::reverse(tree->members.begin() + 1, tree->members.end());
    lifted.push_back(over_links(network_, *tree));
  }
  if (!over_ranks.fits()) return std::nullopt;
  reduce_weights(lifted);
  return lifted;
}

}  // namespace espalier::planners
