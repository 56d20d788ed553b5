#include "schedule/trees/tree_slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>

namespace espalier {
namespace {

using Weights = std::vector<std::int64_t>;

tl::unexpected<Error> too_many_units() {
  return fail(ErrorCode::too_large, "the weights of the trees need more than 2^62 units",
              "round the weights to a smaller common denominator");
}

/// The weights without their common factor.
Result<Weights> reduced_weights(const std::vector<Arborescence>& trees) {
  std::int64_t factor = 0;
  for (std::size_t i = 0; i < trees.size(); ++i) {
    if (trees[i].weight <= 0) {
      return fail(ErrorCode::invalid_input, fmt::format("tree {} has the weight {}", i, trees[i].weight),
                  "give every tree a positive weight");
    }
    factor = std::gcd(factor, trees[i].weight);
  }
  Weights weights;
  weights.reserve(trees.size());
  for (const Arborescence& tree : trees) weights.push_back(tree.weight / factor);
  return weights;
}

/// At most max_units + 1, whatever the weights are.
std::int64_t capped_sum(std::int64_t sum, std::int64_t weight) {
  return sum > max_units - weight ? max_units + 1 : sum + weight;
}

std::int64_t weight_of_root(const Weights& weights, std::span<const std::uint32_t> trees) {
  std::int64_t sum = 0;
  for (const std::uint32_t tree : trees) sum = capped_sum(sum, weights[tree]);
  return sum;
}

/// How much of the buffer a rank's trees carry, as a multiple that its trees' weights must have too.
std::int64_t share_of_root(const Collective& collective, Rank root) {
  return has_shards(collective.kind) ? collective.share_of(root) : 1;
}

/// An error when the weights of two roots' trees are not in the ratio of their shares or a root has no trees.
Result<void> check_roots_of_all(const Collective& collective, const Weights& weights, const TreesByRoot& by_root) {
  Rank first;  // The first rank that has a share.
  std::int64_t first_weight = 0;
  for (std::uint32_t r = 0; r < collective.rank_count; ++r) {
    const std::int64_t weight = weight_of_root(weights, by_root.of(Rank(r)));
    const std::int64_t share = share_of_root(collective, Rank(r));
    const std::string_view kind = to_string(collective.kind);
    if (weight == 0 && share > 0) {
      return fail(ErrorCode::invalid_input, fmt::format("{} needs trees of rank {}, and there are none", kind, r));
    }
    if (first.is_none() && share > 0) {
      first = Rank(r);
      first_weight = weight;
    }
    if (share == 0 && weight > 0) {
      return fail(ErrorCode::invalid_input, fmt::format("rank {} has no share of the {}, but trees", r, kind));
    }
    if (share == 0) continue;
    const std::int64_t first_share = share_of_root(collective, first);
    if (static_cast<__int128>(weight) * first_share == static_cast<__int128>(first_weight) * share) continue;
    return fail(
        ErrorCode::invalid_input,
        fmt::format("the trees of rank {} weigh {} and those of rank {} weigh {}; {} needs {}", first.value(),
                    first_weight, r, weight, kind,
                    share == first_share ? "equal sums" : fmt::format("the ratio {} to {}", first_share, share)));
  }
  return {};
}

/// An error when a tree has another root than the collective, or that one has none.
Result<void> check_one_root(const Collective& collective, const TreesByRoot& by_root) {
  for (std::uint32_t r = 0; r < collective.rank_count; ++r) {
    if (Rank(r) == collective.root || by_root.of(Rank(r)).empty()) continue;
    return fail(ErrorCode::invalid_input, fmt::format("a tree is rooted at rank {}, but the root of the {} is rank {}",
                                                      r, to_string(collective.kind), collective.root.value()));
  }
  if (!by_root.of(collective.root).empty()) return {};
  return fail(ErrorCode::invalid_input, fmt::format("{} needs trees of rank {}, and there are none",
                                                    to_string(collective.kind), collective.root.value()));
}

/// How many units all trees need for the whole buffer; an error when roots or weights are wrong.
Result<std::int64_t> count_units(const Collective& collective, const Weights& weights, const TreesByRoot& by_root) {
  const bool one_root = has_root(collective.kind);
  const Result<void> checked =
      one_root ? check_one_root(collective, by_root) : check_roots_of_all(collective, weights, by_root);
  if (!checked) return tl::unexpected(checked.error());
  const std::int64_t weight = std::accumulate(weights.begin(), weights.end(), std::int64_t{0}, capped_sum);
  std::int64_t uses = 1;  // How many parts a tree carries, as shares.
  if (one_root && has_shards(collective.kind)) uses = collective.share_sum();
  if (has_blocks(collective.kind)) uses = collective.share_sum();
  if (weight > max_units / uses) return too_many_units();
  if (has_blocks(collective.kind)) return weight / collective.rank_count * uses;  // All roots' trees weigh the same.
  return weight * uses;
}

/// Where a part of the buffer needs no transfer, one slice does.
bool stays_at_root(const Collective& collective, std::int64_t part) {
  const PartRanks ranks = ranks_of_part(collective, part);
  const Rank root = root_of_part(collective, part);
  switch (collective.kind) {
    case CollectiveKind::gather:
    case CollectiveKind::scatter: return ranks.rank == root;
    case CollectiveKind::all_to_all:
    case CollectiveKind::send_recv: return ranks.to == root;
    default: return false;
  }
}

}  // namespace

TreesByRoot::TreesByRoot(const std::vector<Arborescence>& trees, std::size_t rank_count)
    : offsets_(rank_count + 1), trees_(trees.size()) {
  for (const Arborescence& tree : trees) ++offsets_[tree.root.index() + 1];
  std::partial_sum(offsets_.begin(), offsets_.end(), offsets_.begin());
  std::vector<std::uint32_t> next(offsets_.begin(), offsets_.end() - 1);
  for (std::uint32_t i = 0; i < trees.size(); ++i) trees_[next[trees[i].root.index()]++] = i;
}

Rank root_of_part(const Collective& collective, std::int64_t part) {
  return has_root(collective.kind) ? collective.root : ranks_of_part(collective, part).rank;
}

Result<TreeSlices> slice_by_parts(const Collective& collective, const std::vector<Arborescence>& trees,
                                  const TreesByRoot& by_root) {
  const Result<Weights> weights = reduced_weights(trees);
  if (!weights) return tl::unexpected(weights.error());
  const Result<std::int64_t> units = count_units(collective, *weights, by_root);
  if (!units) return tl::unexpected(units.error());
  const std::int64_t parts = collective.part_count();
  const bool by_share = (has_root(collective.kind) && has_shards(collective.kind)) || collective.has_matrix();

  TreeSlices result;
  result.units = *units;
  result.runs.resize(trees.size());
  result.part_begins.reserve(static_cast<std::size_t>(parts));
  std::int64_t offset = 0;
  for (std::int64_t part = 0; part < parts; ++part) {
    const PartRanks ranks = ranks_of_part(collective, part);
    result.part_begins.emplace_back(result.slices.size());
    const std::int64_t uses = by_share ? collective.share_of_part(part) : 1;
    if (uses == 0) continue;
    const std::span<const std::uint32_t> carriers = by_root.of(root_of_part(collective, part));
    if (stays_at_root(collective, part)) {
      const std::int64_t length = weight_of_root(*weights, carriers) * uses;
      result.slices.push_back({offset, length, ranks.rank, ranks.to});
      offset += length;
      continue;
    }
    for (const std::uint32_t tree : carriers) {
      const std::int64_t length = (*weights)[tree] * uses;
      result.runs[tree] = {SliceId(result.slices.size()), 1};
      result.slices.push_back({offset, length, ranks.rank, ranks.to});
      offset += length;
    }
    if (result.slices.size() > max_slices) return fail(ErrorCode::too_large, "the trees need more than 2^32 slices");
  }
  return result;
}

namespace {

/// Cuts two sequences of intervals that start at `offset` against each other; both must have the same length.
class Overlay {
 public:
  explicit Overlay(TreeSlices& result) : result_(result) {}

