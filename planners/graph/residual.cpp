#include "planners/graph/residual.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace espalier::planners {

namespace {

constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

}  // namespace

Residual::Residual(const Topology& topology) : topology_(topology), visits_(topology.node_count()) {
  for (const Link& link : topology.links()) link_room_.push_back(link.bandwidth().bytes_per_second);
  for (const Node& node : topology.nodes()) {
    node_room_.push_back(node.bandwidth.bytes_per_second == 0 ? unlimited : node.bandwidth.bytes_per_second);
  }
}

std::int64_t Residual::room(std::span<const LinkId> route) const {
  std::int64_t least = node_room(topology_.link(route.front()).tail);
  for (const LinkId id : route) least = std::min({least, room(id), node_room(topology_.link(id).head)});
  return least;
}

void Residual::take(std::span<const LinkId> route, std::int64_t rate) {
  ESPALIER_CHECK(rate <= room(route), "a ring or tree takes no more than is left");
  charge(route, rate);
}

void Residual::give_back(std::span<const LinkId> route, std::int64_t rate) { charge(route, -rate); }

void Residual::charge(std::span<const LinkId> route, std::int64_t rate) {
  const auto charge_node = [&](NodeId node) {
    if (topology_.node(node).bandwidth.bytes_per_second != 0) node_room_[node.index()] -= rate;
  };
  charge_node(topology_.link(route.front()).tail);
  for (const LinkId id : route) {
    link_room_[id.index()] -= rate;
    charge_node(topology_.link(id).head);
  }
}

void Residual::enter(NodeId node, LinkId link, std::uint32_t level, std::int64_t width) const {
  Visit& visit = visits_[node.index()];
  if (visit.epoch != epoch_) {
    visit = {epoch_, level, width, link};
    next_nodes_.push_back(node);
  } else if (visit.level == level && width > visit.width) {
    visit.width = width;
    visit.entered_by = link;
  }
}

template <class VisitRank>
void Residual::search(Rank from, std::int64_t rate, std::uint32_t max_links, VisitRank visit_rank) const {
  ++epoch_;
  const NodeId start = topology_.node_of(from);
  if (node_room(start) < rate) return;
  visits_[start.index()] = {epoch_, 0, node_room(start), LinkId()};
  level_nodes_.assign(1, start);
  for (std::uint32_t level = 1; level <= max_links && !level_nodes_.empty(); ++level) {
    next_nodes_.clear();
    for (const NodeId node : level_nodes_) {
      if (level > 1 && !topology_.rank_of(node).is_none()) continue;
      for (const LinkId id : topology_.out_links(node)) {
        const NodeId head = topology_.link(id).head;
        const std::int64_t width = std::min({visits_[node.index()].width, room(id), node_room(head)});
        if (width >= rate) enter(head, id, level, width);
      }
    }
    std::sort(next_nodes_.begin(), next_nodes_.end());
    bool stop = false;
    for (const NodeId node : next_nodes_) {
      const Rank rank = topology_.rank_of(node);
      if (!rank.is_none()) stop = visit_rank(rank, level) || stop;
    }
    if (stop) return;
    std::swap(level_nodes_, next_nodes_);
  }
}

/// All that is one link further; with the length of the route only what is on one of that length.
void Residual::step_ahead(Rank from, Rank to, std::int64_t rate, Front& ahead,
                          std::optional<std::uint32_t> length) const {
  next_nodes_.clear();
  const std::uint32_t level = ++ahead.level;
  for (const NodeId node : ahead.nodes) {
    for (const LinkId id : topology_.out_links(node)) {
      const NodeId head = topology_.link(id).head;
      const Rank rank = topology_.rank_of(head);
      if (!rank.is_none() && rank != to && rank != from) continue;
      const Visit& behind = back_visits_[head.index()];
      if (length && (behind.epoch != epoch_ || behind.level != *length - level)) continue;
      const std::int64_t width = std::min({visits_[node.index()].width, room(id), node_room(head)});
      if (width >= rate) enter(head, id, level, width);
    }
  }
  std::sort(next_nodes_.begin(), next_nodes_.end());
  std::swap(ahead.nodes, next_nodes_);
  ahead.cost = 0;
  for (const NodeId node : ahead.nodes) ahead.cost += topology_.out_links(node).size();
}

/// All from which it is one link further to the end.
void Residual::step_back(Rank from, Rank to, std::int64_t rate, Front& back) const {
  next_nodes_.clear();
  const std::uint32_t level = ++back.level;
  back.cost = 0;
  for (const NodeId node : back.nodes) {
    if (node_room(node) < rate) continue;
    for (const LinkId id : topology_.in_links(node)) {
      const NodeId tail = topology_.link(id).tail;
      const Rank rank = topology_.rank_of(tail);
      Visit& visit = back_visits_[tail.index()];
      if (visit.epoch == epoch_ || room(id) < rate || (!rank.is_none() && rank != from && rank != to)) continue;
      visit.epoch = epoch_;
      visit.level = level;
      next_nodes_.push_back(tail);
      back.cost += topology_.in_links(tail).size();
    }
  }
  std::swap(back.nodes, next_nodes_);
}

/// How many links the shortest route has, from both ends at once; `ahead` has then gone a part of them.
std::optional<std::uint32_t> Residual::find_length(Rank from, Rank to, std::int64_t rate, Front& ahead) const {
  const NodeId start = topology_.node_of(from), end = topology_.node_of(to);
  ++epoch_;
  if (back_visits_.empty()) back_visits_.resize(visits_.size());
  visits_[start.index()] = {epoch_, 0, node_room(start), LinkId()};
  back_visits_[end.index()] = {epoch_, 0, 0, LinkId()};
  ahead = {{start}, 0, topology_.out_links(start).size()};
  Front back{{end}, 0, topology_.in_links(end).size()};
  while (!ahead.nodes.empty() && !back.nodes.empty()) {
    const bool is_ahead = ahead.cost <= back.cost;
    if (is_ahead) {
      step_ahead(from, to, rate, ahead, std::nullopt);
    } else {
      step_back(from, to, rate, back);
    }
    const std::vector<Visit>& others = is_ahead ? back_visits_ : visits_;
    const auto is_met = [&](NodeId node) { return others[node.index()].epoch == epoch_; };
    if (std::ranges::any_of(is_ahead ? ahead.nodes : back.nodes, is_met)) return ahead.level + back.level;
  }
  return std::nullopt;
}

std::optional<Path> Residual::find_route(Rank from, Rank to, std::int64_t rate) const {
  if (from == to || node_room(topology_.node_of(from)) < rate) return std::nullopt;
  Front ahead;
  const std::optional<std::uint32_t> length = find_length(from, to, rate, ahead);
  if (!length) return std::nullopt;
  while (ahead.level < *length) step_ahead(from, to, rate, ahead, length);
  Path path;
  for (NodeId node = topology_.node_of(to); node != topology_.node_of(from);) {
    path.push_back(visits_[node.index()].entered_by);
    node = topology_.link(path.back()).tail;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

std::vector<Residual::Reached> Residual::reach(Rank from, std::int64_t rate, std::uint32_t max_links) const {
  std::vector<Reached> reached;
  search(from, rate, max_links, [&](Rank rank, std::uint32_t level) {
    reached.push_back({rank, level});
    return false;
  });
  return reached;
}

}  // namespace espalier::planners
