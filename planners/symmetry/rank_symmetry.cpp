#include "planners/symmetry/rank_symmetry.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/random.h"
#include "planners/symmetry/automorphisms.h"

namespace espalier::planners {

namespace {

/// Elements of a group, more or less at random.
class RandomElements {
 public:
  RandomElements(std::vector<Permutation> generators, std::uint64_t seed) : random_(seed) {
    const std::size_t count = generators.size();
    for (std::size_t i = 0; i < std::max(count, min_slots); ++i) slots_.push_back(generators[i % count]);
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
  static constexpr std::size_t min_slots = 10;
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

/// The products of all generators of a kind: long cycles where they swap like things, as boxes or rails.
std::vector<Permutation> products_by_kind(const std::vector<Permutation>& generators) {
  std::map<std::size_t, Permutation> products;  // by how many numbers a generator moves
  for (const Permutation& generator : generators) {
    std::size_t moved = 0;
    for (std::size_t i = 0; i < generator.size(); ++i) moved += generator[i] != i ? 1U : 0U;
    const auto [product, is_new] = products.try_emplace(moved, generator);
    if (!is_new) product->second = compose(product->second, generator);
  }
  std::vector<Permutation> found;
  for (auto& [moved, product] : products) found.push_back(std::move(product));
  return found;
}

struct SymmetryCandidate {
  AbelianGroup group;
  std::size_t rank_orbits;
};

class SymmetrySearch {
 public:
  SymmetrySearch(const Topology& topology, const ResourceGraph& graph, std::uint64_t max_waste,
                 std::span<const std::int64_t> marks)
      : topology_(topology), graph_(graph), max_waste_(max_waste), marks_(marks) {}

  AbelianGroup run() {
    AbelianGroup group(graph_.node_ranks.size());
    std::vector<Permutation> rest = find_automorphisms(topology_, graph_, {}, marks_);
    std::size_t orbits = graph_.rank_count();
    while (!rest.empty() && rank_orbits(rest).count < orbits && group.generators().size() < max_generators) {
      std::vector<SymmetryCandidate> candidates = find_candidates(group, rest, orbits);
      if (candidates.empty()) break;
      const auto whole = std::find_if(candidates.begin(), candidates.end(),
                                      [](const SymmetryCandidate& candidate) { return candidate.rank_orbits == 1; });
      if (whole != candidates.end()) return std::move(whole->group);
      std::size_t best = 0;
      std::vector<Permutation> best_rest;
      std::size_t least = SIZE_MAX;
      for (std::size_t i = 0; i < candidates.size(); ++i) {
        std::vector<Permutation> kept = find_automorphisms(topology_, graph_, candidates[i].group.generators(), marks_);
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
  /// The most promising larger groups: those under which no rank is fixed by any element but the first, if there are
  /// such; those with the fewest orbits of ranks first, each orbit weighing as much as the group's order makes it.
  [[nodiscard]] std::vector<SymmetryCandidate> find_candidates(const AbelianGroup& group,
                                                               const std::vector<Permutation>& rest,
                                                               std::size_t orbits) {
    by_kind_.clear();
    any_free_ = false;
    for (const Permutation& product : products_by_kind(rest)) consider_powers(group, product, orbits);
    RandomElements elements(rest, ++seed_);
    for (std::size_t trial = 0; trial < max_trials(); ++trial) consider_powers(group, elements.next(), orbits);
    std::vector<SymmetryCandidate> candidates;
    for (auto& [key, kind] : by_kind_) {
      for (SymmetryCandidate& candidate : kind) {
        if (candidates.size() < max_candidates()) candidates.push_back(std::move(candidate));
      }
    }
    return candidates;
  }

  void consider_powers(const AbelianGroup& group, const Permutation& element, std::size_t orbits) {
    for (const Permutation& automorphism : powers_of(element)) {
      std::vector<Permutation> generators(group.generators().begin(), group.generators().end());
      generators.push_back(automorphism);
      const auto [count, base] = rank_orbits(generators);
      if (count >= orbits) continue;
      auto larger = group.with(automorphism, base, max_waste_ * graph_.rank_count() / count);
      if (!larger) continue;
      const std::uint64_t size = larger->order() * count;
      if (!any_free_ && size == graph_.rank_count()) {
        any_free_ = true;
        by_kind_.clear();
      }
      if (any_free_ && size != graph_.rank_count()) continue;
      std::vector<SymmetryCandidate>& kind = by_kind_[{size * count, larger->order()}];
      if (kind.size() < max_candidates() / 4 + 1) kind.push_back({*std::move(larger), count});
    }
  }

  /// How many random elements are tried in a step, and how many centralisers are computed: fewer on large networks,
  /// where each takes longer.
  [[nodiscard]] std::size_t max_trials() const {
    return std::clamp<std::size_t>(30'000 / graph_.node_ranks.size(), 20, 400);
  }
  [[nodiscard]] std::size_t max_candidates() const {
    return std::clamp<std::size_t>(6'000 / graph_.node_ranks.size(), 3, 24);
  }
  static constexpr std::size_t max_generators = 32;

  const Topology& topology_;
  const ResourceGraph& graph_;
  std::uint64_t max_waste_;  ///< Order of the group x orbits of ranks, over the ranks.
  std::span<const std::int64_t> marks_;
  std::uint64_t seed_ = 0;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<SymmetryCandidate>>
      by_kind_;            ///< By how good, and order.
  bool any_free_ = false;  ///< No element but the first fixes any rank, in all of `by_kind_`.
};

}  // namespace

RankSymmetry find_rank_symmetry(const Topology& topology, const ResourceGraph& graph, std::uint64_t max_waste,
                                std::span<const std::int64_t> marks) {
  if (graph.rank_count() > max_searched_ranks) return no_symmetry(graph);
  AbelianGroup group = SymmetrySearch(topology, graph, max_waste, marks).run();
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

}  // namespace espalier::planners
