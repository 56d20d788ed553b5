#include "topology/routes.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

namespace espalier {

namespace {

constexpr std::uint32_t no_label = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

/// What a way costs. Less is better in this order; a label is kept when it is wider than all cheaper ones at its node.
struct Cost {
  std::int64_t latency = 0;
  std::int32_t hops = 0;
  std::int64_t bottleneck = unlimited;

  friend bool operator==(const Cost&, const Cost&) = default;
  [[nodiscard]] bool better_than(const Cost& other) const {
    return std::tie(latency, hops, other.bottleneck) < std::tie(other.latency, other.hops, bottleneck);
  }
};

/// One of the equally good last steps into a label.
struct Step {
  std::uint32_t label = no_label;  ///< The label before the step.
  LinkId link;
};

struct Label {
  NodeId node;
  Cost cost;
  std::vector<Step> steps;
};

struct Candidate {
  Cost cost;
  std::uint64_t ordinal = 0;  ///< Order of discovery: ties are met in the same order everywhere.
  NodeId node;
  Step step;

  /// As std::priority_queue wants it: the last one in this order comes out first.
  friend bool operator<(const Candidate& a, const Candidate& b) {
    if (a.cost == b.cost) return a.ordinal > b.ordinal;
    return b.cost.better_than(a.cost);
  }
};

std::int64_t narrowed(std::int64_t bottleneck, Bandwidth backplane) {
  return backplane.bytes_per_second == 0 ? bottleneck : std::min(bottleneck, backplane.bytes_per_second);
}

/// Dijkstra over (latency, links, width): every way that no other one beats in both latency and width.
class Search {
 public:
  Search(const Topology& topology, Rank src) : topology_(topology), labels_of_(topology.node_count()) {
    const NodeId start = topology.node_of(src);
    labels_.push_back({start, {0, 0, narrowed(unlimited, topology.node(start).bandwidth)}, {}});
    expand(0);
    while (!pending_.empty()) {
      const Candidate next = pending_.top();
      pending_.pop();
      if (next.node != start) settle(next);
    }
  }

  [[nodiscard]] const std::vector<Label>& labels() const { return labels_; }
  [[nodiscard]] const std::vector<std::uint32_t>& labels_of(NodeId node) const { return labels_of_[node.index()]; }

 private:
  void settle(const Candidate& next) {
    std::vector<std::uint32_t>& known = labels_of_[next.node.index()];
    if (!known.empty()) {
      Label& widest = labels_[known.back()];
      if (widest.cost == next.cost) widest.steps.push_back(next.step);
      if (widest.cost.bottleneck >= next.cost.bottleneck) return;
    }
    const auto label = static_cast<std::uint32_t>(labels_.size());
    known.push_back(label);
    labels_.push_back({next.node, next.cost, {next.step}});
    if (topology_.rank_of(next.node).is_none()) expand(label);
  }

  void expand(std::uint32_t label) {
    for (const LinkId id : topology_.out_links(labels_[label].node)) {
      const Link& link = topology_.link(id);
      Cost cost = labels_[label].cost;
      cost.latency = link.latency.count > unlimited - cost.latency ? unlimited : cost.latency + link.latency.count;
      ++cost.hops;
      cost.bottleneck =
          narrowed(std::min(cost.bottleneck, link.bandwidth().bytes_per_second), topology_.node(link.head).bandwidth);
      if (hopeless(link.head, cost)) continue;
      pending_.push({cost, discovered_++, link.head, {label, id}});
    }
  }

  [[nodiscard]] bool hopeless(NodeId node, const Cost& cost) const {
    const std::vector<std::uint32_t>& known = labels_of_[node.index()];
    return !known.empty() && labels_[known.back()].cost != cost &&
           labels_[known.back()].cost.bottleneck >= cost.bottleneck;
  }

