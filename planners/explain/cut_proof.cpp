#include "planners/explain/cut_proof.h"

#include <utility>

#include "base/check.h"
#include "planners/bounds/cut_bound.h"

namespace espalier::planners {
namespace {

std::size_t count_inside(const Topology& topology, const std::vector<bool>& is_inside) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < topology.rank_count(); ++i) {
    count += is_inside[topology.node_of(Rank(i)).index()] ? 1U : 0U;
  }
  return count;
}

/// How many ranks inside send to a next rank outside: as many as in the other direction.
std::size_t count_steps_out(const Topology& topology, const std::vector<bool>& is_inside) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < topology.rank_count(); ++i) {
    const NodeId next = topology.node_of(Rank((i + 1) % topology.rank_count()));
    count += is_inside[topology.node_of(Rank(i)).index()] && !is_inside[next.index()] ? 1U : 0U;
  }
  return count;
}

Rational part(std::size_t count, std::size_t whole) {
  return make_rational(static_cast<std::int64_t>(count), static_cast<std::int64_t>(whole));
}

/// What crosses a set of nodes in one direction towards `target`; of a node's links and its backplane, the less. With a
/// target, other ranks that must not relay do not count as a path there.
CutProof measure_crossing(const Topology& topology, const std::vector<bool>& is_inside, Direction direction,
                          Rank target) {
  CutProof proof;
  proof.direction = direction;
  proof.ranks_inside = count_inside(topology, is_inside);
  for (std::size_t i = 0; i < topology.node_count(); ++i) {
    const NodeId node(i);
    if (!is_inside[i]) continue;
    const bool leaves = direction == Direction::forward;
    std::vector<LinkId> crossing;
    BigInteger rate = 0;
    for (const LinkId id : leaves ? topology.out_links(node) : topology.in_links(node)) {
      const Link& link = topology.link(id);
      const NodeId far = leaves ? link.head : link.tail;
      if (is_inside[far.index()]) continue;
      if (!target.is_none() && topology.node(far).must_not_relay() && topology.rank_of(far) != target) continue;
      crossing.push_back(id);
      rate += link.bandwidth().bytes_per_second;
    }
    const std::int64_t backplane = topology.node(node).bandwidth.bytes_per_second;
    if (backplane > 0 && rate > backplane) {
      proof.backplanes.push_back(node);
      proof.capacity += backplane;
    } else {
      proof.links.insert(proof.links.end(), crossing.begin(), crossing.end());
      proof.capacity += rate;
    }
  }
  return proof;
}

/// None, for any rank outside; and where ranks must not relay, each one outside that has to be reached: all stand for
/// those that may relay, as the paths to them are the same.
std::vector<Rank> possible_targets(const Topology& topology, const Collective& collective,
                                   const std::vector<bool>& is_inside) {
  std::vector<Rank> targets = {Rank()};
  const bool one_way = slices_have_destination(collective.kind);
  if (topology.first_not_relaying().is_none() || one_way) return targets;
  bool relays = false;
  for (std::size_t i = 0; i < topology.rank_count(); ++i) {
    const Rank rank(i);
    if (is_inside[topology.node_of(rank).index()]) continue;
    const bool gathers = collective.kind == CollectiveKind::gather || collective.kind == CollectiveKind::scatter;
    if (gathers && rank != collective.root) continue;
    if (topology.may_relay(rank) && std::exchange(relays, true)) continue;
    targets.push_back(rank);
  }
  return targets;
}

/// As crossing_demand, for a traffic matrix.
Rational crossing_blocks(const Topology& topology, const Collective& collective, const std::vector<bool>& is_inside,
                         Direction direction) {
  std::vector<bool> inside(topology.rank_count());
  for (std::size_t i = 0; i < inside.size(); ++i) inside[i] = is_inside[topology.node_of(Rank(i)).index()];
  if (direction == Direction::reversed) inside.flip();
  std::int64_t blocks = 0;
  for (std::size_t from = 0; from < inside.size(); ++from) {
    for (std::size_t to = 0; to < inside.size(); ++to) {
      if (inside[from] && !inside[to]) blocks += collective.block(Rank(from), Rank(to));
    }
  }
  return make_rational(blocks, collective.largest_line());
}

