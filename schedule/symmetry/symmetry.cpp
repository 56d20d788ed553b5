#include "schedule/symmetry/symmetry.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

#include "base/disjoint_sets.h"
#include "schedule/symmetry/schedule_map.h"

namespace espalier {
namespace {

/// The search ends after so many maps that were none, and when it has looked at so many times all transfers.
constexpr std::size_t max_failures = 256;
constexpr std::uint64_t max_work = 16;

/// Whether every transfer moves one slice, and every lane, a channel from one rank to another, carries one.
bool has_lone_slices(const Schedule& schedule) {
  const auto moves_one = [](const Transfer& transfer) { return transfer.slice_count == 1; };
  if (!std::ranges::all_of(schedule.transfers, moves_one)) return false;
  using Lane = std::tuple<std::uint32_t, Rank, Rank>;
  std::vector<std::pair<Lane, SliceId>> shared;  // those on channels that carry more slices
  std::vector<SliceId> slice_of(schedule.channel_count());
  std::vector<bool> carries_more(schedule.channel_count(), false);
  for (const Transfer& transfer : schedule.transfers) {
    SliceId& slice = slice_of[transfer.channel().index()];
    if (slice.is_none()) slice = transfer.first_slice;
    if (slice != transfer.first_slice) carries_more[transfer.channel().index()] = true;
  }
  for (const Transfer& transfer : schedule.transfers) {
    if (!carries_more[transfer.channel().index()]) continue;
    shared.push_back({{transfer.channel_value, schedule.src(transfer), schedule.dst(transfer)}, transfer.first_slice});
  }
  std::ranges::sort(shared);
  return std::ranges::adjacent_find(shared, [](const auto& one, const auto& next) {
           return one.first == next.first && one.second != next.second;
         }) == shared.end();
}

/// What maps join.
class Orbits {
 public:
  Orbits(const Schedule& schedule, const Topology& topology)
      : ranks_(schedule.collective.rank_count), slices_(schedule.slices.size()), links_(topology.link_count()) {}

  void join(const ScheduleMap& map) {
    join(ranks_, map.ranks);
    join(slices_, map.slices);
    join(links_, map.links);
  }

  /// The size of all orbits; 1 where they are not of one size.
  [[nodiscard]] std::uint32_t times(const ScheduleMap& map) {
    const auto ranks = size_of_all(ranks_, map.ranks);
    const auto slices = size_of_all(slices_, map.slices);
    const auto links = size_of_all(links_, map.links);
    return ranks == slices && slices == links ? ranks : 1;
  }

  /// Whether every rank is joined with where it goes already.
  [[nodiscard]] bool joins(const RankMap& ranks) {
    for (std::uint32_t i = 0; i < ranks.size(); ++i) {
      if (ranks_.find(i) != ranks_.find(ranks[i].value())) return false;
    }
    return true;
  }

  [[nodiscard]] Rank first(Rank rank) { return Rank(ranks_.find(rank.value())); }
  [[nodiscard]] SliceId first(SliceId slice) { return SliceId(slices_.find(slice.value())); }
  [[nodiscard]] LinkId first(LinkId link) { return LinkId(links_.find(link.value())); }

 private:
  template <class Id>
  static void join(DisjointSets& sets, const std::vector<Id>& images) {
    for (std::uint32_t i = 0; i < images.size(); ++i) {
      if (!images[i].is_none()) sets.join(i, images[i].value());
    }
  }

  /// Of those that a map takes somewhere: every map takes the same.
  template <class Id>
  static std::uint32_t size_of_all(DisjointSets& sets, const std::vector<Id>& images) {
    std::vector<std::uint32_t> sizes(images.size(), 0);
    std::uint32_t size = 0;
    for (std::uint32_t i = 0; i < images.size(); ++i) {
      if (!images[i].is_none()) size = ++sizes[sets.find(i)];
    }
    const bool are_even = std::ranges::all_of(sizes, [&](std::uint32_t other) { return other == 0 || other == size; });
    return are_even ? size : 0;
  }