  void cut(const Weights& in_weights, std::span<const std::uint32_t> in, const Weights& out_weights,
           std::span<const std::uint32_t> out) {
    std::size_t i = 0;
    std::size_t j = 0;
    std::int64_t in_left = in.empty() ? 0 : in_weights[in[0]];
    std::int64_t out_left = out.empty() ? 0 : out_weights[out[0]];
    while (i < in.size() && j < out.size()) {
      const std::int64_t length = std::min(in_left, out_left);
      extend(result_.in_runs[in[i]]);
      extend(result_.out_runs[out[j]]);
      result_.slices.push_back({result_.units, length, Rank(), Rank()});
      result_.units += length;
      in_left -= length;
      out_left -= length;
      if (in_left == 0 && ++i < in.size()) in_left = in_weights[in[i]];
      if (out_left == 0 && ++j < out.size()) out_left = out_weights[out[j]];
    }
  }

 private:
  void extend(SliceRun& run) const {
    if (run.count == 0) run.first = SliceId(result_.slices.size());
    ++run.count;
  }

  TreeSlices& result_;
};

std::int64_t sum_of(const Weights& weights) {
  return std::accumulate(weights.begin(), weights.end(), std::int64_t{0}, capped_sum);
}

/// Multiplies all weights. Requires: a product of the sum that fits.
void scale(Weights& weights, std::int64_t factor) {
  for (std::int64_t& weight : weights) weight *= factor;
}

}  // namespace

Result<TreeSlices> slice_by_overlay(const Forest& forest, std::size_t rank_count) {
  Result<Weights> in = reduced_weights(forest.in_trees);
  if (!in) return tl::unexpected(in.error());
  Result<Weights> out = reduced_weights(forest.out_trees);
  if (!out) return tl::unexpected(out.error());
  if (in->empty() || out->empty()) {
    return fail(ErrorCode::invalid_input, "all_reduce needs in-trees and out-trees");
  }
  // Both halves carry the same buffer: the least common multiple of their sums is the number of units.
  const std::int64_t in_sum = sum_of(*in);
  const std::int64_t out_sum = sum_of(*out);
  const std::int64_t common = std::gcd(in_sum, out_sum);
  if (in_sum > max_units || out_sum > max_units || in_sum / common > max_units / out_sum) return too_many_units();
  scale(*in, out_sum / common);
  scale(*out, in_sum / common);

  TreeSlices result;
  result.in_runs.resize(in->size());
  result.out_runs.resize(out->size());
  const TreesByRoot in_by_root(forest.in_trees, rank_count);
  const TreesByRoot out_by_root(forest.out_trees, rank_count);
  for (std::uint32_t r = 0; r < rank_count; ++r) {
    const std::int64_t reduced = weight_of_root(*in, in_by_root.of(Rank(r)));
    const std::int64_t broadcast = weight_of_root(*out, out_by_root.of(Rank(r)));
    if (reduced != broadcast) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("rank {} is the root of {} of the buffer's {} units in in-trees and of {} in out-trees",
                              r, reduced, in_sum / common * out_sum, broadcast),
                  "give each root the same share of both");
    }
    Overlay(result).cut(*in, in_by_root.of(Rank(r)), *out, out_by_root.of(Rank(r)));
  }
  return result;
}

}  // namespace espalier