  const Topology& topology_;
  std::vector<Label> labels_;
  std::vector<std::vector<std::uint32_t>> labels_of_;
  std::priority_queue<Candidate> pending_;
  std::uint64_t discovered_ = 0;
};

/// The label of a destination with the least latency + size/bottleneck.
std::uint32_t fastest(const Search& search, NodeId node, Bytes size) {
  std::uint32_t best = no_label;
  __int128 best_time = 0;
  for (const std::uint32_t label : search.labels_of(node)) {
    const Cost& cost = search.labels()[label].cost;
    const __int128 time = cost.latency + transfer_time_wide(size, {cost.bottleneck});
    if (best != no_label && time >= best_time) continue;
    best = label;
    best_time = time;
  }
  return best;
}

/// Which of several equally good last steps into a label each destination behind it takes. Destinations that share the
/// label take turns by their number, counted in the stride in which they follow each other (GPU 3 of every box: boxes),
/// so that all sources agree on the step and none of the steps is left out. Where only one destination is left, the
/// sources take turns.
class Dealer {
 public:
  /// Requires: destinations in ascending order.
  Dealer(Rank src, std::uint32_t variant, const std::vector<std::uint32_t>& destinations) : variant_(variant) {
    if (destinations.size() == 1) {
      shift_ = src.value();
      return;
    }
    stride_ = 0;
    for (std::size_t i = 1; i < destinations.size(); ++i) {
      stride_ = std::gcd(stride_, destinations[i] - destinations[i - 1]);
    }
  }

  [[nodiscard]] std::size_t deal(std::uint32_t destination, std::size_t steps) const {
    return (std::size_t{destination} / stride_ + shift_ + variant_) % steps;
  }

 private:
  std::size_t variant_;
  std::uint32_t stride_ = 1;
  std::size_t shift_ = 0;
};

/// Reads routes to all ranks off a search, one variant after the other.
class RouteReader {
 public:
  RouteReader(const Topology& topology, Rank src, Bytes size)
      : src_(src), search_(topology, src), first_(search_.labels().size(), no_label), next_(topology.rank_count()) {
    for (std::uint32_t i = 0; i < topology.rank_count(); ++i) {
      found_.push_back(fastest(search_, topology.node_of(Rank(i)), size));
    }
  }

  std::vector<std::optional<FoundRoute>> read(std::uint32_t variant) {
    const std::vector<Label>& labels = search_.labels();
    std::vector<std::optional<FoundRoute>> routes(found_.size());
    for (std::uint32_t i = 0; i < routes.size(); ++i) {
      if (found_[i] == no_label) continue;
      const Cost& cost = labels[found_[i]].cost;
      routes[i] = FoundRoute{{}, {cost.bottleneck}, {cost.latency}};
      routes[i]->links.resize(static_cast<std::size_t>(cost.hops));
      wait(i, found_[i]);
    }
    // A step leads to a label that was found earlier: from the last label to the first, every destination moves on.
    for (std::size_t label = labels.size(); label-- > 0;) {
      const Label& from = labels[label];
      const std::uint32_t first = std::exchange(first_[label], no_label);
      if (from.steps.empty() || first == no_label) continue;
      const auto place = static_cast<std::size_t>(from.cost.hops) - 1;
      const auto take = [&](std::uint32_t destination, const Step& step) {
        routes[destination]->links[place] = step.link;
        wait(destination, step.label);
      };
      if (from.steps.size() == 1) {
        for (std::uint32_t at = first; at != no_label;) take(std::exchange(at, next_[at]), from.steps.front());
        continue;
      }
      destinations_.clear();
      for (std::uint32_t at = first; at != no_label; at = next_[at]) destinations_.push_back(at);
      std::ranges::sort(destinations_);
      const Dealer dealer(src_, variant, destinations_);
      for (const std::uint32_t at : destinations_) take(at, from.steps[dealer.deal(at, from.steps.size())]);
    }
    return routes;
  }

 private:
  void wait(std::uint32_t destination, std::uint32_t label) {
    next_[destination] = std::exchange(first_[label], destination);
  }

  Rank src_;
  Search search_;
  std::vector<std::uint32_t> found_;         // by rank: the label that its route ends with
  std::vector<std::uint32_t> first_;         // by label: a destination that waits there
  std::vector<std::uint32_t> next_;          // by destination: another one that waits at the same label
  std::vector<std::uint32_t> destinations_;  // of one label
};

}  // namespace

std::vector<std::optional<FoundRoute>> routes_from(const Topology& topology, Rank src, const RouteOptions& options) {
  return RouteReader(topology, src, options.size).read(options.variant);
}

std::vector<std::vector<std::optional<FoundRoute>>> route_variants_from(const Topology& topology, Rank src, Bytes size,
                                                                        std::uint32_t variants) {
  RouteReader reader(topology, src, size);
  std::vector<std::vector<std::optional<FoundRoute>>> routes;
  for (std::uint32_t variant = 0; variant < variants; ++variant) routes.push_back(reader.read(variant));
  return routes;
}

std::optional<FoundRoute> find_route(const Topology& topology, Rank src, Rank dst, const RouteOptions& options) {
  return std::move(routes_from(topology, src, options)[dst.index()]);
}

}  // namespace espalier
