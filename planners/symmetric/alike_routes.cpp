#include "planners/symmetric/alike_routes.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "planners/symmetric/shift_chain.h"
#include "topology/routes.h"

namespace espalier::planners {

namespace {

constexpr std::uint32_t routes_kept = 8;

using RouteLinks = std::vector<LinkId>;

/// By rank, the different ones.
std::vector<std::vector<RouteLinks>> routes_of(const Topology& topology, Rank from, Bytes size) {
  std::vector<std::vector<RouteLinks>> routes(topology.rank_count());
  for (auto& variant : route_variants_from(topology, from, size, routes_kept)) {
    for (std::size_t to = 0; to < routes.size(); ++to) {
      if (!variant[to] || std::ranges::find(routes[to], variant[to]->links) != routes[to].end()) continue;
      routes[to].push_back(std::move(variant[to]->links));
    }
  }
  for (std::vector<RouteLinks>& of : routes) std::ranges::sort(of);
  return routes;
}

class AlikeRoutes {
 public:
  AlikeRoutes(std::shared_ptr<const OrbitGraph> orbits, const Topology& whole, const Topology& rest, const Parts* gone,
              Bytes size)
      : orbits_(std::move(orbits)),
        shifts_(*orbits_),
        rest_(rest),
        size_(size),
        first_(routes_of(whole, Rank(0), size)),
        edge_of_(whole.link_count()) {
    const auto& edges = orbits_->graph.edges;
    for (std::uint32_t e = 0; e < edges.size(); ++e) edge_of_[edges[e].links.front().index()] = e;
    if (gone == nullptr) return;
    left_.resize(whole.link_count());
    const Parts left = what_is_left(whole, *gone);
    for (std::size_t i = 0; i < left.links.size(); ++i) left_[left.links[i].index()] = LinkId(i);
  }

  std::vector<RouteLinks> of(Rank from, Rank to) const {
    const std::uint32_t apart = orbits_->rank_image(shifts_.by(shifts_.minus(from.value())), to.value());
    const Automorphism shift = shifts_.by(from.value());
    std::vector<RouteLinks> routes;
    for (const RouteLinks& route : first_[apart]) {
      if (auto image = image_of(route, shift)) routes.push_back(*std::move(image));
    }
    if (routes.empty() && !left_.empty()) return std::move(routes_of(rest_, from, size_)[to.index()]);
    return routes;
  }

 private:
  /// Nothing where a link of it is gone.
  [[nodiscard]] std::optional<RouteLinks> image_of(const RouteLinks& route, const Automorphism& shift) const {
    RouteLinks image;
    for (const LinkId link : route) {
      LinkId there = orbits_->graph.edges[orbits_->edge_image(shift, edge_of_[link.index()])].links.front();
      if (!left_.empty()) there = left_[there.index()];
      if (there.is_none()) return std::nullopt;
      image.push_back(there);
    }
    return image;
  }

  std::shared_ptr<const OrbitGraph> orbits_;
  Shifts shifts_;
  const Topology& rest_;
  Bytes size_;
  std::vector<std::vector<RouteLinks>> first_;  // of rank 0, by rank
  std::vector<std::uint32_t> edge_of_;          // by link
  std::vector<LinkId> left_;  // by link of the whole, where some are gone: its id in what is left, or none
};

}  // namespace

PairRoutes alike_routes(std::shared_ptr<const OrbitGraph> shifts, const Topology& whole, const Topology& rest,
                        const Parts* gone, Bytes size) {
  const auto routes = std::make_shared<const AlikeRoutes>(std::move(shifts), whole, rest, gone, size);
  return [routes](Rank from, Rank to) { return routes->of(from, to); };
}

}  // namespace espalier::planners
