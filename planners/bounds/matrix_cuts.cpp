#include "planners/bounds/matrix_cuts.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace espalier::planners {
namespace {

using NodeSet = std::vector<NodeId>;

/// What crosses the border of a set, both ways.
struct Crossing {
  __int128 left = 0;     ///< Shares.
  __int128 entered = 0;  ///< Shares.
  __int128 leaving = 0;  ///< Bytes per second.
  __int128 entering = 0;
};

/// Measures sets of nodes, each by what is in it alone.
class CutMeter {
 public:
  CutMeter(const Topology& topology, const Collective& collective)
      : topology_(topology), collective_(collective), inside_(topology.node_count(), false) {}

  Crossing measure(const NodeSet& nodes) {
    for (const NodeId node : nodes) inside_[node.index()] = true;
    Crossing crossing;
    for (const NodeId node : nodes) add(node, crossing);
    for (const NodeId node : nodes) inside_[node.index()] = false;
    return crossing;
  }

 private:
  void add(NodeId node, Crossing& crossing) const {
    for (const LinkId link : topology_.out_links(node)) {
      if (!inside_[topology_.link(link).head.index()])
        crossing.leaving += topology_.link(link).bandwidth().bytes_per_second;
    }
    for (const LinkId link : topology_.in_links(node)) {
      if (!inside_[topology_.link(link).tail.index()])
        crossing.entering += topology_.link(link).bandwidth().bytes_per_second;
    }
    const Rank rank = topology_.rank_of(node);
    if (rank.is_none()) return;
    for (std::size_t i = 0; i < topology_.rank_count(); ++i) {
      if (inside_[topology_.node_of(Rank(i)).index()]) continue;
      crossing.left += collective_.block(rank, Rank(i));
      crossing.entered += collective_.block(Rank(i), rank);
    }
  }

  const Topology& topology_;
  const Collective& collective_;
  std::vector<bool> inside_;
};

/// Every rank with what hangs on it alone, every host.
std::vector<NodeSet> small_sets(const Topology& topology) {
  std::vector<NodeSet> sets;
  std::map<std::string_view, NodeSet> hosts;
  for (std::size_t i = 0; i < topology.node_count(); ++i) {
    const Node& node = topology.node(NodeId(i));
    if (node.is_rank) sets.push_back({NodeId(i)});
    if (!node.host.empty()) hosts[node.host].emplace_back(i);
  }
  for (auto& [host, nodes] : hosts) sets.push_back(std::move(nodes));
  return sets;
}

/// Level by level: each switch that is no part of a host, with the sets below whose ways out all lead to it.
class Levels {
 public:
  explicit Levels(const Topology& topology) : topology_(topology), set_of_(topology.node_count()) {
    for (std::size_t i = 0; i < topology.node_count(); ++i) set_of_[i] = i;
    std::map<std::string_view, std::size_t> hosts;
    for (std::size_t i = 0; i < topology.node_count(); ++i) {
      const Node& node = topology.node(NodeId(i));
      if (!node.host.empty()) set_of_[i] = hosts.try_emplace(node.host, i).first->second;
    }
  }

  std::vector<NodeSet> run() {
    constexpr int max_levels = 6;
    std::vector<NodeSet> found;
    for (int level = 0; level < max_levels; ++level) {
      if (!join()) break;
      std::map<std::size_t, NodeSet> sets;
      for (std::size_t i = 0; i < set_of_.size(); ++i) sets[set_of_[i]].emplace_back(i);
      for (auto& [set, nodes] : sets) {
        if (nodes.size() > 1 && nodes.size() < set_of_.size()) found.push_back(std::move(nodes));
      }
    }
    return found;
  }

 private:
  /// Every set with ranks joins the set that all its links lead to; false where none does.
  bool join() {
    std::map<std::size_t, std::set<std::size_t>> neighbours;
    std::set<std::size_t> with_ranks;
    for (const Link& link : topology_.links()) {
      const std::size_t tail = set_of_[link.tail.index()];
      const std::size_t head = set_of_[link.head.index()];
      if (tail == head) continue;
      neighbours[tail].insert(head);
      neighbours[head].insert(tail);
    }
    for (std::size_t i = 0; i < topology_.rank_count(); ++i)
      with_ranks.insert(set_of_[topology_.node_of(Rank(i)).index()]);
    std::map<std::size_t, std::size_t> joins;
    for (const std::size_t set : with_ranks) {
      const auto& near = neighbours[set];
      if (near.size() == 1 && !with_ranks.contains(*near.begin())) joins[set] = *near.begin();
    }
    for (std::size_t& set : set_of_) {
      if (const auto joined = joins.find(set); joined != joins.end()) set = joined->second;
    }
    return !joins.empty();
  }

  const Topology& topology_;
  std::vector<std::size_t> set_of_;  ///< By node: the number of a node of its set.
};

NodeSet complement(const Topology& topology, const NodeSet& nodes) {
  std::vector<bool> inside(topology.node_count(), false);
  for (const NodeId node : nodes) inside[node.index()] = true;
  NodeSet others;
  for (std::size_t i = 0; i < inside.size(); ++i) {
    if (!inside[i]) others.emplace_back(i);
  }
  return others;
}

}  // namespace

BlockCut tightest_block_cut(const Topology& topology, const Collective& collective) {
  const std::int64_t line = collective.largest_line();
  CutMeter meter(topology, collective);
  std::vector<NodeSet> sets = small_sets(topology);
  for (NodeSet& set : Levels(topology).run()) sets.push_back(std::move(set));
  const NodeSet* tightest = nullptr;
  bool is_left = true;
  __int128 most = 0;
  __int128 least = 1;  // crossing over capacity
  const auto consider = [&](const NodeSet& set, __int128 crossing, __int128 capacity, bool leaves) {
    if (crossing == 0 || capacity == 0) return;
    const double ratio = static_cast<double>(crossing) / static_cast<double>(capacity);
    const double best = static_cast<double>(most) / static_cast<double>(least);
    if (ratio < best * (1 - 1e-12)) return;
    if (Rational(BigInteger(crossing), BigInteger(capacity)) <= Rational(BigInteger(most), BigInteger(least))) return;
    tightest = &set;
    is_left = leaves;
    most = crossing;
    least = capacity;
  };
  for (const NodeSet& set : sets) {
    const Crossing crossing = meter.measure(set);
    consider(set, crossing.left, crossing.leaving, true);
    consider(set, crossing.entered, crossing.entering, false);
  }
  BlockCut cut;
  if (tightest == nullptr) return cut;
  cut.nodes = is_left ? *tightest : complement(topology, *tightest);
  cut.crossing = Rational(BigInteger(most), BigInteger(line));
  cut.time_per_byte = cut.crossing / Rational(BigInteger(least));
  return cut;
}

BlockCut block_cut(const Topology& topology, const Collective& collective, const std::vector<bool>& inside) {
  BlockCut cut;
  for (std::size_t i = 0; i < inside.size(); ++i) {
    if (inside[i]) cut.nodes.emplace_back(i);
  }
  const Crossing crossing = CutMeter(topology, collective).measure(cut.nodes);
  if (crossing.left == 0 || crossing.leaving == 0) return cut;
  cut.crossing = Rational(BigInteger(crossing.left), BigInteger(collective.largest_line()));
  cut.time_per_byte = cut.crossing / Rational(BigInteger(crossing.leaving));
  return cut;
}

}  // namespace espalier::planners
