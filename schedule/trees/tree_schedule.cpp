#include "schedule/trees/tree_schedule.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "schedule/relays.h"
#include "schedule/trees/tree_shape.h"
#include "schedule/trees/tree_slices.h"

namespace espalier {
namespace {

/// A transfer before it has found its place in the program order: by step, then by place, then as it was drafted.
struct Draft {
  Transfer transfer;
  std::uint32_t step = 0;   ///< The level of its tree, counted from the first transfer of all.
  std::uint32_t place = 0;  ///< Of the child among those of its depth.
};

/// Sorts indices of drafts stably by one member, in linear time: keys are at most the number of ranks.
void sort_by(std::vector<std::uint32_t>& order, const std::vector<Draft>& drafts, std::uint32_t Draft::*key) {
  std::uint32_t largest = 0;
  for (const Draft& draft : drafts) largest = std::max(largest, draft.*key);
  if (largest == 0) return;
  std::vector<std::uint32_t> next(std::size_t{largest} + 2);
  for (const Draft& draft : drafts) ++next[draft.*key + 1];
  for (std::size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
  std::vector<std::uint32_t> sorted(order.size());
  for (const std::uint32_t index : order) sorted[next[drafts[index].*key]++] = index;
  order = std::move(sorted);
}

class TreeScheduleBuilder {
 public:
  TreeScheduleBuilder(const Collective& collective, const Topology& topology, std::string algorithm,
                      std::vector<NodeId> relays)
      : topology_(topology),
        schedule_(collective, topology.name(), std::move(algorithm)),
        shape_(topology.rank_count() + relays.size()),
        reduced_at_(topology.rank_count() + relays.size()) {
    schedule_.relays = std::move(relays);
  }

  Result<Schedule> build(const Forest& forest);

 private:
  enum class Direction { in, out };

  [[nodiscard]] const Collective& collective() const { return schedule_.collective; }
  /// Roots are below `ends`: ranks, or any ends.
  [[nodiscard]] Result<void> check_roots(const std::vector<Arborescence>& trees, std::size_t ends) const;
  [[nodiscard]] Result<void> check_spanning(const Arborescence& tree, std::size_t index) const;
  Result<void> build_all_reduce(const Forest& forest);
  Result<void> build_parts(const std::vector<Arborescence>& trees, Direction direction);
  Result<void> read_shape(const Arborescence& tree, std::size_t index, Direction direction);
  Result<void> draft_spanning(const std::vector<Arborescence>& trees, const std::vector<SliceRun>& runs,
                              Direction direction);
  Result<void> draft_paths(const std::vector<Arborescence>& trees, const TreesByRoot& by_root, const TreeSlices& slices,
                           Direction direction);
  Result<void> draft_paths_of(const Arborescence& tree, std::uint32_t place, const TreeSlices& slices,
                              Direction direction);
  void draft(const TreeEdge& edge, SliceRun run, Direction direction, std::uint32_t first_step);
  Result<Schedule> finish();

  const Topology& topology_;
  Schedule schedule_;
  TreeShape shape_;
  std::vector<Draft> drafts_;
  std::vector<std::uint32_t> reduced_at_;  ///< Per root: the step from which its in-trees are done.
  std::uint32_t channel_ = 0;
  std::uint32_t channels_per_run_ = 0;  ///< The k-th run on an edge of a tree has the channel: tree + k times this.
};

/// The reached end of a part that travels along one path of its root's tree.
Rank far_end(const Collective& collective, const Slice& slice) {
  return slices_have_destination(collective.kind) ? slice.to : slice.rank;
}

/// On so many ranks every block of an all_to_all has transfers of its own: the images of a run of neighbours are none,
/// and without runs a part stands for all where the network is symmetric (schedule/symmetry).
constexpr std::size_t min_ranks_apart = 64;

/// Whether each part travels only between its root and one other rank.
bool travels_on_paths(CollectiveKind kind) {
  return kind == CollectiveKind::gather || kind == CollectiveKind::scatter || slices_have_destination(kind);
}

Result<void> TreeScheduleBuilder::check_roots(const std::vector<Arborescence>& trees, std::size_t ends) const {
  for (std::size_t i = 0; i < trees.size(); ++i) {
    if (trees[i].root.index() < ends) continue;
    return fail(ErrorCode::invalid_input,
                fmt::format("the root of tree {} is not one of the {} ranks", i, topology_.rank_count()));
  }
  return {};
}

/// Requires: the shape of this tree. A relay that ends a branch would have nothing to send, or nobody to send it to.
Result<void> TreeScheduleBuilder::check_spanning(const Arborescence& tree, std::size_t index) const {
  std::size_t ranks = is_relay(schedule_, tree.root) ? 0 : 1;
  for (const TreeEdge& edge : tree.edges) {
    if (!is_relay(schedule_, edge.child)) {
      ++ranks;
    } else if (shape_.height(edge.child) == 0) {
      return fail(ErrorCode::invalid_input, fmt::format("a branch of tree {} ends at the relay {}", index,
                                                        end_name(schedule_, topology_, edge.child)));
    }
  }
  if (ranks == topology_.rank_count()) return {};
  return fail(ErrorCode::invalid_input, fmt::format("tree {} of root {} reaches {} of {} ranks", index,
                                                    tree.root.value(), ranks, topology_.rank_count()));
}

Result<void> TreeScheduleBuilder::read_shape(const Arborescence& tree, std::size_t index, Direction direction) {
  return shape_.read(tree, fmt::format("{}-tree {}", direction == Direction::in ? "in" : "out", index));
}

void TreeScheduleBuilder::draft(const TreeEdge& edge, SliceRun run, Direction direction, std::uint32_t first_step) {
  const bool inwards = direction == Direction::in;
  Draft draft;
  draft.transfer.first_slice = run.first;
  draft.transfer.slice_count = run.count;
  draft.transfer.route = inwards ? schedule_.add_route(edge.child, edge.parent, edge.links)
                                 : schedule_.add_route(edge.parent, edge.child, edge.links);
  draft.transfer.channel_value = channel_ & 0x3FFFFFFFU;
  draft.transfer.reduces = inwards && reduces(collective().kind) ? 1 : 0;
  draft.step = first_step + (inwards ? shape_.height(edge.child) : shape_.depth(edge.parent));
  draft.place = shape_.place(edge.child);
  drafts_.push_back(draft);
}

Result<void> TreeScheduleBuilder::draft_spanning(const std::vector<Arborescence>& trees,
                                                 const std::vector<SliceRun>& runs, Direction direction) {
  for (std::size_t i = 0; i < trees.size(); ++i, ++channel_) {
    const Arborescence& tree = trees[i];
    if (auto read = read_shape(tree, i, direction); !read) return read;
    if (auto checked = check_spanning(tree, i); !checked) return checked;
    const std::uint32_t first_step = direction == Direction::out ? reduced_at_[tree.root.index()] : 0;
    for (const TreeEdge& edge : tree.edges) draft(edge, runs[i], direction, first_step);
    if (drafts_.size() > max_transfers) return fail(ErrorCode::too_large, "the trees need more than 2^31 transfers");
    if (direction == Direction::in) {
      std::uint32_t& done = reduced_at_[tree.root.index()];
      done = std::max(done, shape_.height(tree.root));
    }
  }
  return {};
}

Result<void> TreeScheduleBuilder::draft_paths_of(const Arborescence& tree, std::uint32_t place,
                                                 const TreeSlices& slices, Direction direction) {
  const std::size_t ranks = topology_.rank_count();
  std::vector<std::uint32_t> edge_into(end_count(schedule_));
  for (std::uint32_t i = 0; i < tree.edges.size(); ++i) edge_into[tree.edges[i].child.index()] = i;
  constexpr std::size_t no_draft = SIZE_MAX;
  std::vector<std::size_t> open_draft(end_count(schedule_),
                                      no_draft);  // Per child: the last transfer drafted for the edge into it.
  const std::uint32_t first_channel = channel_;
  std::vector<std::uint32_t> drafted(end_count(schedule_));  // Per child: how many were.

  const bool one_root = has_root(collective().kind);
  const bool all_parts = one_root || collective().kind == CollectiveKind::all_to_all;
  const std::size_t first_part = one_root ? 0 : tree.root.index() * (all_parts ? ranks : 1);
  const bool joins_runs = collective().kind != CollectiveKind::all_to_all || ranks < min_ranks_apart;
  for (std::size_t part = first_part; part < first_part + (all_parts ? ranks : 1); ++part) {
    if (collective().share_of_part(static_cast<std::int64_t>(part)) == 0) continue;
    const SliceId begin = slices.part_begins[part];
    const Rank end = far_end(collective(), slices.slices[begin.index()]);
    if (end == tree.root) continue;
    if (!shape_.reaches(end)) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("a tree of root {} does not reach rank {}", tree.root.value(), end.value()));
    }
    const SliceId slice(begin.index() + place);
    for (Rank rank = end; rank != tree.root; rank = shape_.parent(rank)) {
      std::size_t& open = open_draft[rank.index()];
      if (joins_runs && open != no_draft) {
        Transfer& last = drafts_[open].transfer;
        if (last.first_slice.index() + last.slice_count == slice.index()) {
          ++last.slice_count;
          continue;
        }
      }
      open = drafts_.size();
      // Parts whose paths part later do not wait for each other before: each run has a channel of its own.
      channel_ = first_channel + drafted[rank.index()]++ * channels_per_run_;
      draft(tree.edges[edge_into[rank.index()]], {slice, 1}, direction, 0);
    }
    if (drafts_.size() > max_transfers) return fail(ErrorCode::too_large, "the trees need more than 2^31 transfers");
  }
  return {};
}

Result<void> TreeScheduleBuilder::draft_paths(const std::vector<Arborescence>& trees, const TreesByRoot& by_root,
                                              const TreeSlices& slices, Direction direction) {
  channels_per_run_ = static_cast<std::uint32_t>(trees.size());
  for (std::uint32_t r = 0; r < topology_.rank_count(); ++r) {
    std::uint32_t place = 0;
    for (const std::uint32_t tree : by_root.of(Rank(r))) {
      if (auto read = read_shape(trees[tree], tree, direction); !read) return read;
      channel_ = tree;
      if (auto drafted = draft_paths_of(trees[tree], place++, slices, direction); !drafted) return drafted;
    }
  }
  return {};
}

Result<void> TreeScheduleBuilder::build_all_reduce(const Forest& forest) {
  for (const auto* trees : {&forest.in_trees, &forest.out_trees}) {
    if (auto checked = check_roots(*trees, end_count(schedule_)); !checked) return checked;
  }
  Result<TreeSlices> slices = slice_by_overlay(forest, end_count(schedule_));
  if (!slices) return tl::unexpected(slices.error());
  schedule_.units = slices->units;
  schedule_.slices = std::move(slices->slices);
  auto reduced = draft_spanning(forest.in_trees, slices->in_runs, Direction::in);
  return reduced ? draft_spanning(forest.out_trees, slices->out_runs, Direction::out) : reduced;
}

Result<void> TreeScheduleBuilder::build_parts(const std::vector<Arborescence>& trees, Direction direction) {
  if (auto checked = check_roots(trees, topology_.rank_count()); !checked) return checked;
  const TreesByRoot by_root(trees, topology_.rank_count());
  Result<TreeSlices> slices = slice_by_parts(collective(), trees, by_root);
  if (!slices) return tl::unexpected(slices.error());
  schedule_.units = slices->units;
  schedule_.slices = slices->slices;
  if (travels_on_paths(collective().kind)) return draft_paths(trees, by_root, *slices, direction);
  return draft_spanning(trees, slices->runs, direction);
}

Result<Schedule> TreeScheduleBuilder::finish() {
  std::vector<std::uint32_t> order(drafts_.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  sort_by(order, drafts_, &Draft::place);
  sort_by(order, drafts_, &Draft::step);
  schedule_.transfers.reserve(order.size());
  for (const std::uint32_t index : order) schedule_.transfers.push_back(drafts_[index].transfer);
  if (channel_ > max_channels) return fail(ErrorCode::too_large, "there are more trees than channels");
  return std::move(schedule_);
}

Result<Schedule> TreeScheduleBuilder::build(const Forest& forest) {
  if (collective().rank_count == 1) {  // Nothing has to move, whatever trees there are.
    const PartRanks ranks = ranks_of_part(collective(), 0);
    schedule_.units = 1;
    schedule_.slices = {{0, 1, ranks.rank, ranks.to}};
    return finish();
  }
  const auto built = [&]() -> Result<void> {
    switch (collective().kind) {
      case CollectiveKind::all_reduce: return build_all_reduce(forest);
      case CollectiveKind::reduce_scatter:
      case CollectiveKind::reduce:
      case CollectiveKind::gather: return build_parts(forest.in_trees, Direction::in);
      default: return build_parts(forest.out_trees, Direction::out);
    }
  }();
  if (!built) return tl::unexpected(built.error());
  return finish();
}

}  // namespace

Result<Schedule> schedule_from_trees(const Collective& collective, const Topology& topology, std::string algorithm,
                                     const Forest& forest) {
  ESPALIER_CHECK(collective.rank_count == topology.rank_count(), "the collective is one of this topology");
  return TreeScheduleBuilder(collective, topology, std::move(algorithm), forest.relays).build(forest);
}

Result<Forest> in_proportion(Forest forest, const Collective& collective) {
  if (collective.shares.empty() || !has_shards(collective.kind) || has_root(collective.kind)) return forest;
  for (auto* trees : {&forest.in_trees, &forest.out_trees}) {
    std::erase_if(*trees, [&](const Arborescence& tree) { return collective.share_of(tree.root) == 0; });
    for (Arborescence& tree : *trees) {
      const __int128 weight = static_cast<__int128>(tree.weight) * collective.share_of(tree.root);
      if (weight > max_units) {
        return fail(ErrorCode::too_large, "the weights of the trees times the shares pass 2^62",
                    "give shares with a larger common factor");
      }
      tree.weight = static_cast<std::int64_t>(weight);
    }
  }
  return forest;
}

}  // namespace espalier
