#include "planners/symmetric/rank_part.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "planners/symmetric/image_writer.h"
#include "planners/symmetric/shift_chain.h"
#include "schedule/dependencies.h"

namespace espalier::planners {
namespace {

/// Images of the part's transfers, each as (transfer, shift): in this order they are those of the whole.
using Images = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

/// Of the transfers that begin or end at a rank: the images do at the ranks that the shifts take the ends to.
void add_images_at(const SymmetricPlan& plan, const Shifts& shifts, std::uint32_t rank, Images& images) {
  const Schedule& part = plan.part;
  for (std::uint32_t i = 0; i < part.transfers.size(); ++i) {
    for (const Rank end : {part.src(part.transfers[i]), part.dst(part.transfers[i])}) {
      images.emplace_back(i, shifts.sum(rank, shifts.minus(end.value())));
    }
  }
}

void sort_once(Images& images) {
  std::ranges::sort(images);
  images.erase(std::unique(images.begin(), images.end()), images.end());
}

/// By transfer of the part, what has to come before it: what it waits for, what its lane sends before, and what else is
/// added to the same sum before.
std::vector<std::vector<std::uint32_t>> find_earlier(const Schedule& part) {
  const Dependencies dependencies(part);
  std::vector<std::vector<std::uint32_t>> earlier(part.transfers.size());
  std::map<std::tuple<Rank, Rank, std::uint32_t>, std::uint32_t> last_on_lane;
  std::map<std::pair<Rank, std::uint32_t>, std::uint32_t> last_reduction;  // by rank and slice
  for (std::uint32_t i = 0; i < part.transfers.size(); ++i) {
    const Transfer& transfer = part.transfers[i];
    for (const Dependency& wait : dependencies.of(TransferId(i))) earlier[i].push_back(wait.transfer().value());
    const auto note = [&](auto& last, const auto& key) {
      const auto [place, is_new] = last.try_emplace(key, i);
      if (!is_new) earlier[i].push_back(std::exchange(place->second, i));
    };
    note(last_on_lane, std::tuple(part.src(transfer), part.dst(transfer), transfer.channel_value));
    for (std::uint32_t k = 0; k < transfer.slice_count && transfer.reduces != 0; ++k) {
      note(last_reduction, std::pair(part.dst(transfer), transfer.first_slice.value() + k));
    }
  }
  return earlier;
}

Result<Schedule> write(const SymmetricPlan& plan, const Topology& topology, const Images& images) {
  auto writer = ImageWriter::make(plan, topology);
  if (!writer) return tl::unexpected(writer.error());
  if (images.size() > max_transfers) return fail(ErrorCode::too_large, "the rank's part has too many transfers", "");
  for (const auto& [transfer, shift] : images) writer->add(transfer, shift);
  return writer->take();
}

}  // namespace

Result<Schedule> part_of_rank(const SymmetricPlan& plan, const Topology& topology, Rank rank) {
  const Shifts shifts(*plan.orbits);
  Images images;
  add_images_at(plan, shifts, rank.value(), images);
  sort_once(images);
  return write(plan, topology, images);
}

Schedule part_of_rank(const Schedule& schedule, Rank rank) {
  Schedule part(schedule.header());
  for (const Transfer& transfer : schedule.transfers) {
    const Route route = schedule.route(transfer.route);
    if (route.src != rank && route.dst != rank) continue;
    part.add_transfer(part.add_route(route.src, route.dst, route.links), transfer.first_slice, transfer.slice_count,
                      transfer.action(), transfer.channel());
  }
  return part;
}

Result<Schedule> needs_of_rank(const SymmetricPlan& plan, const Topology& topology, Rank rank) {
  const Shifts shifts(*plan.orbits);
  std::set<std::uint32_t> at = {rank.value()};
  for (const Transfer& transfer : plan.part.transfers) {
    const std::uint32_t src = plan.part.src(transfer).value(), dst = plan.part.dst(transfer).value();
    const std::uint32_t step = shifts.sum(dst, shifts.minus(src));
    at.insert(shifts.sum(rank.value(), step));
    at.insert(shifts.sum(rank.value(), shifts.minus(step)));
  }
  Images images;
  for (const std::uint32_t end : at) add_images_at(plan, shifts, end, images);
  sort_once(images);
  // All that comes before, shard by shard: images under different shifts do not wait for each other.
  const std::vector<std::vector<std::uint32_t>> earlier = find_earlier(plan.part);
  std::vector<std::vector<std::uint32_t>> by_shift(shifts.count());
  for (const auto& [transfer, shift] : images) by_shift[shift].push_back(transfer);
  images.clear();
  std::vector<std::uint32_t> seen_for(plan.part.transfers.size(), UINT32_MAX);
  for (std::uint32_t shift = 0; shift < by_shift.size(); ++shift) {
    std::vector<std::uint32_t>& open = by_shift[shift];
    while (!open.empty()) {
      const std::uint32_t transfer = open.back();
      open.pop_back();
      if (std::exchange(seen_for[transfer], shift) == shift) continue;
      images.emplace_back(transfer, shift);
      open.insert(open.end(), earlier[transfer].begin(), earlier[transfer].end());
    }
  }
  std::ranges::sort(images);
  return write(plan, topology, images);
}

}  // namespace espalier::planners
