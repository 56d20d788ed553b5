#include "planners/symmetric/shift_chain.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "planners/graph/path_search.h"

namespace espalier::planners {

namespace {

/// The same group, every generator the other way.
AbelianGroup turned_round(const AbelianGroup& group, std::size_t size) {
  return group.mapped(size, [](const Permutation& generator) {
    Permutation inverse(generator.size());
    for (std::uint32_t i = 0; i < generator.size(); ++i) inverse[generator[i]] = i;
    return inverse;
  });
}

template <class Price>
PricedColumns<Price> cheapest_chain(const Shifts& shifts, std::span<const Price> prices) {
  const OrbitGraph& orbits = shifts.orbits();
  const ResourceGraph& graph = orbits.graph;
  const std::vector<Price> lengths = edge_lengths<Price>(orbits, prices);
  const ShortestPaths<Price> paths(graph, lengths, graph.rank_nodes.front(), false);
  std::vector<std::uint32_t> order;
  for (std::uint32_t rank = 1; rank < shifts.count(); ++rank) {
    if (paths.has_path(graph.rank_nodes[rank])) order.push_back(rank);
  }
  std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
    return paths.distance(graph.rank_nodes[a]) < paths.distance(graph.rank_nodes[b]);
  });

  Column column;
  std::vector<std::int64_t> uses(graph.edges.size(), 0);
  ShiftChain chain(shifts);
  std::uint32_t depth = 0;
  for (const std::uint32_t shift : order) {
    if (chain.is_whole()) break;
    const std::size_t cosets = shifts.count() / chain.subgroup().size();
    const std::uint32_t joined = chain.add(shift);
    if (joined == 1) continue;
    depth += joined - 1;
    const auto begin = static_cast<std::ptrdiff_t>(column.edges.size());
    for (std::uint32_t node = graph.rank_nodes[shift]; node != graph.rank_nodes.front();) {
      const std::uint32_t e = paths.entering_edge()[node];
      column.edges.push_back(e);
      uses[e] += static_cast<std::int64_t>(cosets - cosets / joined);
      node = graph.edges[e].tail;
    }
    std::reverse(column.edges.begin() + begin, column.edges.end());
  }
  ESPALIER_CHECK(chain.is_whole(), "every rank reaches every other");
  column.loads = orbit_loads(orbits, uses, shifts.count());
  column.height = depth;
  PricedColumns<Price> priced;
  priced.costs.push_back(cost_of(column, prices));
  priced.columns.push_back(std::move(column));
  return priced;
}

}  // namespace

Shifts::Shifts(const OrbitGraph& orbits) : orbits_(&orbits), minus_(orbits.graph.rank_count()) {
  ESPALIER_CHECK(orbits.ranks.count() == 1 && orbits.group.order() == count(), "one shift for each rank");
  const std::uint32_t base = orbits.graph.rank_nodes.front();
  const std::size_t size = orbits.graph.node_ranks.size() + orbits.graph.edges.size();
  const std::vector<std::uint32_t> to = orbits.group.images_of(base);
  const std::vector<std::uint32_t> back = turned_round(orbits.group, size).images_of(base);
  for (std::size_t i = 0; i < to.size(); ++i) minus_[orbits.graph.node_ranks[to[i]]] = orbits.graph.node_ranks[back[i]];
}

ShiftChain::ShiftChain(const Shifts& shifts) : shifts_(shifts), is_in_(shifts.count(), 0) { is_in_[0] = 1; }

std::uint32_t ShiftChain::add(std::uint32_t shift) {
  const std::size_t before = subgroup_.size();
  std::uint32_t joined = 1;
  for (std::uint32_t at = shift; is_in_[at] == 0; at = shifts_.sum(at, shift), ++joined) {
    const Automorphism by = shifts_.by(at);
    for (std::size_t i = 0; i < before; ++i) {
      const std::uint32_t member = shifts_.orbits().rank_image(by, subgroup_[i]);
      subgroup_.push_back(member);
    }
    for (std::size_t i = subgroup_.size() - before; i < subgroup_.size(); ++i) is_in_[subgroup_[i]] = 1;
  }
  return joined;
}

MasterProgram ShiftOracle::program() const {
  MasterProgram program;
  program.capacity = shifts_.orbits().capacity;
  program.family = {0};
  program.family_count = 1;
  program.sharing = Sharing::equal;
  return program;
}

PricedColumns<double> ShiftOracle::cheapest(std::span<const double> prices) const {
  return cheapest_chain(shifts_, prices);
}

PricedColumns<BigInteger> ShiftOracle::cheapest(std::span<const BigInteger> prices) const {
  // Whole prices are mostly small: then 64 bits hold the cost of any tree, and are much faster.
  const std::vector<BigInteger> lengths = edge_lengths(shifts_.orbits(), prices);
  const BigInteger all = std::accumulate(lengths.begin(), lengths.end(), BigInteger(1));
  if (((all * shifts_.count() * shifts_.count()) >> 60U) != 0) return cheapest_chain(shifts_, prices);
  std::vector<std::int64_t> small;
  for (const BigInteger& price : prices) small.push_back(price.convert_to<std::int64_t>());
  PricedColumns<std::int64_t> priced = cheapest_chain<std::int64_t>(shifts_, small);
  return {std::move(priced.columns), {priced.costs.begin(), priced.costs.end()}};
}

}  // namespace espalier::planners
