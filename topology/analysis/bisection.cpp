#include "topology/analysis/bisection.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>

#include "base/check.h"
#include "base/random.h"
#include "topology/analysis/flow_network.h"
#include "topology/analysis/max_flow.h"

namespace espalier {

namespace {

using Flow = __int128;
using Side = std::vector<bool>;  ///< By rank: sends (true) or receives.

class Cutter {
 public:
  explicit Cutter(const Topology& topology) : network_(topology, Direction::forward), flow_(network_.vertex_count()) {
    for (const FlowArc& arc : network_.arcs()) flow_.add_arc(arc.tail, arc.head, arc.capacity);
  }

  /// What the first ranks of `order` that send can give to those that receive; stops at `limit`.
  Flow between(const std::vector<std::uint32_t>& senders, const std::vector<std::uint32_t>& receivers, Flow limit) {
    work_ += static_cast<std::int64_t>(network_.arcs().size());
    return flow_.run(senders, receivers, limit);
  }

  Flow of(const Side& sends, Flow limit) {
    senders_.clear();
    receivers_.clear();
    for (std::size_t i = 0; i < sends.size(); ++i) {
      (sends[i] ? senders_ : receivers_).push_back(vertex(i, sends[i]));
    }
    return between(senders_, receivers_, limit);
  }

  [[nodiscard]] std::uint32_t vertex(std::size_t rank, bool sends) const {
    return sends ? network_.source_of(Rank(rank)) : network_.vertex_of(Rank(rank));
  }
  /// Arcs looked at so far, about.
  [[nodiscard]] std::int64_t work() const { return work_; }

  Bisection result(const Side& sends, bool exact) {
    Bisection found;
    found.exact = exact;
    const Flow total = of(sends, MaxFlow<Flow>::no_limit) * network_.capacity_unit();
    found.bandwidth = {static_cast<std::int64_t>(std::min<Flow>(total, std::numeric_limits<std::int64_t>::max()))};
    for (std::size_t i = 0; i < sends.size(); ++i) {
      if (sends[i]) found.senders.emplace_back(i);
    }
    const std::vector<bool> near = flow_.source_side(senders_);
    for (const FlowArc& arc : network_.arcs()) {
      if (!near[arc.tail] || near[arc.head]) continue;
      if (arc.link.is_none()) {
        const Rank rank = network_.rank_at(arc.tail);
        const std::uint32_t own = rank.is_none() ? arc.tail : network_.vertex_of(rank);
        found.backplanes.emplace_back(std::min(own, arc.head));  // the node's own vertex is the lowest one
      } else {
        found.cut.push_back(arc.link);
      }
    }
    return found;
  }

 private:
  FlowNetwork network_;
  MaxFlow<Flow> flow_;
  std::vector<std::uint32_t> senders_, receivers_;
  std::int64_t work_ = 0;
};

/// Every link has a way back at the same rate: then both directions of a cut carry the same.
bool is_symmetric(const Topology& topology) {
  std::map<std::pair<NodeId, NodeId>, __int128> net;
  for (const Link& link : topology.links()) {
    const __int128 rate = link.bandwidth().bytes_per_second;
    net[{std::min(link.tail, link.head), std::max(link.tail, link.head)}] += link.tail < link.head ? rate : -rate;
  }
  return std::ranges::all_of(net, [](const auto& pair) { return pair.second == 0; });
}

/// Branch and bound over the ranks: what the ranks placed so far can send across only grows with every further rank.
class ExactSearch {
 public:
  ExactSearch(Cutter& cutter, std::size_t ranks, bool symmetric, const Side& start, Flow start_flow)
      : cutter_(cutter), symmetric_(symmetric), sends_(ranks), best_(start), best_flow_(start_flow) {}

  const Side& run() {
    place(0);
    return best_;
  }

 private:
  void place(std::size_t rank) {
    const std::size_t larger_half = (sends_.size() + 1) / 2;
    if (!senders_.empty() && !receivers_.empty() && cutter_.between(senders_, receivers_, best_flow_) >= best_flow_) {
      return;
    }
    if (rank == sends_.size()) {
      best_ = sends_;
      best_flow_ = cutter_.between(senders_, receivers_, MaxFlow<Flow>::no_limit);
      return;
    }
    for (const bool sends : {true, false}) {
      std::vector<std::uint32_t>& side = sends ? senders_ : receivers_;
      if (side.size() == larger_half || (rank == 0 && symmetric_ && !sends)) continue;
      sends_[rank] = sends;
      side.push_back(cutter_.vertex(rank, sends));
      place(rank + 1);
      side.pop_back();
    }
  }

