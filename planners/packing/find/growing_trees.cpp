#include "planners/packing/find/growing_trees.h"

#include <algorithm>
#include <utility>

namespace espalier::planners {

namespace {

constexpr std::uint8_t along = 0;
constexpr std::uint8_t against = 1;
constexpr std::uint8_t by_tree = 2;

}  // namespace

GrowingTrees::GrowingTrees(const FlowNetwork& network, std::vector<std::int64_t> room, Rank root,
                           std::span<const std::int64_t> weights, WorkBudget& budget)
    : network_(network),
      room_(std::move(room)),
      root_(root.value()),
      budget_(budget),
      came_(network.vertex_count()),
      seen_(network.vertex_count(), 0) {
  const std::size_t ranks = rank_count();
  flow_.assign(ranks * room_.size(), 0);
  entry_.assign(weights.size() * ranks * ranks, 0);
  entry_sum_.assign(ranks * ranks, 0);
  is_blocked_.assign(weights.size(), std::vector<bool>(room_.size(), false));
  tree_seen_.assign(weights.size(), 0);
  std::int64_t sum = 0;
  for (const std::int64_t weight : weights) {
    trees_.push_back(ParentTree::of_root(root_, ranks, weight));
    sum += weight;
  }
  for (std::size_t sink = 0; sink < ranks && is_possible_; ++sink) {
    if (sink == root_) continue;
    for (std::size_t t = 0; t < trees_.size(); ++t) change_entry(sink, root_, t, trees_[t].weight);
    is_possible_ = push(sink, network.vertex_of(root), network.vertex_of(Rank(sink)), sum) == sum;
  }
  changes_.clear();
}

bool GrowingTrees::is_complete() const {
  return std::ranges::all_of(trees_, [&](const ParentTree& tree) { return tree.members.size() == rank_count(); });
}

std::int64_t GrowingTrees::add(std::uint32_t tree, std::uint32_t parent, const std::vector<std::uint32_t>& path,
                               std::uint32_t rank) {
  ParentTree& grown = trees_[tree];
  std::int64_t fitting = grown.weight;
  for (const std::uint32_t a : path) fitting = std::min(fitting, room_[a]);
  if (fitting < grown.weight) return fitting;
  for (const std::uint32_t a : path) room_[a] -= grown.weight;
  grown.members.push_back(rank);
  for (std::size_t sink = 0; sink < rank_count() && fitting == grown.weight; ++sink) {
    if (sink == root_) continue;
    std::int64_t missing = 0;
    for (const std::uint32_t a : path) {
      const std::int64_t over = flow_[flow_place(sink, a)] - room_[a];
      if (over <= 0) continue;
      change_flow(flow_place(sink, a), -over);
      missing += over - push(sink, network_.arcs()[a].tail, network_.arcs()[a].head, over);
      if (missing > 0) break;
    }
    fitting -= missing;
  }
  if (fitting == grown.weight) {
    changes_.clear();
    grown.depth[rank] = grown.depth[parent] + 1;
    grown.parent[rank] = parent;
    grown.path[rank] = path;
    for (TightSet& tight : tight_sets_) {
      if (!tight.is_entered[tree] && tight.is_inside[network_.vertex_of(Rank(rank))]) enter(tree, tight);
    }
    return fitting;
  }
  take_back();
  grown.members.pop_back();
  for (const std::uint32_t a : path) room_[a] += grown.weight;
  note_tight_set();
  return std::max<std::int64_t>(0, fitting);
}

void GrowingTrees::split(std::uint32_t tree, std::int64_t weight) {
  const std::size_t added = trees_.size();
  trees_.push_back(trees_[tree]);
  is_blocked_.push_back(is_blocked_[tree]);
  trees_[added].weight -= weight;
  trees_[tree].weight = weight;
  tree_seen_.push_back(0);
  for (TightSet& tight : tight_sets_) tight.is_entered.push_back(tight.is_entered[tree]);
  entry_.resize(trees_.size() * rank_count() * rank_count(), 0);
  for (std::size_t sink = 0; sink < rank_count(); ++sink) {
    if (sink == root_) continue;
    std::int64_t kept = weight;
    for (const std::uint32_t rank : trees_[tree].members) {
      std::int64_t& here = entry_[entry_place(sink, rank, tree)];
      const std::int64_t part = std::min(kept, here);
      entry_[entry_place(sink, rank, added)] = here - part;
      here = part;
      kept -= part;
    }
  }
}

void GrowingTrees::change_flow(std::size_t place, std::int64_t amount) {
  flow_[place] += amount;
  changes_.push_back({place, amount, false});
}

void GrowingTrees::change_entry(std::size_t sink, std::size_t rank, std::size_t tree, std::int64_t amount) {
  const std::size_t place = entry_place(sink, rank, tree);
  entry_[place] += amount;
  entry_sum_[sink * rank_count() + rank] += amount;
  changes_.push_back({place, amount, true});
}

void GrowingTrees::take_back() {
  const std::size_t square = rank_count() * rank_count();
  for (; !changes_.empty(); changes_.pop_back()) {
    const Change& change = changes_.back();
    if (change.is_entry) {
      entry_[change.place] -= change.amount;
      entry_sum_[change.place % square] -= change.amount;
    } else {
      flow_[change.place] -= change.amount;
    }
  }
}

std::int64_t GrowingTrees::push(std::size_t sink, std::uint32_t from, std::uint32_t to, std::int64_t amount) {
  std::int64_t pushed = 0;
  while (pushed < amount && search(sink, from, to)) pushed += apply_path(sink, from, to, amount - pushed);
  return pushed;
}

bool GrowingTrees::search(std::size_t sink, std::uint32_t from, std::uint32_t to) {
  ++stamp_;
  queue_.assign(1, from);
  seen_[from] = stamp_;
  const std::span<const FlowArc> arcs = network_.arcs();
  const std::int64_t* flow = &flow_[flow_place(sink, 0)];
  std::int64_t passed = 0;
  const auto reach = [&](std::uint32_t vertex, Step step) {
    if (seen_[vertex] == stamp_) return;
    seen_[vertex] = stamp_;
    came_[vertex] = step;
    queue_.push_back(vertex);
  };
  for (std::size_t done = 0; done < queue_.size() && seen_[to] != stamp_; ++done) {
    const std::uint32_t vertex = queue_[done];
    const std::span<const std::uint32_t> out = network_.arcs_from(vertex);
    const std::span<const std::uint32_t> in = network_.arcs_to(vertex);
    passed += static_cast<std::int64_t>(out.size() + in.size());
    for (const std::uint32_t a : out) {
      if (room_[a] > flow[a]) reach(arcs[a].head, {vertex, a, along});
    }
    for (const std::uint32_t a : in) {
      if (flow[a] > 0) reach(arcs[a].tail, {vertex, a, against});
    }
    const Rank rank = network_.rank_at(vertex);
    if (rank.is_none() || entry_sum_[sink * rank_count() + rank.index()] == 0) continue;
    for (std::uint32_t t = 0; t < trees_.size(); ++t) {
      if (tree_seen_[t] == stamp_ || entry_[entry_place(sink, rank.index(), t)] == 0) continue;
      tree_seen_[t] = stamp_;
      passed += static_cast<std::int64_t>(trees_[t].members.size());
      for (const std::uint32_t member : trees_[t].members) {
        reach(network_.vertex_of(Rank(member)), {vertex, t, by_tree});
      }
    }
  }
  budget_.spend(passed);
  return seen_[to] == stamp_;
}

std::int64_t GrowingTrees::apply_path(std::size_t sink, std::uint32_t from, std::uint32_t to, std::int64_t amount) {
  const auto rank_at = [&](std::uint32_t vertex) { return network_.rank_at(vertex).index(); };
  for (std::uint32_t v = to; v != from; v = came_[v].from) {
    const Step& step = came_[v];
    if (step.kind == along) {
      amount = std::min(amount, room_[step.by] - flow_[flow_place(sink, step.by)]);
    } else if (step.kind == against) {
      amount = std::min(amount, flow_[flow_place(sink, step.by)]);
    } else {
      amount = std::min(amount, entry_[entry_place(sink, rank_at(step.from), step.by)]);
    }
  }
  for (std::uint32_t v = to; v != from; v = came_[v].from) {
    const Step& step = came_[v];
    if (step.kind == by_tree) {
      change_entry(sink, rank_at(step.from), step.by, -amount);
      change_entry(sink, rank_at(v), step.by, amount);
    } else {
      change_flow(flow_place(sink, step.by), step.kind == along ? amount : -amount);
    }
  }
  return amount;
}

void GrowingTrees::note_tight_set() {
  TightSet tight;
  for (const std::uint32_t seen : seen_) tight.is_inside.push_back(seen != stamp_);
  __int128 spare = 0;
  for (std::uint32_t a = 0; a < room_.size(); ++a) {
    if (!tight.is_inside[network_.arcs()[a].head] || tight.is_inside[network_.arcs()[a].tail]) continue;
    tight.entries.push_back(a);
    spare += room_[a];
  }
  for (const ParentTree& tree : trees_) {
    tight.is_entered.push_back(std::ranges::any_of(
        tree.members, [&](std::uint32_t rank) { return tight.is_inside[network_.vertex_of(Rank(rank))]; }));
    if (!tight.is_entered.back()) spare -= tree.weight;
  }
  if (spare != 0) return;
  for (std::size_t t = 0; t < trees_.size(); ++t) {
    if (tight.is_entered[t]) enter(t, tight);
  }
  tight_sets_.push_back(std::move(tight));
}

void GrowingTrees::enter(std::size_t tree, TightSet& tight) {
  tight.is_entered[tree] = true;
  for (const std::uint32_t a : tight.entries) is_blocked_[tree][a] = true;
}

}  // namespace espalier::planners
