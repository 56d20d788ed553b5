#include "planners/nccl/nccl_relabel.h"

#include <algorithm>
#include <initializer_list>

namespace espalier::planners {
namespace {

class Places {
 public:
  Places(const Neighbours& neighbours, bool both_ways, const RankGroups& groups, const LogicalGraph& graph,
         const std::vector<std::uint32_t>& sends)
      : neighbours_(neighbours),
        both_ways_(both_ways),
        groups_(groups),
        graph_(graph),
        sends_(sends),
        in_place_(groups.group_of.size()) {
    for (std::size_t rank = 0; rank < in_place_.size(); ++rank) in_place_[rank] = Rank(rank);
  }

  std::optional<std::vector<Rank>> run() {
    std::size_t i = 0;
    while (i < neighbours_.size() && has_route(i)) ++i;
    if (i < neighbours_.size()) find_pairs();
    for (; i < neighbours_.size(); ++i) {
      if (!has_route(i) && !give_route(i)) return std::nullopt;
    }
    return in_place_;
  }

 private:
  void find_pairs() {
    pairs_of_.resize(in_place_.size());
    for (std::size_t i = 0; i < neighbours_.size(); ++i) {
      pairs_of_[neighbours_[i].first.index()].push_back(i);
      pairs_of_[neighbours_[i].second.index()].push_back(i);
    }
  }

  [[nodiscard]] bool has_route(std::size_t pair) const {
    const Rank from = in_place_[neighbours_[pair].first.index()], to = in_place_[neighbours_[pair].second.index()];
    return !graph_.hops(from, to).empty() && (!both_ways_ || !graph_.hops(to, from).empty());
  }

  /// Routes that the neighbours of these places miss.
  [[nodiscard]] std::size_t missing_beside(std::initializer_list<Rank> places) const {
    std::size_t missing = 0;
    for (const Rank place : places) {
      for (const std::size_t pair : pairs_of_[place.index()]) missing += has_route(pair) ? 0U : 1U;
    }
    return missing;
  }

  void exchange(Rank one, Rank other) { std::swap(in_place_[one.index()], in_place_[other.index()]); }

  [[nodiscard]] const std::vector<Rank>& beside(Rank place) const {
    return groups_.groups[groups_.group_of[place.index()]];
  }

  /// Whether none of the neighbours of a place is in another machine.
  [[nodiscard]] bool is_inside(Rank place) const {
    return std::ranges::all_of(pairs_of_[place.index()], [&](std::size_t pair) {
      const auto [first, second] = neighbours_[pair];
      return groups_.group_of[first.index()] == groups_.group_of[second.index()];
    });
  }

  /// Lets the sender of the pair, or where data goes both ways also the other, change places with a GPU of its machine,
  /// if the pair then has a route and fewer are missing. What talks to other machines keeps its place, and with it the
  /// NIC that each of these ways goes over.
  bool give_route(std::size_t pair) {
    const auto [first, second] = neighbours_[pair];
    return give_route_by(pair, first) || (both_ways_ && give_route_by(pair, second));
  }

  bool give_route_by(std::size_t pair, Rank end) {
    std::vector<Rank> others = groups_.groups[groups_.group_of[end.index()]];
    std::erase_if(others, [&](Rank other) { return other == end || !is_inside(other); });
    std::ranges::stable_sort(others, {}, [&](Rank other) { return sends_[in_place_[other.index()].index()]; });
    for (const Rank other : others) {
      const std::size_t before = missing_beside({end, other});
      std::swap(in_place_[end.index()], in_place_[other.index()]);
      if (has_route(pair) && missing_beside({end, other}) < before) return true;
      std::swap(in_place_[end.index()], in_place_[other.index()]);
    }
    return false;
  }

  const Neighbours& neighbours_;
  bool both_ways_;
  const RankGroups& groups_;
  const LogicalGraph& graph_;
  const std::vector<std::uint32_t>& sends_;
  std::vector<Rank> in_place_;                      ///< By place.
  std::vector<std::vector<std::size_t>> pairs_of_;  ///< By place, once a route is missing.
};

}  // namespace

RouteRelabelling::RouteRelabelling(const RankGroups& groups, const LogicalGraph& graph)
    : groups_(groups), graph_(graph), sends_(groups.group_of.size()) {}

std::optional<std::vector<Rank>> RouteRelabelling::places(const Neighbours& neighbours, bool both_ways) {
  auto places = Places(neighbours, both_ways, groups_, graph_, sends_).run();
  if (!places) return places;
  for (const auto& [first, second] : neighbours) {
    if (groups_.group_of[first.index()] == groups_.group_of[second.index()]) continue;
    ++sends_[(*places)[first.index()].index()];
    if (both_ways) ++sends_[(*places)[second.index()].index()];
  }
  return places;
}

}  // namespace espalier::planners