/// As crossing_demand, for unequal shards.
Rational crossing_shares(const Topology& topology, const Collective& collective, const std::vector<bool>& is_inside,
                         Direction direction) {
  std::int64_t inside = 0;
  for (std::size_t i = 0; i < topology.rank_count(); ++i) {
    if (is_inside[topology.node_of(Rank(i)).index()]) inside += collective.share_of(Rank(i));
  }
  const std::int64_t sum = collective.share_sum();
  const bool leaves = direction == Direction::forward;
  const bool gathers = collective.kind == CollectiveKind::all_gather || collective.kind == CollectiveKind::gather;
  if (!collective.root.is_none()) {
    const bool root_inside = is_inside[topology.node_of(collective.root).index()];
    if (root_inside == (leaves == gathers)) return make_rational(0);
  }
  return make_rational(leaves == gathers ? inside : sum - inside, sum);
}

/// A rank's backplane takes what enters and what leaves: all but its own shard and that one, or twice everything.
std::optional<CutProof> prove_by_backplane(const Topology& topology, const Collective& collective, const Bound& bound) {
  if (bound.cut.size() != 1) return std::nullopt;
  const NodeId node = bound.cut.front();
  const std::int64_t backplane = topology.node(node).bandwidth.bytes_per_second;
  if (backplane == 0 || !topology.node(node).is_rank) return std::nullopt;
  const std::int64_t demand = collective.kind == CollectiveKind::all_reduce ? 2 : 1;
  if (make_rational(demand, backplane) != bound.time_per_byte) return std::nullopt;
  return CutProof{Direction::forward, 1, make_rational(demand), {}, {node}, BigInteger(backplane)};
}

}  // namespace

Rational crossing_demand(const Topology& topology, const Collective& collective, const std::vector<bool>& is_inside,
                         Direction direction) {
  if (collective.has_matrix()) return crossing_blocks(topology, collective, is_inside, direction);
  if (has_shards(collective.kind) && !collective.shares.empty()) {
    return crossing_shares(topology, collective, is_inside, direction);
  }
  const std::size_t ranks = topology.rank_count();
  const std::size_t inside = count_inside(topology, is_inside);
  const bool leaves = direction == Direction::forward;
  const bool root_inside = !collective.root.is_none() && is_inside[topology.node_of(collective.root).index()];
  switch (collective.kind) {
    case CollectiveKind::all_reduce:
      if (check_somebody_adds(topology)) return make_rational(1);
      return make_rational(static_cast<std::int64_t>(leaves ? inside : ranks - inside));  // Every input on its own.
    case CollectiveKind::all_gather: return part(leaves ? inside : ranks - inside, ranks);
    case CollectiveKind::reduce_scatter: return part(leaves ? ranks - inside : inside, ranks);
    case CollectiveKind::broadcast: return make_rational(root_inside == leaves ? 1 : 0);
    case CollectiveKind::reduce: return make_rational(root_inside == leaves ? 0 : 1);
    case CollectiveKind::gather:
      if (root_inside == leaves) return make_rational(0);
      return part(leaves ? inside : ranks - inside, ranks);
    case CollectiveKind::scatter:
      if (root_inside != leaves) return make_rational(0);
      return part(leaves ? ranks - inside : inside, ranks);
    case CollectiveKind::all_to_all: return part(inside * (ranks - inside), ranks);
    case CollectiveKind::send_recv: return part(count_steps_out(topology, is_inside), 1);
  }
  ESPALIER_CHECK(false, "a collective without a demand");
}

std::optional<CutProof> prove_cut(const Topology& topology, const Collective& collective, const Bound& bound) {
  if (bound.cut.empty()) return std::nullopt;
  std::vector<bool> is_inside(topology.node_count(), false);
  for (const NodeId node : bound.cut) is_inside[node.index()] = true;
  const std::size_t inside = count_inside(topology, is_inside);
  if (inside > 0 && inside < topology.rank_count()) {
    for (const Rank target : possible_targets(topology, collective, is_inside)) {
      for (const Direction direction : {Direction::forward, Direction::reversed}) {
        CutProof proof = measure_crossing(topology, is_inside, direction, target);
        proof.demand = crossing_demand(topology, collective, is_inside, direction);
        if (proof.capacity > 0 && proof.demand == bound.time_per_byte * proof.capacity) return proof;
      }
    }
  }
  return prove_by_backplane(topology, collective, bound);
}

}  // namespace espalier::planners
