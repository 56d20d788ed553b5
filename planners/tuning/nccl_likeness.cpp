#include "planners/tuning/nccl_likeness.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "planners/place_table.h"
#include "schedule/relays.h"

namespace espalier::planners {
namespace {

/// What is known of a slice at a rank, for the additions and for the copies.
struct VisitedNode {
  std::uint32_t added_hops = 0;
  std::uint32_t copied_hops = 0;
  std::uint16_t added_from = 0;
  std::uint16_t copied_to = 0;
};

class Travel {
 public:
  explicit Travel(const Schedule& schedule)
      : schedule_(schedule),
        visits_(end_count(schedule), schedule.slices.size()),
        branches_(schedule.slices.size(), 0),
        moved_(schedule.slices.size(), 0) {}

  TravelShape measure() {
    TravelShape shape;
    for (const Transfer& transfer : schedule_.transfers) {
      for (std::uint32_t i = 0; i < transfer.slice_count; ++i) {
        shape.hops = std::max(shape.hops, move(transfer, transfer.first_slice.index() + i));
      }
    }
    double all = 0, chained = 0;
    for (std::size_t slice = 0; slice < branches_.size(); ++slice) {
      all += moved_[slice];
      if (branches_[slice] <= 1) chained += moved_[slice];
      shape.branches = std::max(shape.branches, branches_[slice]);
    }
    shape.in_chains = all > 0 ? chained / all : 1;
    return shape;
  }

 private:
  std::uint32_t move(const Transfer& transfer, std::size_t slice) {
    VisitedNode& from = visits_.at(schedule_.src(transfer), slice);
    VisitedNode& to = visits_.at(schedule_.dst(transfer), slice);
    moved_[slice] += static_cast<double>(schedule_.slices[slice].length);
    if (transfer.reduces != 0) {
      branches_[slice] = std::max<std::uint32_t>(branches_[slice], ++to.added_from);
      const std::uint32_t before = transfer.reads_input != 0 ? 0 : from.added_hops;
      to.added_hops = std::max(to.added_hops, before + 1);
      return to.added_hops;
    }
    branches_[slice] = std::max<std::uint32_t>(branches_[slice], ++from.copied_to);
    to.copied_hops = std::max(to.copied_hops, from.copied_hops + 1);
    return to.copied_hops;
  }

  const Schedule& schedule_;
  PlaceTable<VisitedNode> visits_;
  std::vector<std::uint32_t> branches_;  ///< By slice.
  std::vector<double> moved_;            ///< By slice: units times transfers.
};

/// Whether every inner node of every route is a switch that adds and copies.
bool runs_through_computing_switches(const Schedule& schedule, const Topology& topology) {
  for (std::size_t i = 0; i < schedule.route_count(); ++i) {
    const Route route = schedule.route(RouteId(i));
    if (route.links.size() < 2) return false;
    for (const LinkId link : route.links.first(route.links.size() - 1)) {
      const Node& node = topology.node(topology.link(link).head);
      if (!node.multicast || !node.reduction) return false;
    }
  }
  return schedule.route_count() > 0;
}

/// The ranks of each machine; all of them in one where no hosts are given.
std::map<std::string, std::size_t> ranks_by_host(const Topology& topology) {
  std::map<std::string, std::size_t> counts;
  for (std::size_t i = 0; i < topology.rank_count(); ++i) ++counts[topology.node(topology.node_of(Rank(i))).host];
  return counts;
}

bool has_one_rank_per_host(const Topology& topology) {
  const auto counts = ranks_by_host(topology);
  return counts.size() > 1 && counts.size() == topology.rank_count() && !counts.contains("");
}

std::string hops_text(std::uint32_t hops) { return fmt::format("{} hop{}", hops, hops == 1 ? "" : "s"); }

std::string shape_text(const TravelShape& shape, std::size_t ring_hops) {
  if (shape.branches <= 1) return fmt::format("slices pass from rank to rank in chains of {}", hops_text(shape.hops));
  return fmt::format("slices branch up to {} ways and take {}, a ring's take {}", shape.branches, hops_text(shape.hops),
                     ring_hops);
}

}  // namespace

TravelShape measure_travel(const Schedule& schedule) { return Travel(schedule).measure(); }

NcclLikeness nearest_nccl(const Schedule& schedule, const Topology& topology) {
  const CollectiveKind kind = schedule.collective.kind;
  switch (kind) {
    case CollectiveKind::all_to_all:
    case CollectiveKind::send_recv:
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
      return {"-",
              fmt::format("NCCL makes {} of grouped sends and receives, with no algorithm to choose", to_string(kind))};
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
      return {"Ring", fmt::format("it is the only one that NCCL has for {}", to_string(kind))};
    case CollectiveKind::all_reduce:
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter: break;
  }
  if (!schedule.relays.empty()) {
    const bool one_machine = ranks_by_host(topology).size() == 1;
    return {one_machine ? "NVLS" : "CollNet", "switches add or copy on the way"};
  }
  const TravelShape shape = measure_travel(schedule);
  const std::string found = shape_text(shape, topology.rank_count() - 1);
  if (shape.hops == 1 && runs_through_computing_switches(schedule, topology)) {
    const bool one_machine = ranks_by_host(topology).size() == 1;
    return {one_machine ? "NVLS" : "CollNet", "one hop through switches that add and copy"};
  }
  if (shape.in_chains >= 0.5) return {"Ring", found};
  if (kind == CollectiveKind::all_reduce) return {"Tree", found};
  if (has_one_rank_per_host(topology)) return {"PAT", found};
  return {"Ring", found + fmt::format("; nothing else that NCCL has for {} fits this machine", to_string(kind))};
}

}  // namespace espalier::planners
