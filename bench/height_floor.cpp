#include "bench/height_floor.h"

#include <ClpSimplex.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <vector>

#include "planners/graph/resource_graph.h"
#include "planners/packing/find/shallow_tree_search.h"
#include "topology/analysis/max_flow.h"

namespace espalier::bench {

namespace {

constexpr double gap = 1e-3;
constexpr std::size_t max_program_ranks = 16;
constexpr int max_rounds = 60;

/// The network away from the root, capacities in the unit of the rates, backplanes left out (which makes no floor
/// wrong).
planners::RootNetwork network_of(const Topology& topology, Direction direction, Rank root) {
  const planners::ResourceGraph graph = planners::make_resource_graph(topology, false);
  const std::uint32_t source = graph.rank_nodes[root.index()];
  std::vector<FlowArc> arcs;
  for (const planners::ResourceGraph::Edge& edge : graph.edges) {
    std::int64_t room = 0;
    for (const LinkId link : edge.links) room += topology.link(link).bandwidth().bytes_per_second;
    const bool inward = direction == Direction::reversed;
    const std::uint32_t head = inward ? edge.tail : edge.head;
    arcs.push_back({inward ? edge.head : edge.tail, head, head == source ? 0 : room, {}});
  }
  MaxFlow<std::int64_t> flow(graph.node_ranks.size());
  for (const FlowArc& arc : arcs) flow.add_arc(arc.tail, arc.head, arc.capacity);
  std::int64_t rate = std::numeric_limits<std::int64_t>::max();
  for (const std::uint32_t vertex : graph.rank_nodes) {
    if (vertex != source) rate = std::min(rate, flow.run(source, vertex));
  }
  return {{graph.node_ranks.size(), std::move(arcs), graph.rank_nodes}, root, rate, {}};
}

/// Two hops: behind a full cut with two ranks or more every tree's only crossing has to end one hop from the root, so
/// that the root itself sends all of it across.
bool is_cut_too_late(const planners::RootNetwork& rooted) {
  const FlowNetwork& network = rooted.network;
  MaxFlow<std::int64_t> flow(network.vertex_count());
  MaxFlow<std::int64_t> straight(network.vertex_count());  // no other rank passes anything on
  const std::uint32_t root = network.vertex_of(rooted.root);
  for (const FlowArc& arc : network.arcs()) {
    flow.add_arc(arc.tail, arc.head, arc.capacity);
    const bool passes = arc.tail != root && !network.rank_at(arc.tail).is_none();
    straight.add_arc(arc.tail, arc.head, passes ? 0 : arc.capacity);
  }
  for (const std::uint32_t vertex : network.rank_vertices()) {
    if (vertex == root || flow.run(root, vertex) != rooted.rate) continue;
    // The largest far side: what cannot be reached from the root in the residual graph.
    const std::vector<bool> near = flow.source_side(std::span(&root, 1));
    std::vector<std::uint32_t> far;
    for (const std::uint32_t other : network.rank_vertices()) {
      if (!near[other]) far.push_back(other);
    }
    if (far.size() < 2) continue;
    const auto crossing = straight.run(std::span(&root, 1), std::span<const std::uint32_t>(far));
    if (static_cast<double>(crossing) < static_cast<double>(rooted.rate) * (1 - 2 * gap)) return true;
  }
  return false;
}

/// A linear program that every packing within a height satisfies: how much weight goes from rank u to rank v as a
/// tree's hop number j, routed over the links, so that every rank is behind cuts, in the network whose vertices are
/// ranks at their number of hops, of all that is carried. Cuts are added as they are missed.
class HopProgram {
 public:
  HopProgram(const planners::RootNetwork& network, std::uint32_t hops)
      : network_(network.network), root_(network.root.value()), rate_(network.rate), hops_(hops) {
    ranks_ = static_cast<std::uint32_t>(network_.rank_count());
    add_columns();
    add_rows();
    CoinPackedMatrix matrix(false, row_.data(), column_.data(), value_.data(), static_cast<int>(value_.size()));
    matrix.setDimensions(static_cast<int>(lower_.size()), columns_);
    std::vector<double> zero(static_cast<std::size_t>(columns_), 0);
    std::vector<double> most(static_cast<std::size_t>(columns_), COIN_DBL_MAX);
    std::vector<double> objective = zero;
    objective[0] = 1;
    most[0] = 2;
    clp_.setLogLevel(0);
    clp_.loadProblem(matrix, zero.data(), most.data(), objective.data(), lower_.data(), upper_.data());
    clp_.setOptimizationDirection(-1);
    add_first_cuts();
  }

