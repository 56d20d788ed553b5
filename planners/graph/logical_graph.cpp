#include "planners/graph/logical_graph.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <utility>

#include "base/check.h"

namespace espalier::planners {

namespace {

constexpr std::int64_t unreached = std::numeric_limits<std::int64_t>::max();

std::int64_t cost_of(const FoundRoute& route, Bytes size) {
  const __int128 cost = route.latency.count + transfer_time_wide(size, route.bottleneck);
  constexpr std::int64_t dear = unreached / 4;  // Far from overflow when costs are added up.
  return cost < dear ? static_cast<std::int64_t>(cost) : dear;
}

std::int64_t min_hop_cost(const Topology& topology, Bytes size) {
  std::int64_t least = unreached;
  for (const Link& link : topology.links()) {
    least = std::min(least, cost_of({{}, link.bandwidth(), link.latency}, size));
  }
  return topology.link_count() == 0 ? 0 : least;
}

}  // namespace

LogicalGraph::LogicalGraph(const Topology& topology, Bytes size, std::uint32_t variants)
    : topology_(&topology),
      size_(size),
      variants_(variants),
      min_cost_(min_hop_cost(topology, size)),
      by_rank_(std::make_unique<RankHops[]>(topology.rank_count())) {}

LogicalGraph::LogicalGraph(const Topology& topology, Bytes size, PairRoutes routes) : LogicalGraph(topology, size, 1) {
  routes_ = std::move(routes);
  by_pair_ = std::make_unique<PairHops>();
}

void LogicalGraph::search(Rank from, RankHops& found) const {
  std::vector<Hop>& hops = found.hops;
  auto routes = route_variants_from(*topology_, from, size_, variants_);
  for (std::size_t to = 0; to < rank_count(); ++to) {
    const std::size_t first = hops.size();
    for (auto& variant : routes) {
      std::optional<FoundRoute>& route = variant[to];
      const auto has_same_links = [&](const Hop& hop) { return hop.links == route->links; };
      if (!route || std::any_of(hops.begin() + static_cast<std::ptrdiff_t>(first), hops.end(), has_same_links))
        continue;
      hops.push_back({Rank(to), std::move(route->links), cost_of(*route, size_)});
    }
    std::ranges::sort(hops.begin() + static_cast<std::ptrdiff_t>(first), hops.end(), {}, &Hop::links);
  }
}

const LogicalGraph::RankHops& LogicalGraph::hops_from(Rank from) const {
  RankHops& found = by_rank_[from.index()];
  std::call_once(found.search, [&] { search(from, found); });
  return found;
}

std::span<const Hop> LogicalGraph::hops(Rank from) const { return hops_from(from).hops; }

std::span<const std::uint32_t> LogicalGraph::cheapest_hops(Rank from) const {
  const std::vector<Hop>& hops = hops_from(from).hops;
  RankHops& found = by_rank_[from.index()];
  std::call_once(found.sort, [&] {
    found.cheapest.resize(hops.size());
    std::iota(found.cheapest.begin(), found.cheapest.end(), 0U);
    std::ranges::stable_sort(found.cheapest, {}, [&](std::uint32_t hop) { return hops[hop].cost; });
  });
  return found.cheapest;
}

std::span<const Hop> LogicalGraph::hops_of_pair(Rank from, Rank to) const {
  const std::scoped_lock lock(by_pair_->mutex);
  const auto [at, is_new] = by_pair_->found.try_emplace(std::uint64_t{from.value()} << 32U | to.value());
  if (is_new) {
    for (std::vector<LinkId>& links : routes_(from, to)) {
      FoundRoute route{{}, {unreached}, {}};
      for (const LinkId link : links) {
        route.latency.count += topology_->link(link).latency.count;
        route.bottleneck = std::min(route.bottleneck, topology_->link(link).bandwidth());
      }
      at->second.push_back({to, std::move(links), cost_of(route, size_)});
    }
  }
  return at->second;
}

std::span<const Hop> LogicalGraph::hops(Rank from, Rank to) const {
  if (by_pair_) return hops_of_pair(from, to);
  const std::span<const Hop> all = hops(from);
  const auto [first, last] = std::ranges::equal_range(all, to, {}, &Hop::to);
  return all.subspan(static_cast<std::size_t>(first - all.begin()), static_cast<std::size_t>(last - first));
}

Topology reversed(const Topology& topology) {
  std::vector<Link> links(topology.links().begin(), topology.links().end());
  for (Link& link : links) std::swap(link.tail, link.head);
  Result<Topology> turned =
      Topology::make(topology.name(), {topology.nodes().begin(), topology.nodes().end()}, std::move(links));
  ESPALIER_CHECK(turned.has_value(), "a topology stays one when its links are turned round");
  return std::move(*turned);
}

namespace {

class TreeSearch {
 public:
  TreeSearch(const LogicalGraph& graph, Rank root, LinkLoads& loads)
      : graph_(graph), root_(root), loads_(loads), reached_(graph.rank_count()) {}