  DisjointSets ranks_, slices_, links_;
};

class SymmetryFinder {
 public:
  SymmetryFinder(const Schedule& schedule, const Topology& topology, MoveOrder order)
      : schedule_(schedule), topology_(topology), order_(order), maps_(schedule, topology, order) {}

  /// By these maps of ranks, and maps of the first slice to others.
  std::optional<ScheduleSymmetry> find_by_maps(std::span<const RankMap> likely) {
    std::vector<ScheduleMap> maps;
    Orbits orbits(schedule_, topology_);
    const auto add = [&](std::optional<ScheduleMap> map) {
      if (!map) return false;
      Orbits joined = orbits_of(maps);
      joined.join(*map);
      if (joined.times(*map) <= 1) return false;
      maps.push_back(*std::move(map));
      orbits = std::move(joined);
      return true;
    };
    for (const RankMap& ranks : likely) {
      if (!orbits.joins(ranks)) add(maps_.take_ranks_to(ranks));
    }
    std::size_t failures = 0;
    for (std::size_t i = 1; i < schedule_.slices.size() && failures < max_failures; ++i) {
      const SliceId slice(i);
      if (maps_.work() > max_work * schedule_.transfers.size()) break;
      if (schedule_.slices[i].length != schedule_.slices[0].length || orbits.first(slice) == SliceId(0)) continue;
      if (!add(maps_.take_first_to(slice))) ++failures;
    }
    return symmetry_of(maps);
  }

  /// By the map that takes ranks so many parts on.
  std::optional<ScheduleSymmetry> find_by_ranks(std::uint32_t times) {
    auto map = maps_.move_on(schedule_.collective.rank_count / times, schedule_.slices.size() / times);
    return map ? symmetry_of({*std::move(map)}) : std::nullopt;
  }

 private:
  [[nodiscard]] Orbits orbits_of(const std::vector<ScheduleMap>& maps) const {
    Orbits orbits(schedule_, topology_);
    for (const ScheduleMap& map : maps) orbits.join(map);
    return orbits;
  }

  std::optional<ScheduleSymmetry> symmetry_of(const std::vector<ScheduleMap>& maps) {
    if (maps.empty()) return std::nullopt;
    Orbits orbits = orbits_of(maps);
    ScheduleSymmetry symmetry{.times = orbits.times(maps.front())};
    if (symmetry.times <= 1) return std::nullopt;
    for (std::size_t i = 0; i < schedule_.collective.rank_count; ++i) {
      symmetry.first_rank.push_back(orbits.first(Rank(i)));
    }
    for (std::size_t i = 0; i < schedule_.slices.size(); ++i) {
      symmetry.first_slice.push_back(orbits.first(SliceId(i)));
    }
    for (std::size_t i = 0; i < topology_.link_count(); ++i) symmetry.first_link.push_back(orbits.first(LinkId(i)));
    find_first_transfers(maps, symmetry);
    if (order_ == MoveOrder::same && !keeps_order(symmetry)) return std::nullopt;
    return symmetry;
  }

  /// From each slice that stands for others to these, map by map.
  void find_first_transfers(const std::vector<ScheduleMap>& maps, ScheduleSymmetry& symmetry) {
    symmetry.first_transfer.assign(schedule_.transfers.size(), TransferId());
    std::vector<bool> is_reached(schedule_.slices.size(), false);
    for (std::size_t first = 0; first < schedule_.slices.size(); ++first) {
      if (is_reached[first]) continue;
      for (const TransferId id : maps_.moves_of(first)) symmetry.first_transfer[id.index()] = id;
      is_reached[first] = true;
      std::vector<std::size_t> open = {first};
      while (!open.empty()) {
        const std::size_t slice = open.back();
        open.pop_back();
        for (const ScheduleMap& map : maps) {
          const std::size_t image = map.slices[slice].index();
          if (is_reached[image]) continue;
          is_reached[image] = true;
          open.push_back(image);
          const std::span<const TransferId> ones = maps_.moves_of(slice);
          const std::span<const TransferId> others = maps_.match(slice, image, map.ranks);
          for (std::size_t i = 0; i < ones.size(); ++i) {
            symmetry.first_transfer[others[i].index()] = symmetry.first_transfer[ones[i].index()];
          }
        }
      }
    }
  }

