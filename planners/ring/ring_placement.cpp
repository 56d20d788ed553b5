#include "planners/ring/ring_placement.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"

namespace espalier::planners {

namespace {

/// A cycle, or a part of one, over links.
struct RingPiece {
  Rational rate;  ///< Bytes per second.
  std::vector<Rank> order;
  std::vector<Path> hops;
};

class LinkChooser {
 public:
  LinkChooser(const Topology& topology, const ResourceGraph& graph) : graph_(graph) {
    for (const ResourceGraph::Edge& edge : graph.edges) {
      std::vector<Rational>& room = room_.emplace_back();
      for (const LinkId link : edge.links) room.emplace_back(topology.link(link).bandwidth().bytes_per_second);
    }
  }

  /// The cycle in as many pieces as its links need.
  std::vector<RingPiece> place(const ColumnSolution::Part& part) {
    std::vector<RingPiece> pieces = {{part.amount * graph_.unit, {}, {}}};
    bool begins = true;
    for (const std::uint32_t e : part.column.edges) {
      if (begins) {
        for (RingPiece& piece : pieces) {
          piece.order.emplace_back(graph_.node_ranks[graph_.edges[e].tail]);
          piece.hops.emplace_back();
        }
      }
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        if (auto rest = extend(pieces[i], e)) pieces.push_back(*std::move(rest));
      }
      begins = graph_.node_ranks[graph_.edges[e].head] != ResourceGraph::no_rank;
    }
    return pieces;
  }

 private:
  /// Puts the piece on one of the edge's links; what does not fit there comes back as a piece of its own.
  std::optional<RingPiece> extend(RingPiece& piece, std::uint32_t e) {
    std::vector<Rational>& room = room_[e];
    std::size_t chosen = 0;
    for (std::size_t i = 1; i < room.size(); ++i) {
      const bool fits = piece.rate <= room[i];
      const bool chosen_fits = piece.rate <= room[chosen];
      if (fits ? !chosen_fits || room[i] < room[chosen] : !chosen_fits && room[chosen] < room[i]) chosen = i;
    }
    std::optional<RingPiece> rest;
    if (room[chosen] < piece.rate) {
      ESPALIER_CHECK(room[chosen] > 0, "a program's rings do not fit on their links");
      rest = piece;
      piece.rate = room[chosen];
      rest->rate -= piece.rate;
    }
    room[chosen] -= piece.rate;
    piece.hops.back().push_back(graph_.edges[e].links[chosen]);
    return rest;
  }

  const ResourceGraph& graph_;
  std::vector<std::vector<Rational>> room_;  ///< By edge and link, in bytes per second.
};

/// The seconds in which every piece carries a whole number of bytes; 0 when that is too long.
std::int64_t common_period(const std::vector<RingPiece>& pieces) {
  constexpr std::int64_t longest = std::int64_t{1} << 20;
  const BigInteger max_bytes = BigInteger(1) << 62;
  Rational sum = 0;
  for (const RingPiece& piece : pieces) sum += piece.rate;
  BigInteger period = 1;
  for (const RingPiece& piece : pieces) {
    period = lcm(period, BigInteger(denominator(piece.rate)));
    if (period > longest || sum * period > max_bytes) return 0;
  }
  return period.convert_to<std::int64_t>();
}

}  // namespace

RingSet place_rings(const Topology& topology, const ResourceGraph& graph,
                    const std::vector<ColumnSolution::Part>& parts) {
  std::vector<ColumnSolution::Part> largest_first = parts;
  std::stable_sort(largest_first.begin(), largest_first.end(),
                   [](const auto& a, const auto& b) { return a.amount > b.amount; });
  LinkChooser links(topology, graph);
  std::vector<RingPiece> pieces;
  for (const ColumnSolution::Part& part : largest_first) {
    std::vector<RingPiece> placed = links.place(part);
    std::move(placed.begin(), placed.end(), std::back_inserter(pieces));
  }
  RingSet set;
  set.period = common_period(pieces);
  set.rounded = set.period == 0;
  if (set.rounded) set.period = 1;
  for (RingPiece& piece : pieces) {
    const Rational bytes = piece.rate * set.period;
    const BigInteger whole = numerator(bytes) / denominator(bytes);
    if (whole > 0)
      set.rings.push_back({std::move(piece.order), std::move(piece.hops), whole.convert_to<std::int64_t>()});
  }
  return set;
}

}  // namespace espalier::planners
