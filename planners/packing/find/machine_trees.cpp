#include "planners/packing/find/machine_trees.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "planners/lp/resource_graph.h"
#include "planners/lp/trees/program_forest.h"
#include "planners/packing/find/shallow_tree_search.h"

namespace espalier {

namespace {

constexpr std::size_t most_machines = 256;
constexpr std::int64_t most_machine_capacity = std::int64_t{1} << 56U;
constexpr std::uint32_t no_edge = UINT32_MAX;

/// An edge of the resource graph, seen away from the root.
struct Directed {
  std::uint32_t tail = 0;
  std::uint32_t head = 0;
};

/// The machines as one vertex each, and what happens inside them.
class MachineNetwork {
 public:
  MachineNetwork(const Topology& topology, const ResourceGraph& graph, bool inward, std::uint32_t root)
      : graph_(graph), root_(root), vertex_of_(graph.node_ranks.size()) {
    std::map<std::string, std::uint32_t> hosts;
    for (const std::uint32_t node : graph.rank_nodes) {
      const std::string& host = topology.node(NodeId(node)).host;
      if (host.empty()) return;
      hosts.try_emplace(host, static_cast<std::uint32_t>(hosts.size()));
    }
    machine_count_ = hosts.size();
    auto next = static_cast<std::uint32_t>(machine_count_);
    for (std::uint32_t v = 0; v < vertex_of_.size(); ++v) {
      const auto host = hosts.find(topology.node(NodeId(v)).host);
      vertex_of_[v] = host != hosts.end() ? host->second : next++;
    }
    vertex_count_ = next;
    out_.resize(vertex_of_.size());
    in_.resize(vertex_of_.size());
    for (std::uint32_t e = 0; e < graph.edges.size(); ++e) {
      ways_.push_back(inward ? Directed{graph.edges[e].head, graph.edges[e].tail}
                             : Directed{graph.edges[e].tail, graph.edges[e].head});
      out_[ways_[e].tail].push_back(e);
      in_[ways_[e].head].push_back(e);
    }
    members_.resize(machine_count_);
    for (std::uint32_t rank = 0; rank < graph.rank_count(); ++rank) {
      members_[vertex_of_[graph.rank_nodes[rank]]].push_back(rank);
    }
  }

  [[nodiscard]] std::size_t machine_count() const { return machine_count_; }

  /// The network between machines, for trees that carry `rate` in the graph's unit; nothing where numbers are too
  /// large.
  std::optional<RootNetwork> between(const Rational& rate) {
    const Rational units = rate / graph_.unit;
    BigInteger sum = 0;
    const std::uint32_t root = vertex_of_[graph_.rank_nodes[root_]];
    RootNetwork network{vertex_count_, {}, {}, root, 0};
    for (std::uint32_t machine = 0; machine < machine_count_; ++machine) network.rank_vertices.push_back(machine);
    for (std::uint32_t e = 0; e < ways_.size(); ++e) {
      const std::uint32_t tail = vertex_of_[ways_[e].tail];
      const std::uint32_t head = vertex_of_[ways_[e].head];
      if (tail == head || head == root) continue;
      const BigInteger room = graph_.capacity[graph_.edges[e].resources.front()] * BigInteger(denominator(units));
      sum += room;
      if (sum >= most_machine_capacity) return std::nullopt;
      network.arcs.push_back({tail, head, room.convert_to<std::int64_t>()});
      arc_edges_.push_back(e);
    }
    if (numerator(units) >= most_machine_capacity) return std::nullopt;
    network.rate = BigInteger(numerator(units)).convert_to<std::int64_t>();
    return network;
  }

  /// A tree over machines as one over ranks: paths from rank to rank away from the root. Nothing where ranks of a
  /// machine do not reach each other by its switches.
  std::optional<std::vector<std::uint32_t>> expand(const GrowingTrees::Tree& tree) {
    std::vector<std::vector<std::uint32_t>> exits(machine_count_);  // children by machine
    for (const std::uint32_t machine : tree.members) {
      if (tree.depth[machine] > 0) exits[tree.parent[machine]].push_back(machine);
    }
    std::vector<std::uint32_t> edges;
    std::vector<std::uint32_t> entry(machine_count_, no_edge);
    entry[tree.members.front()] = root_;
    std::vector<std::uint32_t> downwards = tree.members;
    std::ranges::stable_sort(downwards, [&](auto a, auto b) { return tree.depth[a] < tree.depth[b]; });
    for (const std::uint32_t machine : downwards) {
      if (!spread_inside(machine, entry[machine], machine == tree.members.front(), tree, exits[machine], edges)) {
        return std::nullopt;
      }
      for (const std::uint32_t child : exits[machine]) {
        const auto crossing = cross(tree.path[child]);
        if (!crossing) return std::nullopt;
        entry[child] = crossing->second;
        append(edges, crossing->first, tree.weight);
      }
    }
    return edges;
  }

