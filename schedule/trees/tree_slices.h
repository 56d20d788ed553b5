#pragma once

// Tested by: tests/unit/schedule/trees/tree_schedule_test.cpp

#include <cstdint>
#include <vector>

#include "schedule/trees/tree_schedule.h"

namespace espalier {

struct SliceRun {
  SliceId first;
  std::uint32_t count = 0;
};

/// The trees of a forest by their root, in forest order within a root.
class TreesByRoot {
 public:
  /// Requires: roots in range.
  TreesByRoot(const std::vector<Arborescence>& trees, std::size_t rank_count);

  /// Indices into the forest's list.
  [[nodiscard]] std::span<const std::uint32_t> of(Rank root) const {
    return std::span(trees_).subspan(offsets_[root.index()], offsets_[root.index() + 1] - offsets_[root.index()]);
  }

 private:
  std::vector<std::uint32_t> offsets_;
  std::vector<std::uint32_t> trees_;
};

/// How the trees of a forest share the buffer.
struct TreeSlices {
  std::int64_t units = 0;
  std::vector<Slice> slices;
  std::vector<SliceRun> in_runs;     ///< all_reduce: what each in-tree carries.
  std::vector<SliceRun> out_runs;    ///< all_reduce: what each out-tree carries.
  std::vector<SliceRun> runs;        ///< The others: what each tree carries of its root's last part.
  std::vector<SliceId> part_begins;  ///< Per part: its first slice; the j-th is for the j-th tree of the part's root.
                                     ///< A part of no share has none.
};

/// The rank whose trees carry a part. Requires: not all_reduce, whose trees have any roots.
Rank root_of_part(const Collective& collective, std::int64_t part);

/// One slice per part and tree of its root. Errors: as schedule_from_trees.
Result<TreeSlices> slice_by_parts(const Collective& collective, const std::vector<Arborescence>& trees,
                                  const TreesByRoot& by_root);

/// The in-trees and out-trees of each root cut against each other: one slice per pair that overlaps.
/// Errors: as schedule_from_trees.
Result<TreeSlices> slice_by_overlay(const Forest& forest, std::size_t rank_count);

}  // namespace espalier
