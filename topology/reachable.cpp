#include "topology/reachable.h"

#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/filtered_graph.hpp>
#include <boost/graph/reverse_graph.hpp>

#include "topology/boost_graph.h"

namespace espalier {
namespace {

/// The links that a walk from `start` may take: it ends at a rank that must not relay.
class MayFollow {
 public:
  MayFollow() = default;
  MayFollow(const Topology& topology, NodeId start, bool forwards)
      : topology_(&topology), start_(start), forwards_(forwards) {}

  bool operator()(LinkId id) const {
    const Link& link = topology_->link(id);
    const NodeId node = forwards_ ? link.tail : link.head;
    return node == start_ || !topology_->node(node).must_not_relay();
  }

 private:
  const Topology* topology_ = nullptr;
  NodeId start_;
  bool forwards_ = true;
};

}  // namespace

std::vector<bool> reached_from(const Topology& topology, NodeId start, bool forwards) {
  const boost::filtered_graph<Topology, MayFollow> usable(topology, MayFollow(topology, start, forwards));
  std::vector<boost::default_color_type> colors(topology.node_count(), boost::white_color);
  const auto color_of = boost::make_iterator_property_map(colors.begin(), get(boost::vertex_index, topology));
  boost::queue<boost_graph::Vertex> pending;
  const boost::default_bfs_visitor nothing;
  if (forwards) {
    boost::breadth_first_visit(usable, start.value(), pending, nothing, color_of);
  } else {
    boost::breadth_first_visit(boost::make_reverse_graph(usable), start.value(), pending, nothing, color_of);
  }
  std::vector<bool> reached(colors.size());
  for (std::size_t i = 0; i < colors.size(); ++i) reached[i] = colors[i] != boost::white_color;
  return reached;
}

std::optional<Unreachable> find_unreachable(const Topology& topology) {
  const auto missed_from = [&](Rank start, bool forwards) -> std::optional<Unreachable> {
    const std::vector<bool> reached = reached_from(topology, topology.node_of(start), forwards);
    for (std::size_t i = 0; i < topology.rank_count(); ++i) {
      if (reached[topology.node_of(Rank(i)).index()]) continue;
      return forwards ? Unreachable{start, Rank(i)} : Unreachable{Rank(i), start};
    }
    return std::nullopt;
  };
  // Through a rank that relays all others reach each other. Where there is none, each has to by itself.
  if (const Rank center = topology.first_relaying(); !center.is_none()) {
    const auto missed = missed_from(center, true);
    return missed ? missed : missed_from(center, false);
  }
  for (std::size_t i = 0; i < topology.rank_count(); ++i) {
    if (const auto missed = missed_from(Rank(i), true)) return missed;
  }
  return std::nullopt;
}

std::string describe_unreachable(const Topology& topology, const Unreachable& pair) {
  std::string text = "rank " + topology.rank_name(pair.from) + " cannot reach rank " + topology.rank_name(pair.to);
  if (topology.first_not_relaying().is_none()) return text;
  // The ranks at which the ways end that would go on if these relayed.
  const std::vector<bool> ahead = reached_from(topology, topology.node_of(pair.from), true);
  std::string blocked;
  for (std::size_t i = 0; i < topology.rank_count(); ++i) {
    const Rank rank(i);
    if (topology.may_relay(rank) || rank == pair.from || !ahead[topology.node_of(rank).index()]) continue;
    constexpr std::size_t max_named = 120;
    if (blocked.size() > max_named) {
      blocked += ", ...";
      break;
    }
    blocked += (blocked.empty() ? "" : ", ") + topology.rank_name(rank);
  }
  return blocked.empty() ? text : text + ": ways end at " + blocked + ", which must not relay";
}

Result<void> check_reachable(const Topology& topology) {
  const auto unreachable = find_unreachable(topology);
  if (!unreachable) return {};
  return fail(ErrorCode::infeasible, describe_unreachable(topology, *unreachable),
              "add a link, or leave one of them out of the ranks");
}

}  // namespace espalier