  [[nodiscard]] bool keeps_order(const ScheduleSymmetry& symmetry) const {
    std::vector<TransferId> latest(topology_.link_count());
    for (std::size_t i = 0; i < schedule_.transfers.size(); ++i) {
      for (const LinkId link : schedule_.route(schedule_.transfers[i].route).links) {
        const TransferId before = std::exchange(latest[link.index()], symmetry.first_transfer[i]);
        if (!before.is_none() && before >= symmetry.first_transfer[i]) return false;
      }
    }
    return true;
  }

  const Schedule& schedule_;
  const Topology& topology_;
  MoveOrder order_;
  MapFinder maps_;
};

void order_transfers(Schedule& schedule, const ScheduleSymmetry& symmetry, const std::vector<std::uint32_t>& part) {
  std::vector<std::uint32_t> place(schedule.transfers.size(), 0);  // of the part's transfers: among these
  std::uint32_t places = 0;
  for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
    if (symmetry.first_transfer[i] == TransferId(i)) place[i] = places++;
  }
  std::vector<Transfer> ordered(schedule.transfers.size());
  for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
    const Transfer& transfer = schedule.transfers[i];
    const std::size_t at = std::size_t{place[symmetry.first_transfer[i].index()]} * symmetry.times;
    ordered[at + part[transfer.first_slice.index()]] = transfer;
  }
  schedule.transfers = std::move(ordered);
}

/// Part by part, so that images lie at like places and have as many elements. Where a slice lies means nothing.
void order_slices(Schedule& schedule, const ScheduleSymmetry& symmetry, const std::vector<std::uint32_t>& part) {
  std::vector<std::uint32_t> order(schedule.slices.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {},
                           [&](std::uint32_t slice) { return std::pair(part[slice], symmetry.first_slice[slice]); });
  std::vector<SliceId> place(order.size());
  std::vector<Slice> slices;
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    place[order[i]] = SliceId(i);
    slices.push_back(schedule.slices[order[i]]);
    slices.back().offset = offset;
    offset += slices.back().length;
  }
  schedule.slices = std::move(slices);
  for (Transfer& transfer : schedule.transfers) transfer.first_slice = place[transfer.first_slice.index()];
}

}  // namespace

bool are_alike(const Link& one, const Link& other) {
  return one.bandwidth() == other.bandwidth() && one.latency == other.latency && one.overhead == other.overhead;
}

std::optional<ScheduleSymmetry> find_symmetry(const Schedule& schedule, const Topology& topology, MoveOrder order,
                                              std::span<const RankMap> likely) {
  const std::uint32_t ranks = schedule.collective.rank_count;
  if (schedule.transfers.empty() || !schedule.relays.empty() || !has_lone_slices(schedule)) return std::nullopt;
  SymmetryFinder finder(schedule, topology, order);
  std::optional<ScheduleSymmetry> best = finder.find_by_maps(likely);
  for (std::uint32_t times = ranks; times > (best ? best->times : 1); --times) {
    if (ranks % times != 0 || schedule.slices.size() % times != 0) continue;
    if (auto found = finder.find_by_ranks(times)) return found;
  }
  return best;
}

void put_images_together(Schedule& schedule, const Topology& topology, std::span<const RankMap> likely) {
  const auto symmetry = find_symmetry(schedule, topology, MoveOrder::any, likely);
  if (!symmetry) return;
  const auto in_order = find_symmetry(schedule, topology, MoveOrder::same, likely);
  const bool is_in_order = in_order && in_order->times >= symmetry->times;
  const ScheduleSymmetry& found = is_in_order ? *in_order : *symmetry;
  std::vector<std::uint32_t> part(schedule.slices.size(), 0);  // by slice: among its images
  std::vector<std::uint32_t> parts(schedule.slices.size(), 0);
  for (std::size_t i = 0; i < part.size(); ++i) part[i] = parts[found.first_slice[i].index()]++;
  if (!is_in_order) order_transfers(schedule, found, part);
  if (schedule.collective.kind == CollectiveKind::all_reduce) order_slices(schedule, found, part);
}

}  // namespace espalier
