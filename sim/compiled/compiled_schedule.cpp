#include "sim/compiled/compiled_schedule.h"

#include <algorithm>
#include <limits>
#include <string>

#include "schedule/relays.h"
#include "sim/core/workload.h"
#include "sim/limits.h"

namespace espalier::sim {
namespace {

/// Overheads are summed up to here, past any time that a simulation accepts.
constexpr std::int64_t beyond_time = max_simulated_time + 1;

tl::unexpected<Error> foreign_route(std::size_t index, const std::string& why, const Topology& topology) {
  return fail(ErrorCode::invalid_input,
              "route " + std::to_string(index) + " of the schedule " + why + " on the topology " + topology.name(),
              "simulate a schedule on the topology that it was planned for");
}

/// Lays the routes of a schedule over the resources of a network.
class PathMaker {
 public:
  PathMaker(const Schedule& schedule, const Topology& topology, const Network& network, const Parts& places)
      : schedule_(schedule),
        topology_(topology),
        network_(network),
        places_(places),
        last_visitor_(topology.node_count(), 0),
        routes_from_(topology.node_count(), no_turn) {}

  Result<void> add_path() {
    const std::size_t index = paths.size();
    const Route route = schedule_.route(RouteId(index));
    if (route.src.index() >= end_count(schedule_) || route.dst.index() >= end_count(schedule_)) {
      return foreign_route(index, "joins ranks that are not", topology_);
    }
    if (route.links.empty()) return foreign_route(index, "has no links", topology_);
    Path path;
    path.begin = static_cast<std::uint32_t>(steps.size());
    NodeId at = node_of_end(schedule_, topology_, route.src);
    const NodeId end = node_of_end(schedule_, topology_, route.dst);
    if (const std::uint32_t processor = network_.processor(place(at)); processor != Network::absent) {
      steps.push_back(processor);
    }
    std::uint32_t& turn = routes_from_[at.index()];
    if (turn == no_turn) turn = end.value();  // so that programs of one route each do not all take the first engine
    const std::uint32_t engine = network_.engine(place(at), turn++);
    if (engine != Network::absent) steps.push_back(engine);
    visit(at);
    path.first_link = static_cast<std::uint32_t>(steps.size());
    for (const LinkId id : route.links) {
      if (id.index() >= topology_.link_count() || topology_.link(id).tail != at) {
        return foreign_route(index, "is not a path", topology_);
      }
      const Link& link = topology_.link(id);
      path.last_link = static_cast<std::uint32_t>(steps.size());
      path.overhead = std::min(path.overhead + std::min(link.overhead.count, beyond_time), beyond_time);
      steps.push_back((places_.links.empty() ? id : places_.links[id.index()]).value());
      at = link.head;
      if (!visit(at)) return foreign_route(index, "passes a node twice", topology_);
    }
    if (at != end) {
      return foreign_route(index, "misses its destination", topology_);
    }
    if (const std::uint32_t processor = network_.processor(place(at)); processor != Network::absent) {
      steps.push_back(processor);
    }
    path.end = path.reduce_end = static_cast<std::uint32_t>(steps.size());
    if (const std::uint32_t reduction = network_.reduction(place(at)); reduction != Network::absent) {
      steps.push_back(reduction);
      ++path.reduce_end;
    }
    paths.push_back(path);
    return {};
  }

  [[nodiscard]] NodeId place(NodeId node) const { return places_.nodes.empty() ? node : places_.nodes[node.index()]; }

  std::vector<Path> paths;
  std::vector<std::uint32_t> steps;

 private:
  static constexpr std::uint32_t no_turn = std::numeric_limits<std::uint32_t>::max();

  /// Adds the node's backplane; false when the path was here before.
  bool visit(NodeId node) {
    if (const std::uint32_t backplane = network_.backplane(place(node)); backplane != Network::absent) {
      steps.push_back(backplane);
    }
    const auto visitor = static_cast<std::uint32_t>(paths.size() + 1);
    const bool first_visit = last_visitor_[node.index()] != visitor;
    last_visitor_[node.index()] = visitor;
    return first_visit;
  }