  Cutter& cutter_;
  bool symmetric_;
  Side sends_;
  Side best_;
  Flow best_flow_;
  std::vector<std::uint32_t> senders_, receivers_;
};

/// The first half of an order of all ranks.
Side first_half(const std::vector<std::size_t>& order) {
  Side sends(order.size(), false);
  for (std::size_t i = 0; i < order.size() / 2; ++i) sends[order[i]] = true;
  return sends;
}

/// The ranks nearest to `start` first.
std::vector<std::size_t> by_distance(const Topology& topology, Rank start) {
  std::vector<std::size_t> order;
  std::vector<bool> seen(topology.node_count(), false);
  std::vector<NodeId> queue{topology.node_of(start)};
  seen[queue.front().index()] = true;
  for (std::size_t done = 0; done < queue.size(); ++done) {
    const NodeId node = queue[done];
    if (const Rank rank = topology.rank_of(node); !rank.is_none()) order.push_back(rank.index());
    const auto visit = [&](NodeId next) {
      if (!seen[next.index()]) queue.push_back(next);
      seen[next.index()] = true;
    };
    for (const LinkId id : topology.out_links(node)) visit(topology.link(id).head);
    for (const LinkId id : topology.in_links(node)) visit(topology.link(id).tail);
  }
  for (std::size_t i = 0; i < topology.rank_count(); ++i) {
    if (!seen[topology.node_of(Rank(i)).index()]) order.push_back(i);
  }
  return order;
}

/// Splits that a machine's structure suggests.
std::vector<Side> structured_halves(const Topology& topology) {
  const std::size_t count = topology.rank_count();
  std::vector<Side> halves;
  std::vector<std::size_t> order(count);
  const auto add_sorted_by = [&](auto key) {
    for (std::size_t i = 0; i < count; ++i) order[i] = i;
    std::ranges::stable_sort(order, {}, key);
    halves.push_back(first_half(order));
  };
  const auto node = [&](std::size_t i) -> const Node& { return topology.node(topology.node_of(Rank(i))); };
  add_sorted_by([](std::size_t i) { return i; });
  // Hosts in order of their first rank, so that box10 does not come before box2.
  std::map<std::string, std::size_t> first_of_host;
  for (std::size_t i = 0; i < count; ++i) first_of_host.emplace(node(i).host, i);
  add_sorted_by([&](std::size_t i) { return first_of_host[node(i).host]; });
  add_sorted_by([&](std::size_t i) { return node(i).rail.value_or(0); });
  for (std::size_t stride = 1; 2 * stride <= count; ++stride) {
    if (count % (2 * stride) == 0) add_sorted_by([&](std::size_t i) { return i / stride % 2; });
  }
  const std::size_t step = std::max<std::size_t>(1, count / 32);
  for (std::size_t i = 0; i < count; i += step) halves.push_back(first_half(by_distance(topology, Rank(i))));
  return halves;
}

/// About how many arcs a heuristic search may look at: a fraction of a second.
constexpr std::int64_t work_budget = 20'000'000;

struct Best {
  Side sends;
  Flow flow = 0;
};

Best best_structured_half(const Topology& topology, Cutter& cutter, bool symmetric) {
  Best best{{}, MaxFlow<Flow>::no_limit};
  for (Side& sends : structured_halves(topology)) {
    for (int turn = 0; turn < (symmetric ? 1 : 2); ++turn) {
      if (!best.sends.empty() && cutter.work() > work_budget) return best;
      const Flow flow = cutter.of(sends, best.flow);
      if (best.sends.empty() || flow < best.flow) best = {sends, flow};
      sends.flip();
    }
  }
  return best;
}

/// Exchanges ranks between the halves while that helps and the budget lasts; the pairs come from a fixed seed.
void exchange(const Topology& topology, Cutter& cutter, Best& best) {
  Random random(topology.rank_count());
  const std::size_t patience = 4 * topology.rank_count();
  for (std::size_t failures = 0; failures < patience && cutter.work() < 2 * work_budget;) {
    std::size_t sender = 0;
    std::size_t receiver = 0;
    do sender = random.below(best.sends.size());
    while (!best.sends[sender]);
    do receiver = random.below(best.sends.size());
    while (best.sends[receiver]);
    Side changed = best.sends;
    changed[sender] = false;
    changed[receiver] = true;
    const Flow flow = cutter.of(changed, best.flow);
    if (flow < best.flow) {
      best = {std::move(changed), flow};
      failures = 0;
    } else {
      ++failures;
    }
  }
}

}  // namespace

std::optional<Bisection> find_bisection(const Topology& topology) {
  if (topology.rank_count() < 2) return {};
  Cutter cutter(topology);
  const bool symmetric = is_symmetric(topology);
  Best best = best_structured_half(topology, cutter, symmetric);
  if (topology.rank_count() <= max_exact_bisection_ranks) {
    ExactSearch search(cutter, topology.rank_count(), symmetric, best.sends, best.flow);
    return cutter.result(search.run(), true);
  }
  exchange(topology, cutter, best);
  return cutter.result(best.sends, false);
}

Bisection cut_between_halves(const Topology& topology, const std::vector<Rank>& senders) {
  ESPALIER_CHECK(!senders.empty() && senders.size() < topology.rank_count(), "a cut needs ranks on both sides");
  Side sends(topology.rank_count(), false);
  for (const Rank rank : senders) sends[rank.index()] = true;
  return Cutter(topology).result(sends, false);
}

}  // namespace espalier
