#pragma once

// Tested by: tests/property/planners/pruned_packing_test.cpp

#include <cstdint>
#include <span>
#include <vector>

#include "base/id.h"
#include "topology/topology.h"

namespace espalier {

/// Which way data flows: along the links, or against them (what holds for gathering on the reversed graph holds for
/// scattering on the graph itself).
enum class Direction : std::uint8_t { forward, reversed };

/// One arc of a flow network: a link, or the backplane of a node (`link` is none).
struct FlowArc {
  std::uint32_t tail = 0;
  std::uint32_t head = 0;
  std::int64_t capacity = 0;
  LinkId link;
};

/// A topology as the planners' capacity graph: integer capacities, and node limits turned into arcs.
///
/// Vertex i stands for node i; every link is an arc of its own. Backplanes that the links cannot fill are left out. A
/// node that only forwards and has a smaller one is split:
/// vertex i takes what enters, a further vertex gives what leaves, and an arc of the backplane's capacity joins them. A
/// rank's backplane is shared by what enters and what leaves it, which no flow network can say; it is split into one
/// arc for each way, each as large as the whole. So the network never allows less than the machine does: bounds stay
/// valid, and a plan's exact load (compute_loads) tells when it has more traffic on the backplane than that. Flows to
/// one rank share it exactly (gather_flow in planners/bounds/cut_rate.h).
///
/// A rank that must not relay has two vertices that no arc joins: what it receives ends in one, and what it brings
/// begins at the other. So no flow passes it.
class FlowNetwork {
 public:
  FlowNetwork(const Topology& topology, Direction direction);
  /// A network that is no topology's, such as a quotient of one: ranks receive and send at the same vertex.
  FlowNetwork(std::size_t vertex_count, std::vector<FlowArc> arcs, std::vector<std::uint32_t> rank_vertices);

  /// The same network with other capacities, one per arc; zero closes an arc.
  [[nodiscard]] FlowNetwork with_capacities(std::span<const std::int64_t> capacities) const;

  [[nodiscard]] std::size_t vertex_count() const { return vertex_count_; }
  /// Link i is arc i; the arcs of backplanes follow.
  [[nodiscard]] std::span<const FlowArc> arcs() const { return arcs_; }
  /// The arcs that leave a vertex, and those that enter it, by number.
  [[nodiscard]] std::span<const std::uint32_t> arcs_from(std::uint32_t vertex) const { return out_[vertex]; }
  [[nodiscard]] std::span<const std::uint32_t> arcs_to(std::uint32_t vertex) const { return in_[vertex]; }
  [[nodiscard]] std::size_t rank_count() const { return rank_vertices_.size(); }
  /// Where a rank receives. A rank that may relay also sends from there.
  [[nodiscard]] std::uint32_t vertex_of(Rank rank) const { return rank_vertices_[rank.index()]; }
  /// Where what a rank brings begins.
  [[nodiscard]] std::uint32_t source_of(Rank rank) const { return source_vertices_[rank.index()]; }
  /// The rank into which an arc leads that is the receiving side of its backplane; none for other arcs.
  [[nodiscard]] Rank entered_by(const FlowArc& arc) const { return arc.link.is_none() ? rank_at(arc.head) : Rank(); }
  [[nodiscard]] std::span<const std::uint32_t> source_vertices() const { return source_vertices_; }
  [[nodiscard]] std::span<const std::uint32_t> rank_vertices() const { return rank_vertices_; }
  /// The rank at a vertex, of both where it has two; none at vertices that only forward.
  [[nodiscard]] Rank rank_at(std::uint32_t vertex) const {
    return vertex < rank_at_.size() ? rank_at_[vertex] : Rank();
  }
  /// Bytes per second that one unit of capacity stands for: the greatest common divisor of all rates.
  [[nodiscard]] std::int64_t capacity_unit() const { return capacity_unit_; }
  [[nodiscard]] Direction direction() const { return direction_; }

 private:
  void index();

  std::size_t vertex_count_ = 0;
  std::vector<FlowArc> arcs_;
  std::vector<std::vector<std::uint32_t>> out_, in_;  ///< By vertex.
  std::vector<std::uint32_t> rank_vertices_;
  std::vector<std::uint32_t> source_vertices_;
  std::vector<Rank> rank_at_;
  std::int64_t capacity_unit_ = 1;
  Direction direction_ = Direction::forward;
};

}  // namespace espalier
