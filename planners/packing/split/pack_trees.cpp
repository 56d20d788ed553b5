#include "planners/packing/split/pack_trees.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/check.h"
#include "planners/packing/split/demand_oracle.h"

namespace espalier::planners {
namespace {

/// A tree that grows: the ranks reached so far, in the order in which they were, and the edges that reached them.
struct Batch {
  Arborescence tree;
  std::vector<std::uint32_t> reached;
  std::vector<bool> is_reached;
  std::size_t next = 0;  ///< Position in `reached` of the rank whose edges are tried next.
};

class Packer {
 public:
  Packer(std::span<const RankEdge> edges, std::span<const std::int64_t> demands, WorkBudget& budget)
      : edges_(edges.begin(), edges.end()),
        out_(demands.size()),
        ranks_(demands.size()),
        waiting_(demands.begin(), demands.end()),
        budget_(budget) {
    std::iota(ranks_.begin(), ranks_.end(), 0U);
    std::sort(edges_.begin(), edges_.end(), [](const RankEdge& a, const RankEdge& b) {
      return std::pair(a.tail, a.head) < std::pair(b.tail, b.head);
    });
    for (std::uint32_t id = 0; id < edges_.size(); ++id) out_[edges_[id].tail].push_back(id);
  }

  std::optional<std::vector<Arborescence>> run() {
    for (std::uint32_t root = 0; root < out_.size(); ++root) {
      if (waiting_[root] == 0) continue;
      Batch first{{Rank(root), waiting_[root], {}}, {root}, std::vector<bool>(out_.size(), false), 0};
      first.is_reached[root] = true;
      waiting_[root] = 0;
      partial_.push_back(std::move(first));
      while (!partial_.empty()) {
        Batch batch = std::move(partial_.back());
        partial_.pop_back();
        grow(batch);
        if (budget_.is_spent()) return std::nullopt;
        trees_.push_back(std::move(batch.tree));
      }
    }
    return std::move(trees_);
  }

 private:
  /// Adds edges until the tree spans. When an edge has room for a part of the weight only, the rest waits as a copy.
  /// An edge without room never gets any: what stops it is a vertex set that stays as tight as it is.
  void grow(Batch& batch) {
    build_reserve();
    while (batch.reached.size() < out_.size() && !budget_.is_spent()) {
      ESPALIER_CHECK(batch.next < batch.reached.size(), "a tree that does not span has an edge to grow by");
      const std::uint32_t from = batch.reached[batch.next];
      for (const std::uint32_t id : out_[from]) {
        RankEdge& edge = edges_[id];
        if (edge.capacity == 0 || batch.is_reached[edge.head]) continue;
        const std::int64_t room = reserve_->spare(edge.tail, edge.head, std::min(edge.capacity, batch.tree.weight));
        if (room == 0) continue;
        if (room < batch.tree.weight) leave_rest(batch, room);
        edge.capacity -= room;
        reserve_->set_capacity(id, edge.capacity);
        batch.reached.push_back(edge.head);
        batch.is_reached[edge.head] = true;
        batch.tree.edges.push_back({Rank(edge.tail), Rank(edge.head), {}});
      }
      ++batch.next;
    }
  }

  void leave_rest(Batch& batch, std::int64_t room) {
    Batch rest = batch;
    rest.tree.weight -= room;
    batch.tree.weight = room;
    partial_.push_back(std::move(rest));
    build_reserve();
  }

  /// The oracle of what the other trees still need.
  void build_reserve() {
    const std::size_t ranks = out_.size();
    reserve_.emplace(ranks + partial_.size(), ranks_, waiting_, budget_);
    for (const RankEdge& edge : edges_) reserve_->add_edge(edge.tail, edge.head, edge.capacity);
    for (std::size_t i = 0; i < partial_.size(); ++i) {
      reserve_->add_tree(static_cast<std::uint32_t>(ranks + i), partial_[i].tree.weight, partial_[i].reached);
    }
  }

  std::vector<RankEdge> edges_;
  std::vector<std::vector<std::uint32_t>> out_;  ///< Edge numbers by tail.
  std::vector<std::uint32_t> ranks_;             ///< All of them.
  std::vector<std::int64_t> waiting_;            ///< Weight of the trees of each root that have not begun.
  std::vector<Batch> partial_;                   ///< Copies that wait; the last goes on first.
  std::vector<Arborescence> trees_;
  WorkBudget& budget_;
  std::optional<DemandOracle> reserve_;
};

}  // namespace

std::optional<std::vector<Arborescence>> pack_trees(std::span<const RankEdge> edges,
                                                    std::span<const std::int64_t> demands, WorkBudget& budget) {
  return Packer(edges, demands, budget).run();
}

}  // namespace espalier::planners
