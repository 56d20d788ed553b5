#include "planners/symmetric/changing_tree.h"

#include <algorithm>
#include <cstddef>

#include "base/check.h"

namespace espalier::planners {

IndexedTree::IndexedTree(const SliceTree& tree, std::span<const ShiftPath> paths)
    : first_child_(tree.parent.size() + 1, 0),
      children_(tree.parent.size() - 1),
      begin_(tree.parent.size(), SliceTree::none),
      end_(tree.parent.size()),
      longest_(2 * tree.parent.size()) {
  const auto ranks = static_cast<std::uint32_t>(tree.parent.size());
  for (std::uint32_t rank = 1; rank < ranks; ++rank) ++first_child_[tree.parent[rank] + 1];
  for (std::uint32_t rank = 0; rank < ranks; ++rank) first_child_[rank + 1] += first_child_[rank];
  std::vector<std::uint32_t> next(first_child_.begin(),
                                  first_child_.end() - 1);  // By rank: the child to be set, or seen.
  for (std::uint32_t rank = 1; rank < ranks; ++rank) children_[next[tree.parent[rank]]++] = rank;

  const auto chains = std::span(longest_).subspan(ranks);
  next.assign(first_child_.begin(), first_child_.end() - 1);
  std::uint32_t seen = 1;
  begin_[0] = 0;
  for (std::uint32_t rank = 0;;) {
    if (next[rank] < first_child_[rank + 1]) {
      const std::uint32_t child = children_[next[rank]++];
      begin_[child] = seen;
      chains[seen++] = chains[begin_[rank]] + paths[tree.path[child]].latency;
      rank = child;
      continue;
    }
    end_[rank] = seen;
    if (rank == 0) break;
    rank = tree.parent[rank];
  }
  ESPALIER_CHECK(seen == ranks, "every rank hangs on the root");
  for (std::size_t i = ranks; i-- > 1;) longest_[i] = std::max(longest_[2 * i], longest_[2 * i + 1]);
}

double IndexedTree::longest_chain(std::uint32_t first, std::uint32_t last) const {
  double longest = 0;
  std::size_t from = begin_.size() + first, to = begin_.size() + last;
  for (; from < to; from /= 2, to /= 2) {
    if (from % 2 == 1) longest = std::max(longest, longest_[from++]);
    if (to % 2 == 1) longest = std::max(longest, longest_[--to]);
  }
  return longest;
}

Hanging ChangingTree::now(std::uint32_t rank) const {
  const auto changed = changed_.find(before_.begin(rank));
  return changed == changed_.end() ? Hanging{rank, tree_.parent[rank], tree_.path[rank]} : changed->second;
}

std::vector<std::uint32_t> ChangingTree::edges(const Hanging& hanging) const {
  std::vector<std::uint32_t> edges;
  for_edges(hanging, [&](std::uint32_t edge) {
    edges.push_back(edge);
    return true;
  });
  return edges;
}

std::uint32_t ChangingTree::other_end(std::uint32_t rank, std::uint32_t path) const {
  const std::uint32_t to = parts_.paths[path].to;
  return shifts_.sum(rank, tree_.is_inward ? to : shifts_.minus(to));
}

std::uint32_t ChangingTree::reached_from(std::uint32_t parent, std::uint32_t path) const {
  const std::uint32_t to = parts_.paths[path].to;
  return shifts_.sum(parent, tree_.is_inward ? shifts_.minus(to) : to);
}

const std::vector<std::uint32_t>& ChangingTree::paths_between(std::uint32_t rank, std::uint32_t parent) const {
  const std::uint32_t from = tree_.is_inward ? rank : parent, to = tree_.is_inward ? parent : rank;
  return parts_.paths_to[shifts_.sum(to, shifts_.minus(from))];
}

const Hanging* ChangingTree::changed_above(std::uint32_t rank) const {
  // Of those above a rank the lowest comes last in depth-first order.
  for (auto at = changed_.upper_bound(before_.begin(rank)); at != changed_.begin();) {
    --at;
    if (before_.is_below(rank, at->second.rank)) return &at->second;
  }
  return nullptr;
}

bool ChangingTree::is_below(std::uint32_t rank, std::uint32_t top) const {
  for (;;) {
    const Hanging* changed = changed_above(rank);
    if (before_.is_below(rank, top) && (changed == nullptr || before_.is_below(top, changed->rank))) return true;
    if (changed == nullptr) return false;
    rank = changed->parent;
  }
}

double ChangingTree::longest_changed_chain() const {
  double longest = 0;
  for (const auto& [place, hanging] : changed_) {
    longest = std::max(longest, chain_to(hanging.rank) + height_left(hanging.rank));
  }
  return longest;
}

double ChangingTree::chain_to(std::uint32_t rank) const {
  double chain = 0;
  for (std::size_t steps = 0;; ++steps) {
    ESPALIER_CHECK(steps <= changed_.size(), "every rank hangs on the root");
    const Hanging* changed = changed_above(rank);
    if (changed == nullptr) return chain + before_.chain(rank);
    chain += before_.chain(rank) - before_.chain(changed->rank) + parts_.paths[changed->path].latency;
    rank = changed->parent;
  }
}

double ChangingTree::height_left(std::uint32_t rank) const {
  double longest = before_.chain(rank);
  std::uint32_t place = before_.begin(rank);
  for (auto at = changed_.upper_bound(place); at != changed_.end() && at->first < before_.end(rank); ++at) {
    if (at->first < place) continue;  // Below another one that hangs elsewhere.
    longest = std::max(longest, before_.longest_chain(place, at->first));
    place = before_.end(at->second.rank);
  }
  return std::max(longest, before_.longest_chain(place, before_.end(rank))) - before_.chain(rank);
}

}  // namespace espalier::planners
