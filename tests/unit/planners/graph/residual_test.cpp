#include "planners/graph/residual.h"

#include <gtest/gtest.h>

#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/filtered_graph.hpp>

#include "topology/boost_graph.h"
#include "topology/generate/generate.h"

namespace espalier::planners {
namespace {

/// The links with room for a rate that lead away from a rank or from what is none.
struct Usable {
  const Residual* residual = nullptr;
  NodeId start;
  std::int64_t rate = 0;
  bool operator()(LinkId id) const {
    const NodeId tail = residual->topology().link(id).tail;
    return residual->room(id) >= rate && (tail == start || residual->topology().rank_of(tail).is_none());
  }
};

/// By node, how many links away it is from `start` by Boost; 0 where it is not reached.
std::vector<std::uint32_t> distances(const Residual& residual, NodeId start, std::int64_t rate) {
  const Topology& topology = residual.topology();
  const boost::filtered_graph<Topology, Usable> usable(topology, {&residual, start, rate});
  std::vector<std::uint32_t> distance(topology.node_count(), 0);
  std::vector<boost::default_color_type> colors(topology.node_count(), boost::white_color);
  const auto index = get(boost::vertex_index, topology);
  boost::queue<std::uint32_t> pending;
  boost::breadth_first_visit(usable, start.value(), pending,
                             boost::make_bfs_visitor(boost::record_distances(
                                 boost::make_iterator_property_map(distance.begin(), index), boost::on_tree_edge())),
                             boost::make_iterator_property_map(colors.begin(), index));
  return distance;
}

TEST(Residual, FindsRoutesAsShortAsBoostDoes) {
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U, 5U, 6U}) {
    const Topology topology = generate_random({.ranks = 8, .switches = 6, .extra = 12, .seed = seed}).value();
    Residual residual(topology);
    // All that the first links have is taken, so that some routes are gone and others longer.
    for (std::size_t i = 0; i < topology.link_count() / 4; ++i) {
      const LinkId link(i);
      residual.take({&link, 1}, residual.room(std::span(&link, 1)));
    }
    for (std::size_t i = 0; i < topology.rank_count(); ++i) {
      const auto distance = distances(residual, topology.node_of(Rank(i)), 1);
      for (std::size_t j = 0; j < topology.rank_count(); ++j) {
        if (i == j) continue;
        const auto route = residual.find_route(Rank(i), Rank(j), 1);
        EXPECT_EQ(route ? route->size() : 0, distance[topology.node_of(Rank(j)).index()]) << seed;
        if (route) {
          EXPECT_GE(residual.room(*route), 1);
        }
      }
    }
  }
}

}  // namespace
}  // namespace espalier::planners