  /// Trees whose weights sum to `weights` carry `rate` in all: what each edge then has room for.
  void set_room(const Rational& rate, std::int64_t weights) {
    const Rational units = rate / graph_.unit / weights;
    room_.clear();
    for (const ResourceGraph::Edge& edge : graph_.edges) {
      const Rational fitting = graph_.capacity[edge.resources.front()] / units;
      const BigInteger whole = numerator(fitting) / denominator(fitting);
      room_.push_back(std::min(whole, BigInteger(most_machine_capacity)).convert_to<std::int64_t>());
    }
  }

  /// Whether no tree so far takes more than there is room for.
  [[nodiscard]] bool fits() const {
    return std::ranges::all_of(room_, [](std::int64_t room) { return room >= 0; });
  }

 private:
  void append(std::vector<std::uint32_t>& edges, const std::vector<std::uint32_t>& path, std::int64_t weight) {
    for (const std::uint32_t e : path) room_[e] -= weight;
    edges.insert(edges.end(), path.begin(), path.end());
  }

  /// The path of arcs between two machines with its ends: from the nearest rank of the one to the nearest of the other,
  /// and which that is.
  [[nodiscard]] std::optional<std::pair<std::vector<std::uint32_t>, std::uint32_t>> cross(
      const std::vector<std::uint32_t>& arcs) const {
    std::vector<std::uint32_t> path;
    for (const std::uint32_t a : arcs) path.push_back(arc_edges_[a]);
    const auto before = to_rank(ways_[path.front()].tail, false);
    const auto after = to_rank(ways_[path.back()].head, true);
    if (!before || !after) return std::nullopt;
    path.insert(path.begin(), before->begin(), before->end());
    path.insert(path.end(), after->begin(), after->end());
    return std::pair(path, graph_.node_ranks[ways_[path.back()].head]);
  }