  /// Whether it carries less than the rate.
  bool is_short() {
    for (int round = 0; round < max_rounds; ++round) {
      round == 0 ? clp_.initialSolve() : clp_.dual();
      if (clp_.status() != 0) return false;
      if (clp_.objectiveValue() < 1 - 2 * gap) return true;
      if (!add_cuts()) return false;
    }
    return false;
  }

 private:
  [[nodiscard]] bool is_hop(std::uint32_t u, std::uint32_t v, std::uint32_t hop) const {
    return u != v && v != root_ && (u == root_) == (hop == 0);
  }
  [[nodiscard]] std::size_t hop_place(std::uint32_t u, std::uint32_t v, std::uint32_t hop) const {
    return (std::size_t{u} * ranks_ + v) * hops_ + hop;
  }

  void add_columns() {
    columns_ = 1;  // 0: what is carried
    hop_column_.assign(std::size_t{ranks_} * ranks_ * hops_, -1);
    for (std::uint32_t u = 0; u < ranks_; ++u) {
      for (std::uint32_t v = 0; v < ranks_; ++v) {
        for (std::uint32_t hop = 0; hop < hops_; ++hop) {
          if (is_hop(u, v, hop)) hop_column_[hop_place(u, v, hop)] = columns_++;
        }
      }
    }
  }

  void set(int column, double value) {
    row_.push_back(static_cast<int>(lower_.size()));
    column_.push_back(column);
    value_.push_back(value);
  }
  void end_row(double lower, double upper) {
    lower_.push_back(lower);
    upper_.push_back(upper);
  }

  /// Hops from a rank are a flow over links; all together keep to the links' rates.
  void add_rows() {
    const auto is_rank = [&](std::uint32_t vertex) { return !network_.rank_at(vertex).is_none(); };
    std::vector<std::vector<int>> by_arc(network_.arcs().size());
    for (std::uint32_t u = 0; u < ranks_; ++u) {
      std::vector<std::vector<std::pair<int, double>>> at(network_.vertex_count());
      const std::uint32_t source = network_.vertex_of(Rank(u));
      for (std::size_t a = 0; a < network_.arcs().size(); ++a) {
        const FlowArc& arc = network_.arcs()[a];
        const bool passes = is_rank(arc.tail) && arc.tail != source;
        if (passes || arc.capacity == 0 || arc.head == source) continue;
        at[arc.tail].emplace_back(columns_, -1);
        at[arc.head].emplace_back(columns_, 1);
        by_arc[a].push_back(columns_++);
      }
      for (std::uint32_t v = 0; v < network_.vertex_count(); ++v) {
        if (v == source || at[v].empty()) continue;
        for (const auto& [column, value] : at[v]) set(column, value);
        for (std::uint32_t hop = 0; is_rank(v) && hop < hops_; ++hop) {
          const std::uint32_t rank = network_.rank_at(v).value();
          if (is_hop(u, rank, hop)) set(hop_column_[hop_place(u, rank, hop)], -1);
        }
        end_row(0, 0);
      }
    }
    for (std::size_t a = 0; a < by_arc.size(); ++a) {
      for (const int column : by_arc[a]) set(column, 1);
      end_row(-COIN_DBL_MAX, static_cast<double>(network_.arcs()[a].capacity) / static_cast<double>(rate_));
    }
  }

