#include "planners/blocks/block_schedule.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "base/check.h"

namespace espalier::planners {

BlockSchedule::BlockSchedule(const Collective& collective, const Topology& topology, std::string algorithm,
                             std::int64_t units_per_share)
    : schedule_(collective, topology.name(), std::move(algorithm)), units_per_share_(units_per_share) {
  ESPALIER_CHECK(has_blocks(collective.kind), "only blocks go along paths of their own");
}

std::int64_t BlockSchedule::fine_units(const Collective& collective) {
  constexpr std::int64_t fine = std::int64_t{1} << 40;
  return std::max<std::int64_t>(1, fine / collective.share_sum());
}

void BlockSchedule::add_piece(Rank from, Rank to, std::span<const RouteId> hops, std::int64_t units) {
  const std::size_t part = from.index() * schedule_.collective.rank_count + to.index();
  pieces_.push_back({static_cast<std::uint32_t>(part), static_cast<std::uint32_t>(hops_.size()),
                     static_cast<std::uint32_t>(hops.size()), units});
  hops_.insert(hops_.end(), hops.begin(), hops.end());
}

/// Pieces in the order of their parts, a slice each, and blocks that stay.
void BlockSchedule::write_slices(std::vector<SliceId>& slice_of) {
  std::ranges::stable_sort(pieces_, {}, &Piece::part);
  const Collective& collective = schedule_.collective;
  std::size_t next = 0;
  for (std::int64_t part = 0; part < collective.part_count(); ++part) {
    const PartRanks ranks = ranks_of_part(collective, part);
    std::int64_t left = collective.share_of_part(part) * units_per_share_;
    const auto add = [&](std::int64_t length) {
      schedule_.slices.push_back({schedule_.units, length, ranks.rank, ranks.to});
      schedule_.units += length;
      left -= length;
    };
    for (; next < pieces_.size() && pieces_[next].part == part; ++next) {
      slice_of.emplace_back(schedule_.slices.size());
      add(pieces_[next].units);
    }
    if (left > 0 && ranks.rank == ranks.to) add(left);
    ESPALIER_CHECK(left == 0, "the pieces of a block are the block");
  }
}

std::vector<BlockSchedule::Draft> BlockSchedule::draft_transfers(std::span<const SliceId> slice_of) const {
  const std::uint32_t ranks = schedule_.collective.rank_count;
  std::vector<Draft> drafts;
  std::vector<std::size_t> open;  // by step: the draft of the piece before
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const Piece& piece = pieces_[i];
    // A part's slices follow those of the part before but for a block that stays.
    const bool follows = i > 0 && slice_of[i].index() == slice_of[i - 1].index() + 1 &&
                         piece.part / ranks == pieces_[i - 1].part / ranks;
    if (!follows) open.clear();
    for (std::uint32_t step = 0; step < piece.hop_count; ++step) {
      const RouteId route = hops_[piece.first_hop + step];
      if (step < open.size() && drafts[open[step]].transfer.route == route) {
        ++drafts[open[step]].transfer.slice_count;
        continue;
      }
      if (step < open.size()) open.resize(step);
      const Route ends = schedule_.route(route);
      Draft draft;
      draft.transfer.first_slice = slice_of[i];
      draft.transfer.route = route;
      draft.step = step;
      draft.distance = (ends.dst.value() + ranks - ends.src.value()) % ranks;
      if (step == open.size()) open.push_back(drafts.size());
      drafts.push_back(draft);
    }
    open.resize(std::min<std::size_t>(open.size(), piece.hop_count));
  }
  return drafts;
}

Result<Schedule> BlockSchedule::finish() && {
  std::vector<SliceId> slice_of;
  slice_of.reserve(pieces_.size());
  write_slices(slice_of);
  std::vector<Draft> drafts = draft_transfers(slice_of);
  if (schedule_.slices.size() > max_slices || drafts.size() > max_transfers) {
    return fail(ErrorCode::too_large, "the paths need more slices or transfers than a schedule has",
                "plan for fewer ranks");
  }
  std::ranges::stable_sort(drafts, [](const Draft& a, const Draft& b) {
    return std::pair(a.step, a.distance) < std::pair(b.step, b.distance);
  });
  const std::size_t ranks = schedule_.collective.rank_count;
  std::vector<std::uint32_t> channels(ranks * ranks, 0);
  schedule_.transfers.reserve(drafts.size());
  for (Draft& draft : drafts) {
    const Route ends = schedule_.route(draft.transfer.route);
    draft.transfer.channel_value = channels[ends.src.index() * ranks + ends.dst.index()]++ & 0x3FFFFFFFU;
    schedule_.transfers.push_back(draft.transfer);
  }
  return std::move(schedule_);
}

std::vector<std::int64_t> divide_units(std::int64_t units, std::span<const double> weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<std::int64_t> parts(weights.size());
  double before = 0;
  std::int64_t given = 0;
  std::size_t last = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] <= 0) continue;
    before += weights[i];
    const auto end =
        std::min(units, static_cast<std::int64_t>(std::llround(before / sum * static_cast<double>(units))));
    parts[i] = std::max<std::int64_t>(0, end - given);
    given += parts[i];
    last = i;
  }
  parts[last] += units - given;
  return parts;
}

}  // namespace espalier::planners
