#include "planners/classic/partners.h"

#include <algorithm>

namespace espalier::planners {

Result<void> check_equal_shards(const Collective& collective, std::string_view planner) {
  if (collective.shares.empty()) return {};
  return fail(ErrorCode::unsupported, std::string(planner) + " plans equal shards only",
              "use packing, ring, tree or flat");
}

Partners::Partners(const PlanningProblem& problem, std::string algorithm)
    : graph_(problem.logical_graph(Direction::forward, small_message, 1)),
      order_(order_ranks(group_ranks(problem.topology()))),
      algorithm_(std::move(algorithm)) {}

Result<std::vector<LinkId>> Partners::route(Rank from, Rank to) const {
  const std::span<const Hop> hops = graph_.hops(from, to);
  if (!hops.empty()) return hops.front().links;
  const Topology& topology = graph_.topology();
  return fail(ErrorCode::unsupported,
              algorithm_ + " needs a route from " + topology.rank_name(from) + " to " + topology.rank_name(to) +
                  ", which reach each other only through other ranks",
              "use flat or tree for small messages, packing for large ones");
}

ExchangeWriter::ExchangeWriter(const Topology& topology, const Collective& collective, const Partners& partners,
                               std::string algorithm, std::size_t blocks)
    : partners_(partners), schedule_(collective, topology.name(), std::move(algorithm)) {
  const bool sharded = slices_have_rank(collective.kind);
  const std::size_t count = sharded ? partners.order().size() : blocks;
  schedule_.units = static_cast<std::int64_t>(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Slice slice{static_cast<std::int64_t>(i), 1, sharded ? Rank(i) : Rank(), Rank()};
    schedule_.slices.push_back(slice);
    slice_at_.push_back(sharded ? partners.order()[i].value() : static_cast<std::uint32_t>(i));
  }
}

Result<void> ExchangeWriter::send(Rank from, Rank to, PlaceRun places, Action action) {
  const Result<std::vector<LinkId>> links = partners_.route(from, to);
  if (!links) return tl::unexpected(links.error());
  const RouteId route = schedule_.add_route(from, to, *links);
  std::vector<std::uint32_t> slices;
  for (std::size_t i = 0; i < places.count; ++i) slices.push_back(slice_at_[(places.first + i) % slice_at_.size()]);
  std::sort(slices.begin(), slices.end());
  for (std::size_t first = 0; first < slices.size();) {
    std::size_t end = first + 1;
    while (end < slices.size() && slices[end] == slices[end - 1] + 1) ++end;
    schedule_.add_transfer(route, SliceId(slices[first]), static_cast<std::uint32_t>(end - first), action,
                           ChannelId(0));
    first = end;
  }
  return {};
}

}  // namespace espalier::planners