  Arborescence run(bool reverse, std::int64_t weight) {
    reached_[root_.index()].cost = 0;
    for (Rank rank = root_; !rank.is_none(); rank = next()) settle(rank, weight);
    return list_edges(reverse);
  }

 private:
  struct Reached {
    std::int64_t cost = unreached;
    std::int64_t load = 0;  ///< Of the fullest link of the hop into it.
    Rank parent;
    const Hop* hop = nullptr;
    std::uint32_t depth = 0;
    bool settled = false;
  };

  /// The cheapest rank that is not settled, or none; of equal ones the first.
  [[nodiscard]] Rank next() {
    while (!open_.empty()) {
      const auto [cost, rank] = open_.top();
      open_.pop();
      if (!reached_[rank].settled && reached_[rank].cost == cost) return Rank(rank);
    }
    return {};
  }

  [[nodiscard]] std::int64_t fullest(const Hop& hop) const {
    std::int64_t most = 0;
    for (const LinkId link : hop.links) most = std::max(most, loads_[link.index()]);
    return most;
  }

  void settle(Rank rank, std::int64_t weight) {
    Reached& from = reached_[rank.index()];
    from.settled = true;
    if (from.hop != nullptr) {
      for (const LinkId link : from.hop->links) loads_[link.index()] += weight;
    }
    if (rank != root_ && !graph_.topology().may_relay(rank)) return;
    if (from.cost > passed_cost_ || rank == root_) {
      passed_cost_ = from.cost;
      find_dearest();
    }
    if (dearest_ < from.cost + graph_.min_cost()) return;
    const std::span<const Hop> hops = graph_.hops(rank);
    for (const std::uint32_t number : graph_.cheapest_hops(rank)) {
      const Hop& hop = hops[number];
      const std::int64_t cost = from.cost + hop.cost;
      if (cost > dearest_) break;
      Reached& to = reached_[hop.to.index()];
      if (to.settled || cost > to.cost) continue;
      const std::int64_t load = fullest(hop);
      if (cost == to.cost && load >= to.load) continue;
      if (cost != to.cost) open_.emplace(cost, hop.to.value());
      to = {cost, load, rank, &hop, from.depth + 1, false};
    }
  }

  /// What the dearest rank costs that is not settled. It only falls, so what was found earlier holds as a limit.
  void find_dearest() {
    dearest_ = -1;
    for (const Reached& reached : reached_) {
      if (!reached.settled) dearest_ = std::max(dearest_, reached.cost);
    }
  }

  /// By depth, and around the circle of ranks from the root on, so that the trees of different roots do not all begin
  /// with the same child.
  [[nodiscard]] Arborescence list_edges(bool reverse) const {
    const std::size_t n = reached_.size();
    std::vector<Rank> order;
    for (std::size_t i = 1; i < n; ++i) order.emplace_back((root_.index() + i) % n);
    std::stable_sort(order.begin(), order.end(),
                     [&](Rank a, Rank b) { return reached_[a.index()].depth < reached_[b.index()].depth; });
    Arborescence tree;
    tree.root = root_;
    for (const Rank rank : order) {
      const Reached& reached = reached_[rank.index()];
      ESPALIER_CHECK(reached.hop != nullptr, "planners are asked only when every rank can be reached");
      tree.edges.push_back({reached.parent, rank, reached.hop->links});
      if (reverse) std::reverse(tree.edges.back().links.begin(), tree.edges.back().links.end());
    }
    return tree;
  }

  const LogicalGraph& graph_;
  Rank root_;
  LinkLoads& loads_;
  std::vector<Reached> reached_;
  using Open = std::pair<std::int64_t, std::uint32_t>;  ///< What a rank costs, and which.
  std::priority_queue<Open, std::vector<Open>, std::greater<>> open_;
  std::int64_t passed_cost_ = 0;
  std::int64_t dearest_ = unreached;
};

}  // namespace

Arborescence cheapest_tree(const LogicalGraph& graph, Rank root, bool reverse, std::int64_t weight, LinkLoads& loads) {
  return TreeSearch(graph, root, loads).run(reverse, weight);
}

}  // namespace espalier::planners