  /// The shortest way inside a machine from a node to a rank, or, not `forwards`, from a rank to the node: least loaded
  /// of equal ones by their first steps. `target`: which rank, or any.
  [[nodiscard]] std::optional<std::vector<std::uint32_t>> to_rank(std::uint32_t node, bool forwards,
                                                                  std::uint32_t target = no_edge) const {
    std::map<std::uint32_t, std::uint32_t> came;
    std::vector<std::uint32_t> queue = {node};
    came[node] = no_edge;
    for (std::size_t done = 0; done < queue.size(); ++done) {
      const std::uint32_t v = queue[done];
      const std::uint32_t rank = graph_.node_ranks[v];
      if (rank != ResourceGraph::no_rank && (target == no_edge || rank == target)) return walk_back(came, v, forwards);
      if (rank != ResourceGraph::no_rank && done > 0) continue;
      std::vector<std::uint32_t> steps = forwards ? out_[v] : in_[v];
      std::ranges::stable_sort(steps, [&](auto a, auto b) { return room_[a] > room_[b]; });
      for (const std::uint32_t e : steps) {
        const std::uint32_t other = forwards ? ways_[e].head : ways_[e].tail;
        if (vertex_of_[other] != vertex_of_[node] || came.contains(other)) continue;
        came[other] = e;
        queue.push_back(other);
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] std::vector<std::uint32_t> walk_back(const std::map<std::uint32_t, std::uint32_t>& came,
                                                     std::uint32_t v, bool forwards) const {
    std::vector<std::uint32_t> path;
    for (std::uint32_t e = came.at(v); e != no_edge; e = came.at(v)) {
      path.push_back(e);
      v = forwards ? ways_[e].tail : ways_[e].head;
    }
    if (forwards) std::reverse(path.begin(), path.end());
    return path;
  }

  /// Hands the tree to all ranks of a machine, all at once where there is room for that. The root gives it to one of
  /// them, one that sends it on to other machines where there is one: it may not have the capacity for more.
  bool spread_inside(std::uint32_t machine, std::uint32_t from, bool is_root, const GrowingTrees::Tree& tree,
                     const std::vector<std::uint32_t>& children, std::vector<std::uint32_t>& edges) {
    std::uint32_t hub = from;
    if (is_root && members_[machine].size() > 1) {
      for (const std::uint32_t child : children) {
        const auto path = to_rank(ways_[arc_edges_[tree.path[child].front()]].tail, false);
        if (!path) return false;
        const std::uint32_t node =
            path->empty() ? ways_[arc_edges_[tree.path[child].front()]].tail : ways_[path->front()].tail;
        if (graph_.node_ranks[node] != from) hub = graph_.node_ranks[node];
      }
      if (hub == from) hub = next_hub(machine, from);
      if (!reach(from, hub, tree.weight, edges)) return false;
    }
    std::vector<std::uint32_t> senders = {hub};
    for (const std::uint32_t rank : members_[machine]) {
      if (rank == from || rank == hub) continue;
      const bool is_reached =
          std::ranges::any_of(senders, [&](std::uint32_t sender) { return reach(sender, rank, tree.weight, edges); });
      if (!is_reached && (hub == from || !reach(from, rank, tree.weight, edges))) return false;
      senders.push_back(rank);
    }
    return true;
  }

  /// Where the root's own links lead straight out of its machine: the others in turn.
  std::uint32_t next_hub(std::uint32_t machine, std::uint32_t from) {
    const std::vector<std::uint32_t>& members = members_[machine];
    std::uint32_t hub = from;
    while (hub == from) hub = members[hubs_++ % members.size()];
    return hub;
  }

  bool reach(std::uint32_t from, std::uint32_t to, std::int64_t weight, std::vector<std::uint32_t>& edges) {
    const auto path = to_rank(graph_.rank_nodes[from], true, to);
    if (!path || std::ranges::any_of(*path, [&](std::uint32_t e) { return room_[e] < weight; })) return false;
    append(edges, *path, weight);
    return true;
  }

  const ResourceGraph& graph_;
  std::uint32_t root_;
  std::size_t machine_count_ = 0;
  std::size_t vertex_count_ = 0;
  std::vector<std::uint32_t> vertex_of_;  ///< By node: its machine, or a vertex of its own.
  std::vector<Directed> ways_;            ///< By edge.
  std::vector<std::vector<std::uint32_t>> out_, in_;
  std::vector<std::vector<std::uint32_t>> members_;  ///< By machine: its ranks.
  std::vector<std::uint32_t> arc_edges_;             ///< By arc between machines.
  std::vector<std::int64_t> room_;                   ///< By edge: what trees may still take.
  std::size_t hubs_ = 0;
};

}  // namespace

std::optional<std::vector<Arborescence>> machine_trees(const Topology& topology, Direction direction, Rank root,
                                                       const Rational& rate) {
  const bool has_backplane =
      std::ranges::any_of(topology.nodes(), [](const Node& node) { return node.bandwidth.bytes_per_second != 0; });
  if (has_backplane || !topology.first_not_relaying().is_none()) return std::nullopt;
  const ResourceGraph graph = make_resource_graph(topology, false);
  const bool inward = direction == Direction::reversed;
  MachineNetwork machines(topology, graph, inward, root.value());
  const std::size_t count = machines.machine_count();
  if (count < 2 || count > most_machines || count == topology.rank_count()) return std::nullopt;
  const auto network = machines.between(rate);
  if (!network) return std::nullopt;
  const auto found = LowTreeSearch(*network).run();
  if (!found) return std::nullopt;
  std::int64_t sum = 0;
  for (const GrowingTrees::Tree& tree : found->trees) sum += tree.weight;
  machines.set_room(rate, sum);
  std::vector<ProgramTree> images;
  for (const GrowingTrees::Tree& tree : found->trees) {
    auto edges = machines.expand(tree);
    if (!edges) return std::nullopt;
    if (inward) std::reverse(edges->begin(), edges->end());
    images.push_back({root.value(), inward, make_rational(tree.weight, sum), *std::move(edges), {}});
  }
  if (!machines.fits()) return std::nullopt;
  Forest forest = whole_forest(topology, graph, images, 1 / rate);
  return inward ? std::move(forest.in_trees) : std::move(forest.out_trees);
}

}  // namespace espalier
