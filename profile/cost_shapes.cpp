#include "profile/cost_shapes.h"

#include <algorithm>
#include <bit>
#include <string_view>

namespace espalier::profile {
namespace {

constexpr std::string_view nccl_prefix = "nccl/";

/// Whether every block goes from who brings it to who gets it in one message.
bool sends_straight(const Schedule& schedule) {
  const Collective& collective = schedule.collective;
  return std::ranges::all_of(schedule.transfers, [&](const Transfer& transfer) {
    const PartRanks part = schedule.slices[transfer.first_slice.index()].ranks();
    return schedule.src(transfer) == bringer_of(collective, part) &&
           schedule.dst(transfer) == receiver_of(collective, part);
  });
}

}  // namespace

std::vector<Shape> shapes_of(const planners::Candidate& candidate, std::size_t machines) {
  if (candidate.planner.starts_with(nccl_prefix)) {
    const std::string_view name = std::string_view(candidate.planner).substr(nccl_prefix.size());
    for (const Shape shape : all_shapes) {
      if (to_string(shape) == name) return {shape};
    }
  }
  if (!candidate.schedule.relays.empty()) return {machines > 1 ? Shape::nvls_tree : Shape::nvls};
  if (candidate.planner == "ring") return {Shape::ring};
  const CollectiveKind kind = candidate.collective().kind;
  const bool is_of_blocks =
      slices_have_destination(kind) || kind == CollectiveKind::gather || kind == CollectiveKind::scatter;
  if (!is_of_blocks) return {Shape::tree};
  return {Shape::tree, sends_straight(candidate.schedule) ? Shape::p2p : Shape::pxn};
}

std::uint64_t shards_of(Shape shape, const Collective& collective, std::size_t machines) {
  const bool is_rooted = collective.kind == CollectiveKind::broadcast || collective.kind == CollectiveKind::reduce;
  switch (shape) {
    case Shape::tree:
    case Shape::collnet_chain: return 1;
    case Shape::nvls_tree:
    case Shape::collnet_direct: return std::max<std::uint64_t>(1, collective.rank_count / machines);
    default: return is_rooted ? 1 : std::max<std::uint64_t>(1, collective.rank_count);
  }
}

double depth_of(Shape shape, sim::Protocol protocol, std::size_t ranks, std::size_t machines) {
  if (shape != Shape::tree || protocol == sim::Protocol::ll) return 1;
  const double local = std::max(1.0, static_cast<double>(ranks) / static_cast<double>(machines));
  const auto over = static_cast<double>(std::bit_width(machines) - 1);
  constexpr double of_rank = 0.1;
  return protocol == sim::Protocol::simple ? std::max(1.0, local - 1 + over) : (1 + over + of_rank * local) / local;
}

}  // namespace espalier::profile
