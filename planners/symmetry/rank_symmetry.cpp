#include "planners/symmetry/rank_symmetry.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/random.h"
#include "planners/symmetry/automorphisms.h"

namespace espalier {

namespace {

/// Elements of a group, more or less at random.
class RandomElements {
 public:
  RandomElements(std::vector<Permutation> generators, std::uint64_t seed) : random_(seed) {
    const std::size_t count = generators.size();
    for (std::size_t i = 0; i < std::max(count, least_slots); ++i) slots_.push_back(generators[i % count]);
    for (int i = 0; i < burn_in; ++i) next();
  }

  const Permutation& next() {
    const std::size_t to = random_.below(slots_.size());
    std::size_t from = random_.below(slots_.size() - 1);
    if (from >= to) ++from;
    slots_[to] = random_.below(2) == 0 ? compose(slots_[to], slots_[from]) : compose(slots_[from], slots_[to]);
    return slots_[to];
  }

 private:
  static constexpr std::size_t least_slots = 10;
  static constexpr int burn_in = 60;
  std::vector<Permutation> slots_;
  Random random_;
};

/// The powers of an element that are worth a try: itself, its parts of one prime, and what is left without that prime.
std::vector<Permutation> powers_of(const Permutation& element) {
  std::vector<Permutation> powers = {element};
  const std::uint64_t order = order_of(element);
  if (order == 0) return powers;
  std::uint64_t rest = order;
  for (std::uint64_t prime = 2; prime <= rest; ++prime) {
    std::uint64_t part = 1;
    for (; rest % prime == 0; rest /= prime) part *= prime;
    if (part == 1 || part == order) continue;
    powers.push_back(power(element, order / part));
    powers.push_back(power(element, part));
  }
  return powers;
}

struct Candidate {
  AbelianGroup group;
  std::size_t rank_orbits;
};

class Search {
 public:
  Search(const Topology& topology, const ResourceGraph& graph) : topology_(topology), graph_(graph) {}

  AbelianGroup run() {
    AbelianGroup group(graph_.node_ranks.size());
    std::vector<Permutation> rest = find_automorphisms(topology_, graph_);
    std::size_t orbits = graph_.rank_count();
    while (!rest.empty() && rank_orbits(rest).count < orbits && group.generators().size() < most_generators) {
      std::vector<Candidate> candidates = find_candidates(group, rest, orbits);
      if (candidates.empty()) break;
      std::size_t best = 0;
      std::vector<Permutation> best_rest;
      std::size_t least = SIZE_MAX;
      for (std::size_t i = 0; i < candidates.size(); ++i) {
        std::vector<Permutation> kept = find_automorphisms(topology_, graph_, candidates[i].group.generators());
        const std::size_t kept_orbits = rank_orbits(kept).count;
        if (kept_orbits >= least) continue;
        least = kept_orbits;
        best = i;
        best_rest = std::move(kept);
      }
      group = std::move(candidates[best].group);
      orbits = candidates[best].rank_orbits;
      rest = std::move(best_rest);
    }
    return group;
  }

 private:
  struct RankOrbits {
    std::size_t count = 0;
    std::uint32_t in_largest = 0;  ///< A node.
  };
  [[nodiscard]] RankOrbits rank_orbits(std::span<const Permutation> permutations) const {
    const Orbits orbits = find_orbits(permutations, graph_.node_ranks.size());
    RankOrbits found;
    std::uint32_t largest = 0;
    for (std::size_t i = 0; i < orbits.count(); ++i) {
      if (graph_.node_ranks[orbits.first[i]] == ResourceGraph::no_rank) continue;
      ++found.count;
      if (orbits.size[i] <= largest) continue;
      largest = orbits.size[i];
      found.in_largest = orbits.first[i];
    }
    return found;
  }
  /// The most promising larger groups, those with the fewest orbits of ranks first, at most two of a kind.
  [[nodiscard]] std::vector<Candidate> find_candidates(const AbelianGroup& group, const std::vector<Permutation>& rest,
                                                       std::size_t orbits) {
    std::map<std::pair<std::size_t, std::uint64_t>, std::vector<Candidate>> by_kind;
    RandomElements elements(rest, ++seed_);
    for (int trial = 0; trial < trials; ++trial) {
      for (const Permutation& renaming : powers_of(elements.next())) {
        std::vector<Permutation> generators(group.generators().begin(), group.generators().end());
        generators.push_back(renaming);
        const auto [count, base] = rank_orbits(generators);
        if (count >= orbits) continue;
        auto larger = group.with(renaming, base, most_order() / count);
        if (!larger) continue;
        std::vector<Candidate>& kind = by_kind[{count, larger->order()}];
        if (kind.size() < most_of_a_kind) kind.push_back({*std::move(larger), count});
      }
    }
    std::vector<Candidate> candidates;
    const std::size_t most = graph_.rank_count() >= many_ranks ? 3 : 8;
    for (auto& [key, kind] : by_kind) {
      for (Candidate& candidate : kind) {
        if (candidates.size() < most) candidates.push_back(std::move(candidate));
      }
    }
    return candidates;
  }

  [[nodiscard]] std::uint64_t most_order() const { return 4 * std::uint64_t{graph_.rank_count()}; }

  static constexpr std::size_t most_generators = 32;
  static constexpr std::size_t most_of_a_kind = 2;
  static constexpr std::size_t many_ranks = 256;
  static constexpr int trials = 200;

  const Topology& topology_;
  const ResourceGraph& graph_;
  std::uint64_t seed_ = 0;
};

}  // namespace

RankSymmetry find_rank_symmetry(const Topology& topology, const ResourceGraph& graph) {
  AbelianGroup group = Search(topology, graph).run();
  std::vector<Permutation> on_ranks;
  for (const Permutation& generator : group.generators()) {
    Permutation& of_ranks = on_ranks.emplace_back();
    for (const std::uint32_t node : graph.rank_nodes) of_ranks.push_back(graph.node_ranks[generator[node]]);
  }
  Orbits ranks = find_orbits(on_ranks, graph.rank_count());
  return {std::move(group), std::move(ranks)};
}

RankSymmetry no_symmetry(const ResourceGraph& graph) {
  return {AbelianGroup(graph.node_ranks.size()), find_orbits({}, graph.rank_count())};
}

}  // namespace espalier