  void add_cut(std::vector<int> columns) {
    std::vector<double> values(columns.size(), 1);
    columns.push_back(0);
    values.push_back(-1);
    clp_.addRow(static_cast<int>(columns.size()), columns.data(), values.data(), 0, COIN_DBL_MAX);
  }

  /// Around the root, and around every other rank.
  void add_first_cuts() {
    for (std::uint32_t v = 0; v < ranks_; ++v) {
      std::vector<int> columns;
      for (std::uint32_t u = 0; u < ranks_; ++u) {
        for (std::uint32_t hop = 0; hop < hops_; ++hop) {
          const std::size_t place = v == root_ ? hop_place(v, u, hop) : hop_place(u, v, hop);
          if (hop_column_[place] >= 0) columns.push_back(hop_column_[place]);
        }
      }
      add_cut(std::move(columns));
    }
  }

  /// A cut for every rank that gets less than all; false when every rank gets it.
  bool add_cuts() {
    constexpr double fine = 1e9;
    const double* solution = clp_.primalColumnSolution();
    MaxFlow<std::int64_t> flow(std::size_t{ranks_} * (hops_ + 1));
    const auto vertex = [&](std::uint32_t rank, std::uint32_t hop) { return hop * ranks_ + rank; };
    std::vector<int> columns;
    for (std::uint32_t u = 0; u < ranks_; ++u) {
      for (std::uint32_t v = 0; v < ranks_; ++v) {
        for (std::uint32_t hop = 0; hop < hops_; ++hop) {
          const int column = hop_column_[hop_place(u, v, hop)];
          if (column < 0) continue;
          flow.add_arc(vertex(u, hop), vertex(v, hop + 1),
                       static_cast<std::int64_t>(std::max(0.0, solution[column]) * fine));
          columns.push_back(column);
        }
      }
    }
    const auto wanted = static_cast<std::int64_t>(solution[0] * fine * (1 - 1e-6));
    const std::uint32_t source = vertex(root_, 0);
    bool added = false;
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      if (rank == root_) continue;
      std::vector<std::uint32_t> sinks;
      for (std::uint32_t hop = 1; hop <= hops_; ++hop) sinks.push_back(vertex(rank, hop));
      if (flow.run(std::span(&source, 1), sinks, wanted) >= wanted) continue;
      const std::vector<bool> near = flow.source_side(std::span(&source, 1));
      std::vector<int> cut;
      for (std::uint32_t a = 0; a < columns.size(); ++a) {
        if (!near[flow.tail(a)] || near[flow.head(a)]) continue;
        cut.push_back(columns[a]);
      }
      add_cut(std::move(cut));
      added = true;
    }
    return added;
  }

  const FlowNetwork& network_;
  std::uint32_t root_;
  std::int64_t rate_;
  std::uint32_t hops_;
  std::uint32_t ranks_ = 0;
  int columns_ = 0;
  std::vector<int> hop_column_;
  std::vector<int> row_, column_;
  std::vector<double> value_, lower_, upper_;
  ClpSimplex clp_;
};

}  // namespace

std::string_view to_string(HeightFloor floor) {
  constexpr std::array<std::string_view, 4> names = {"", "too few trees", "crosses a full cut too late", "hop program"};
  return names[static_cast<std::size_t>(floor)];
}

HeightFloor find_height_floor(const Topology& topology, Direction direction, Rank root, std::uint32_t max_height,
                              std::size_t max_trees) {
  const planners::RootNetwork network = network_of(topology, direction, root);
  planners::RootNetwork slower = network;
  slower.rate = static_cast<std::int64_t>(static_cast<double>(network.rate) / (1 + gap));
  if (planners::min_tree_depth(slower, max_trees) > max_height) return HeightFloor::count;
  if (max_height == 2 && is_cut_too_late(network)) return HeightFloor::cut;
  if (topology.rank_count() > max_program_ranks || topology.rank_count() < 3) return HeightFloor::none;
  return HopProgram(network, max_height).is_short() ? HeightFloor::program : HeightFloor::none;
}

}  // namespace espalier::bench