  const Schedule& schedule_;
  const Topology& topology_;
  const Network& network_;
  const Parts& places_;
  std::vector<std::uint32_t> last_visitor_;  // by node: the latest path, plus one, that passed it
  std::vector<std::uint32_t> routes_from_;   // by node: the turn of the engines at its next route
};

bool fits(const Topology& topology, const Network& network, const Parts& places) {
  if (places.nodes.empty() && places.links.empty()) {
    return topology.node_count() == network.node_count() && topology.link_count() == network.link_count();
  }
  return places.nodes.size() == topology.node_count() && places.links.size() == topology.link_count() &&
         std::ranges::all_of(places.nodes, [&](NodeId id) { return id.index() < network.node_count(); }) &&
         std::ranges::all_of(places.links, [&](LinkId id) { return id.index() < network.link_count(); });
}

}  // namespace

Result<CompiledSchedule> CompiledSchedule::make_unverified(const Schedule& schedule, const Topology& topology,
                                                           const Network& network, const Parts& places) {
  if (auto checked = check_transfers(schedule); !checked) return tl::unexpected(checked.error());
  const auto is_node = [&](NodeId node) { return node.index() < topology.node_count(); };
  if (!fits(topology, network, places) || schedule.collective.rank_count != topology.rank_count() ||
      !std::ranges::all_of(schedule.relays, is_node)) {
    return fail(ErrorCode::invalid_input, "the schedule has ranks or relays that are not on " + topology.name(),
                "simulate a schedule on the topology that it was planned for");
  }
  PathMaker maker(schedule, topology, network, places);
  maker.paths.reserve(schedule.route_count());
  for (std::size_t i = 0; i < schedule.route_count(); ++i) {
    if (auto added = maker.add_path(); !added) return tl::unexpected(added.error());
  }
  CompiledSchedule compiled(schedule);
  for (std::size_t end = 0; end < end_count(schedule); ++end) {
    compiled.places_of_ends_.push_back(maker.place(node_of_end(schedule, topology, Rank(end))));
  }
  compiled.paths_ = std::move(maker.paths);
  compiled.steps_ = std::move(maker.steps);
  compiled.sort_lanes_by_rank();
  compiled.find_sharing(network.resources().size());
  return compiled;
}

void CompiledSchedule::find_sharing(std::size_t resource_count) {
  std::vector<LaneIndex> first_user(resource_count, no_lane);
  std::vector<LaneIndex> lane_of_route(paths_.size(), no_lane);
  std::vector<char> shares(lanes_.first.size(), 0);
  for (LaneIndex lane = 0; lane < lanes_.first.size(); ++lane) {
    for (TransferId id = lanes_.first[lane]; !id.is_none(); id = lanes_.next[id.index()]) {
      const Transfer& transfer = schedule_->transfers[id.index()];
      const Path& path = paths_[transfer.route.index()];
      LaneIndex& latest = lane_of_route[transfer.route.index()];
      const std::uint32_t begin = latest == lane ? path.end : path.begin;
      latest = lane;
      for (std::uint32_t step = begin; step < path.end_of(transfer); ++step) {
        LaneIndex& first = first_user[steps_[step]];
        if (first == no_lane) first = lane;
        // The ranks of a host may have one processor: then a chunk that arrives there meets the next one that leaves.
        const bool meets_itself = step + 1 == path.end && step > path.begin && steps_[step] == steps_[path.begin];
        if (first != lane || meets_itself) shares[lane] = shares[first] = 1;
      }
    }
  }
  if (std::ranges::count(shares, 1) > 0) {
    shares_ = std::move(shares);
  } else {
    lane_of_route_ = std::move(lane_of_route);
  }
}

void CompiledSchedule::sort_lanes_by_rank() {
  const std::size_t ranks = schedule_->collective.rank_count;
  rank_lanes_.assign(ranks + 2, 0);
  const auto for_ends = [&](const auto& visit) {
    for (std::size_t i = 0; i < lanes_.first.size(); ++i) {
      const Transfer& first = schedule_->transfers[lanes_.first[i].index()];
      const std::size_t src = schedule_->src(first).index();
      const std::size_t dst = schedule_->dst(first).index();
      if (src < ranks) visit(src, static_cast<LaneIndex>(i));
      if (dst < ranks) visit(dst, static_cast<LaneIndex>(i));
      if (src >= ranks && dst >= ranks) visit(ranks, static_cast<LaneIndex>(i));
    }
  };
  for_ends([&](std::size_t list, LaneIndex) { ++rank_lanes_[list + 1]; });
  for (std::size_t i = 1; i < rank_lanes_.size(); ++i) rank_lanes_[i] += rank_lanes_[i - 1];
  lanes_by_rank_.resize(rank_lanes_.back());
  std::vector<std::uint32_t> next(rank_lanes_.begin(), rank_lanes_.end() - 1);
  for_ends([&](std::size_t list, LaneIndex lane) { lanes_by_rank_[next[list]++] = lane; });
}

}  // namespace espalier::sim
