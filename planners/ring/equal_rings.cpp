#include "planners/ring/equal_rings.h"

#include <algorithm>
#include <map>

#include "planners/ring/disjoint_cycles.h"

namespace espalier::planners {

namespace {

std::uint32_t multiples(const Link& link, const Rational& rate, std::size_t most) {
  const Rational times = link.bandwidth().bytes_per_second / rate;
  const BigInteger whole = numerator(times) / denominator(times);
  return whole < most ? whole.convert_to<std::uint32_t>() : static_cast<std::uint32_t>(most);
}

}  // namespace

bool is_direct(const Topology& topology) {
  const auto between_ranks = [&](const Link& link) {
    return !topology.rank_of(link.tail).is_none() && !topology.rank_of(link.head).is_none();
  };
  const auto has_backplane = [](const Node& node) { return node.bandwidth.bytes_per_second != 0; };
  return std::ranges::all_of(topology.links(), between_ranks) && std::ranges::none_of(topology.nodes(), has_backplane);
}

std::optional<RingSet> find_equal_rings(const Topology& topology, const Rational& rate, std::size_t count,
                                        WorkBudget& work) {
  if (numerator(rate) * count > BigInteger(1) << 62) return std::nullopt;
  const std::size_t n = topology.rank_count();
  ArcCounts counts(n, std::vector<std::uint32_t>(n, 0));
  std::map<std::pair<Rank, Rank>, std::vector<LinkId>> slots;  // a link as often as a ring may take it
  for (std::size_t i = 0; i < topology.link_count(); ++i) {
    const Link& link = topology.link(LinkId(i));
    const Rank tail = topology.rank_of(link.tail);
    const Rank head = topology.rank_of(link.head);
    const std::uint32_t times = multiples(link, rate, count);
    counts[tail.index()][head.index()] += times;
    std::vector<LinkId>& here = slots[{tail, head}];
    here.insert(here.begin(), times, LinkId(i));
  }
  const std::vector<std::vector<std::uint32_t>> cycles = find_disjoint_cycles(counts, count, work);
  if (cycles.empty()) return std::nullopt;
  RingSet set;
  set.period = denominator(rate).convert_to<std::int64_t>();
  for (const std::vector<std::uint32_t>& cycle : cycles) {
    Ring& ring = set.rings.emplace_back();
    ring.rate = numerator(rate).convert_to<std::int64_t>();
    for (std::size_t i = 0; i < n; ++i) {
      const Rank from(cycle[i]);
      std::vector<LinkId>& here = slots[{from, Rank(cycle[(i + 1) % n])}];
      ring.order.push_back(from);
      ring.hops.push_back({here.back()});
      here.pop_back();
    }
  }
  return set;
}

}  // namespace espalier::planners
