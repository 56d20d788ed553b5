#include "schedule/tree_slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>

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

/// The weight that the trees of every root in use have; an error when two differ or a root has no trees.
Result<std::int64_t> common_weight(const Collective& collective, const Weights& weights, const TreesByRoot& by_root) {
  const bool one_root = has_root(collective.kind);
  const Rank first = one_root ? collective.root : Rank(0);
  const std::int64_t common = weight_of_root(weights, by_root.of(first));
  for (std::uint32_t r = 0; r < collective.rank_count; ++r) {
    const std::int64_t weight = weight_of_root(weights, by_root.of(Rank(r)));
    const std::string kind(to_string(collective.kind));
    if (one_root && Rank(r) != collective.root) {
      if (weight == 0) continue;
      return fail(ErrorCode::invalid_input,
                  fmt::format("a tree is rooted at rank {}, but the root of the {} is rank {}", r, kind,
                              collective.root.value()));
    }
    if (weight == 0) {
      return fail(ErrorCode::invalid_input, fmt::format("{} needs trees of rank {}, and there are none", kind, r));
    }
    if (weight != common) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("the trees of rank {} weigh {} and those of rank {} weigh {}; {} needs equal sums",
                              first.value(), common, r, weight, kind));
    }
  }
  return common;
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
  const Result<std::int64_t> part_units = common_weight(collective, *weights, by_root);
  if (!part_units) return tl::unexpected(part_units.error());
  const std::int64_t parts = collective.part_count();
  if (*part_units > max_units / parts) return too_many_units();

  TreeSlices result;
  result.units = *part_units * parts;
  result.runs.resize(trees.size());
  result.part_begins.reserve(static_cast<std::size_t>(parts));
  for (std::int64_t part = 0; part < parts; ++part) {
    const PartRanks ranks = ranks_of_part(collective, part);
    std::int64_t offset = part * *part_units;
    result.part_begins.emplace_back(result.slices.size());
    if (stays_at_root(collective, part)) {
      result.slices.push_back({offset, *part_units, ranks.rank, ranks.to});
      continue;
    }
    for (const std::uint32_t tree : by_root.of(root_of_part(collective, part))) {
      result.runs[tree] = {SliceId(result.slices.size()), 1};
      result.slices.push_back({offset, (*weights)[tree], ranks.rank, ranks.to});
      offset += (*weights)[tree];
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
