#include "planners/packing/split/pack_trees.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/check.h"
#include "topology/analysis/max_flow.h"

namespace espalier {
namespace {

/// A tree that grows: the ranks reached so far, in the order in which they were, and the edges that reached them.
struct Batch {
  RankTree tree;
  std::vector<std::uint32_t> reached;
  std::vector<bool> is_reached;
  std::size_t next = 0;  ///< Position in `reached` of the rank whose edges are tried next.
};

class Packer {
 public:
  Packer(std::span<const RankEdge> edges, std::span<const std::int64_t> demands, WorkBudget& budget)
      : edges_(edges.begin(), edges.end()),
        out_(demands.size()),
        waiting_(demands.begin(), demands.end()),
        budget_(budget) {
    std::sort(edges_.begin(), edges_.end(), [](const RankEdge& a, const RankEdge& b) {
      return std::pair(a.tail, a.head) < std::pair(b.tail, b.head);
    });
    for (std::uint32_t id = 0; id < edges_.size(); ++id) out_[edges_[id].tail].push_back(id);
  }

  std::optional<std::vector<RankTree>> run() {
    for (std::uint32_t root = 0; root < out_.size(); ++root) {
      if (waiting_[root] == 0) continue;
      Batch first{{root, waiting_[root], {}}, {root}, std::vector<bool>(out_.size(), false), 0};
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
        const std::int64_t room = room_for(edge, batch.tree.weight);
        if (room == 0) continue;
        if (room < batch.tree.weight) leave_rest(batch, room);
        edge.capacity -= room;
        reserve_->set_capacity(id, edge.capacity);
        batch.reached.push_back(edge.head);
        batch.is_reached[edge.head] = true;
        batch.tree.edges.emplace_back(edge.tail, edge.head);
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

  /// The graph that says what the other trees still need: the capacity left, and from a super source to every tree
  /// its weight, which it can give to all ranks that it has reached.
  void build_reserve() {
    const auto ranks = static_cast<std::uint32_t>(out_.size());
    super_ = ranks;
    reserve_.emplace(ranks + 1 + partial_.size());
    reserved_ = 0;
    for (const RankEdge& edge : edges_) reserve_->add_arc(edge.tail, edge.head, edge.capacity);
    for (std::uint32_t root = 0; root < ranks; ++root) {
      if (waiting_[root] > 0) reserve_->add_arc(super_, root, waiting_[root]);
      reserved_ += waiting_[root];
    }
    for (std::uint32_t i = 0; i < partial_.size(); ++i) {
      const std::int64_t weight = partial_[i].tree.weight;
      reserve_->add_arc(super_, ranks + 1 + i, weight);
      for (const std::uint32_t rank : partial_[i].reached) reserve_->add_arc(ranks + 1 + i, rank, weight);
      reserved_ += weight;
    }
  }

  /// How much weight may take this edge so that the other trees can still be packed.
  std::int64_t room_for(const RankEdge& edge, std::int64_t weight) {
    const std::int64_t most = std::min(edge.capacity, weight);
    const std::array<std::uint32_t, 2> sources{edge.tail, super_};
    const std::int64_t flow = reserve_->run(sources, std::span(&edge.head, 1), reserved_ + most);
    budget_.spend(reserve_->pass_count() * static_cast<std::int64_t>(reserve_->arc_count()));
    ESPALIER_CHECK(flow >= reserved_, "the other trees can no longer be packed");
    return flow - reserved_;
  }

  std::vector<RankEdge> edges_;
  std::vector<std::vector<std::uint32_t>> out_;  ///< Edge numbers by tail.
  std::vector<std::int64_t> waiting_;            ///< Weight of the trees of each root that have not begun.
  std::vector<Batch> partial_;                   ///< Copies that wait; the last goes on first.
  std::vector<RankTree> trees_;
  WorkBudget& budget_;
  std::optional<MaxFlow<std::int64_t>> reserve_;
  std::uint32_t super_ = 0;
  std::int64_t reserved_ = 0;
};

/// The capacity from each rank to each.
std::vector<std::vector<std::int64_t>> capacity_matrix(std::span<const RankEdge> edges, std::size_t ranks) {
  std::vector<std::vector<std::int64_t>> capacity(ranks, std::vector<std::int64_t>(ranks, 0));
  for (const RankEdge& edge : edges) capacity[edge.tail][edge.head] += edge.capacity;
  return capacity;
}

/// Adds edges from `from` to all ranks but `from` and `but`.
void add_star(RankTree& tree, std::uint32_t from, std::uint32_t but, std::size_t ranks) {
  for (std::uint32_t to = 0; to < ranks; ++to) {
    if (to != from && to != but) tree.edges.emplace_back(from, to);
  }
}

}  // namespace

std::optional<std::vector<RankTree>> pack_stars(std::span<const RankEdge> edges,
                                                std::span<const std::int64_t> demands) {
  const auto capacity = capacity_matrix(edges, demands.size());
  std::vector<RankTree> trees;
  for (std::uint32_t root = 0; root < demands.size(); ++root) {
    if (demands[root] == 0) continue;
    for (std::uint32_t to = 0; to < demands.size(); ++to) {
      if (to != root && capacity[root][to] < demands[root]) return std::nullopt;
    }
    trees.push_back({root, demands[root], {}});
    add_star(trees.back(), root, root, demands.size());
  }
  return trees;
}

std::optional<std::vector<RankTree>> pack_relays(std::span<const RankEdge> edges,
                                                 std::span<const std::int64_t> demands) {
  const auto has_demand = [](std::int64_t demand) { return demand > 0; };
  if (std::count_if(demands.begin(), demands.end(), has_demand) != 1) return std::nullopt;
  const auto root =
      static_cast<std::uint32_t>(std::find_if(demands.begin(), demands.end(), has_demand) - demands.begin());
  const auto capacity = capacity_matrix(edges, demands.size());
  std::int64_t left = demands[root];
  std::vector<RankTree> trees;
  for (std::uint32_t relay = 0; relay < demands.size() && left > 0; ++relay) {
    std::int64_t part = relay == root ? 0 : std::min(left, capacity[root][relay]);
    for (std::uint32_t to = 0; to < demands.size(); ++to) {
      if (to != root && to != relay) part = std::min(part, capacity[relay][to]);
    }
    if (part == 0) continue;
    trees.push_back({root, part, {{root, relay}}});
    add_star(trees.back(), relay, root, demands.size());
    left -= part;
  }
  if (left > 0) return std::nullopt;
  return trees;
}

std::optional<std::vector<RankTree>> pack_trees(std::span<const RankEdge> edges, std::span<const std::int64_t> demands,
                                                WorkBudget& budget) {
  if (auto stars = pack_stars(edges, demands)) return stars;
  if (auto relays = pack_relays(edges, demands)) return relays;
  return Packer(edges, demands, budget).run();
}

}  // namespace espalier
