#include "schedule/trees/strands.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "base/check.h"
#include "schedule/relays.h"
#include "schedule/trees/coarse_units.h"

namespace espalier {

namespace {

constexpr std::int64_t rounded_whole = 720'720;  // which up to 16 equal strands divide
constexpr std::int64_t thinnest = 1024;          // times what a strand that counts must be the sum of all, at most
constexpr std::int64_t max_wanted = std::int64_t{1} << 22;  // D past which a planned slice's units stay as fine
constexpr std::size_t max_pieces = 64;
constexpr std::size_t max_dealt = std::size_t{1} << 24;       // transfers, and slices
constexpr std::size_t max_slice_ends = std::size_t{1} << 26;  // what a table of slices by end holds

/// The smallest D that parts all bundles exactly, or nothing when it would pass `largest`.
std::optional<std::int64_t> exact_whole(const Topology& topology, const Bundles& bundles, std::int64_t largest) {
  std::int64_t whole = 1;
  for (std::size_t b = 0; b < bundles.count(); ++b) {
    std::int64_t unit = 0;
    std::int64_t sum = 0;
    for (const LinkId strand : bundles.strands(b)) {
      const std::int64_t rate = topology.link(strand).bandwidth().bytes_per_second;
      unit = std::gcd(unit, rate);
      sum += rate;
    }
    const std::int64_t parts = sum / unit;
    if (parts > largest) return std::nullopt;
    whole = std::lcm(whole, parts);
    if (whole > largest) return std::nullopt;
  }
  return whole;
}

/// Places at which slices are cut, interned so that schedules of millions of slices hold a number each.
class CutSets {
 public:
  using Id = std::uint32_t;
  static constexpr Id none = 0;

  CutSets(std::int64_t whole, std::size_t pieces) : pieces_(pieces) {
    intern({});
    for (std::size_t i = 1; i < pieces; ++i) {
      const auto cut = static_cast<std::int64_t>(static_cast<__int128>(whole) * i / pieces);
      if (cut > 0 && (even_.empty() || even_.back() < cut)) even_.push_back(cut);
    }
  }

  Id intern(std::vector<std::int64_t> cuts) {
    const bool is_even = cuts.size() >= pieces_;
    if (is_even) cuts = even_;
    const auto [place, is_new] = ids_.try_emplace({is_even, cuts}, static_cast<Id>(sets_.size()));
    if (is_new) sets_.push_back({std::move(cuts), is_even});
    return place->second;
  }

  Id join(Id a, Id b) {
    if (a == b || b == none) return a;
    if (a == none) return b;
    const auto [place, is_new] = joined_.try_emplace({a, b}, none);
    if (!is_new) return place->second;
    std::vector<std::int64_t> cuts;
    std::ranges::set_union(sets_[a].cuts, sets_[b].cuts, std::back_inserter(cuts));
    // Places of even pieces mean no strand's end: with them all are even.
    if (is_even(a) || is_even(b)) cuts.resize(pieces_);
    return place->second = intern(std::move(cuts));
  }

  [[nodiscard]] const std::vector<std::int64_t>& cuts(Id set) const { return sets_[set].cuts; }
  [[nodiscard]] bool is_even(Id set) const { return sets_[set].is_even; }
  [[nodiscard]] std::size_t pieces(Id set) const { return sets_[set].cuts.size() + 1; }

 private:
  struct Set {
    std::vector<std::int64_t> cuts;
    bool is_even = false;  ///< Equal pieces instead of the strands' ends, which are too many.
  };
  std::size_t pieces_;
  std::vector<std::int64_t> even_;
  std::vector<Set> sets_;
  std::map<std::pair<bool, std::vector<std::int64_t>>, Id> ids_;
  std::map<std::pair<Id, Id>, Id> joined_;
};

/// Neighbouring slices that travel as one.
struct CutRun {
  std::size_t first = 0;
  std::size_t count = 1;
};

/// Slices of one part that runs join: their pieces lie piece by piece, so that a piece of a run is a run again.
struct SliceGroup {
  std::size_t first = 0;  ///< Slice.
  std::int64_t offset = 0;
  std::int64_t length = 0;
  CutSets::Id cuts = CutSets::none;
};

class StrandDealer {
 public:
  StrandDealer(const Schedule& planned, const Topology& topology, const Bundles& bundles)
      : planned_(planned), strands_(topology, bundles, std::min(StrandCuts::largest_whole, max_units / planned.units)) {
    const CollectiveKind kind = planned.collective.kind;
    const bool has_overhead =
        std::ranges::any_of(topology.links(), [](const Link& link) { return link.overhead.count > 0; });
    const bool has_paths =
        kind == CollectiveKind::gather || kind == CollectiveKind::scatter || slices_have_destination(kind);
    by_parts_ = (has_paths && !has_overhead) || std::ranges::none_of(planned.transfers, [&](const Transfer& transfer) {
                  return !is_one_part(transfer.first_slice.index(), transfer.slice_count);
                });
    group_slices();
    std::size_t pieces = max_pieces;
    while (!mark(pieces) && pieces > 1) pieces /= 2;
  }

  Schedule run() {
    cut_slices();
    for (const Transfer& transfer : planned_.transfers) add(transfer);
    coarsen();
    return std::move(dealt_);
  }

 private:
  [[nodiscard]] bool is_one_part(std::size_t first, std::size_t count) const {
    return planned_.slices[first].ranks() == planned_.slices[first + count - 1].ranks();
  }

  /// The runs that a transfer is dealt out in: those of each part, or all of it as one.
  [[nodiscard]] std::vector<CutRun> runs_of(const Transfer& transfer) const {
    const std::size_t begin = transfer.first_slice.index();
    const std::size_t end = begin + transfer.slice_count;
    if (!by_parts_ || is_one_part(begin, transfer.slice_count)) return {{begin, transfer.slice_count}};
    std::vector<CutRun> runs;
    for (std::size_t slice = begin; slice < end; ++slice) {
      const bool goes_on = slice > begin && is_one_part(slice - 1, 2);
      if (goes_on) {
        ++runs.back().count;
      } else {
        runs.push_back({slice, 1});
      }
    }
    return runs;
  }

  /// Whether a run is cut as its group is, and not by itself.
  [[nodiscard]] bool is_grouped(const CutRun& run) const { return by_parts_ || run.count == 1; }

  void group_slices() {
    std::vector<std::int64_t> joins(planned_.slices.size() + 1, 0);  // by slice: runs that begin less those that end
    for (const Transfer& transfer : planned_.transfers) {
      for (const CutRun& run : runs_of(transfer)) {
        if (!is_grouped(run)) continue;
        ++joins[run.first];
        --joins[run.first + run.count - 1];
      }
    }
    std::int64_t open = 0;
    for (std::size_t i = 0; i < planned_.slices.size(); ++i) {
      const Slice& slice = planned_.slices[i];
      if (open == 0) groups_.push_back({i, slice.offset, 0, CutSets::none});
      groups_.back().length += slice.length;
      group_of_.push_back(groups_.size() - 1);
      open += joins[i];
    }
  }

  [[nodiscard]] CutSets::Id set_of(const CutRun& run, RouteId route) const {
    return is_grouped(run) ? groups_[group_of_[run.first]].cuts : route_sets_[route.index()];
  }

  /// Marks what is cut where, in at most so many pieces each; false when there would be too many.
  bool mark(std::size_t pieces) {
    sets_ = CutSets(strands_.whole(), pieces);
    route_sets_.clear();
    for (std::size_t i = 0; i < planned_.route_count(); ++i) {
      route_sets_.push_back(sets_.intern(strands_.cuts(planned_.route(RouteId(i)).links)));
    }
    for (SliceGroup& group : groups_) group.cuts = CutSets::none;
    for (const Transfer& transfer : planned_.transfers) {
      for (const CutRun& run : runs_of(transfer)) {
        if (!is_grouped(run)) continue;
        CutSets::Id& set = groups_[group_of_[run.first]].cuts;
        set = sets_.join(set, route_sets_[transfer.route.index()]);
      }
    }
    std::vector<std::size_t> by_channel(planned_.channel_count(), 1);
    std::size_t transfers = 0;
    std::size_t slices = 0;
    for (const Transfer& transfer : planned_.transfers) {
      std::size_t pieces_of_all = 0;
      for (const CutRun& run : runs_of(transfer)) {
        const std::size_t count = sets_.pieces(set_of(run, transfer.route));
        pieces_of_all += count;
        if (!is_grouped(run)) slices += count - 1;
      }
      std::size_t& most = by_channel[transfer.channel().index()];
      most = std::max(most, pieces_of_all);
      transfers += pieces_of_all;
    }
    for (const std::size_t group : group_of_) slices += sets_.pieces(groups_[group].cuts);
    first_channel_.assign(by_channel.size() + 1, 0);
    std::partial_sum(by_channel.begin(), by_channel.end(), first_channel_.begin() + 1);
    return transfers <= max_dealt && slices <= max_dealt && slices * end_count(planned_) <= max_slice_ends &&
           first_channel_.back() <= max_channels;
  }

  /// Where a slice's part of one piece of its group begins.
  [[nodiscard]] std::int64_t place_of(std::size_t slice, std::int64_t from, std::int64_t to) const {
    const SliceGroup& group = groups_[group_of_[slice]];
    const std::int64_t before = planned_.slices[slice].offset - group.offset;
    return group.offset * strands_.whole() + group.length * from + before * (to - from);
  }

  /// The slices between all cuts, with the ranks of the slice that they are of.
  void cut_slices() {
    const std::int64_t whole = strands_.whole();
    dealt_ = Schedule(planned_.header());
    dealt_.slices.clear();
    dealt_.pacing.reset();
    dealt_.units *= whole;
    std::vector<std::pair<std::int64_t, std::size_t>> begins;
    for (std::size_t i = 0; i < planned_.slices.size(); ++i) {
      for_each_piece(groups_[group_of_[i]].cuts, [&](std::size_t, std::int64_t from, std::int64_t to) {
        begins.emplace_back(place_of(i, from, to), i);
      });
    }
    std::ranges::sort(begins);
    for (const auto& begin : begins) begins_.push_back(begin.first);
    for (const Transfer& transfer : planned_.transfers) {
      for (const CutRun& run : runs_of(transfer)) {
        if (is_grouped(run)) continue;
        const std::int64_t offset = planned_.slices[run.first].offset;
        for (const std::int64_t cut : sets_.cuts(route_sets_[transfer.route.index()])) {
          begins_.push_back(offset * whole + length_of(run) * cut);
        }
      }
    }
    begins_.push_back(dealt_.units);
    std::ranges::sort(begins_);
    begins_.erase(std::unique(begins_.begin(), begins_.end()), begins_.end());
    auto of = begins.begin();
    for (std::size_t i = 0; i + 1 < begins_.size(); ++i) {
      while (std::next(of) != begins.end() && std::next(of)->first <= begins_[i]) ++of;
      const Slice& slice = planned_.slices[of->second];
      dealt_.slices.push_back({begins_[i], begins_[i + 1] - begins_[i], slice.rank, slice.to});
    }
  }

  /// `use(number, from, to)` with the ends of each piece in [0, whole).
  template <class Use>
  void for_each_piece(CutSets::Id set, const Use& use) const {
    const std::vector<std::int64_t>& cuts = sets_.cuts(set);
    for (std::size_t piece = 0; piece <= cuts.size(); ++piece) {
      use(piece, piece == 0 ? 0 : cuts[piece - 1], piece == cuts.size() ? strands_.whole() : cuts[piece]);
    }
  }

  [[nodiscard]] std::int64_t length_of(const CutRun& run) const {
    const Slice& last = planned_.slices[run.first + run.count - 1];
    return last.offset + last.length - planned_.slices[run.first].offset;
  }

  [[nodiscard]] std::size_t slice_at(std::int64_t offset) const {
    return static_cast<std::size_t>(std::ranges::lower_bound(begins_, offset) - begins_.begin());
  }

  void add(const Transfer& transfer) {
    const Route route = planned_.route(transfer.route);
    const std::int64_t whole = strands_.whole();
    // What was one transfer moved at once: none of its pieces waits for another on its channel.
    std::size_t channel = first_channel_[transfer.channel().index()];
    for (const CutRun& run : runs_of(transfer)) {
      const CutSets::Id set = set_of(run, transfer.route);
      // Even pieces take strands in turn: those of one channel begin elsewhere than those of the next.
      constexpr std::uint64_t golden = 40503;  // of 2^16
      const std::uint64_t turn = sets_.is_even(set) ? transfer.channel_value * golden % (1U << 16U) : 0;
      const auto shift = static_cast<std::int64_t>(static_cast<__int128>(whole) * turn >> 16U);
      for_each_piece(set, [&](std::size_t, std::int64_t from, std::int64_t to) {
        const std::int64_t begin = is_grouped(run) ? place_of(run.first, from, to)
                                                   : planned_.slices[run.first].offset * whole + length_of(run) * from;
        const std::size_t first = slice_at(begin);
        const std::size_t end = slice_at(begin + length_of(run) * (to - from));
        const std::vector<LinkId> links = strands_.at(route.links, ((from + to) / 2 + shift) % whole);
        dealt_.add_transfer(dealt_.add_route(route.src, route.dst, links), SliceId(first),
                            static_cast<std::uint32_t>(end - first), transfer.action(), ChannelId(channel++));
      });
    }
  }

  /// Units as large as they can be.
  void coarsen() {
    std::int64_t common = dealt_.units;
    for (const Slice& slice : dealt_.slices) common = std::gcd(common, slice.length);
    if (common <= 1) return;
    dealt_.units /= common;
    for (Slice& slice : dealt_.slices) {
      slice.offset /= common;
      slice.length /= common;
    }
  }

  const Schedule& planned_;
  StrandCuts strands_;
  CutSets sets_{1, 1};
  bool by_parts_ = false;  ///< Every run is of one part, or dealt out part by part.
  std::vector<SliceGroup> groups_;
  std::vector<std::size_t> group_of_;  ///< By slice.
  std::vector<CutSets::Id> route_sets_;
  std::vector<std::size_t> first_channel_;  ///< By channel of the planned schedule.
  std::vector<std::int64_t> begins_;        ///< Of the slices that are dealt, and the end of the last.
  Schedule dealt_;
};

}  // namespace

StrandCuts::StrandCuts(const Topology& topology, const Bundles& bundles, std::int64_t largest) : bundles_(bundles) {
  const auto exact = exact_whole(topology, bundles, largest);
  whole_ = exact.value_or(std::min(largest, rounded_whole));
  for (std::size_t b = 0; b < bundles.count(); ++b) {
    const auto rate_of = [&](LinkId strand) -> __int128 { return topology.link(strand).bandwidth().bytes_per_second; };
    __int128 all = 0;
    for (const LinkId strand : bundles.strands(b)) all += rate_of(strand);
    // Rounded up, the part of a thin strand would be more than it can carry; the others hardly notice it.
    const auto part_of = [&](LinkId strand) {
      return exact || rate_of(strand) * thinnest >= all ? rate_of(strand) : 0;
    };
    __int128 sum = 0;
    for (const LinkId strand : bundles.strands(b)) sum += part_of(strand);
    const bool all_are_thin = sum == 0;
    if (all_are_thin) sum = all;
    __int128 below = 0;
    std::vector<std::int64_t> ends;
    for (const LinkId strand : bundles.strands(b)) {
      below += all_are_thin ? rate_of(strand) : part_of(strand);
      ends.push_back(static_cast<std::int64_t>((below * whole_ + sum / 2) / sum));
    }
    ends.pop_back();
    cuts_.push_back(std::move(ends));
  }
}

std::vector<std::int64_t> StrandCuts::cuts(std::span<const LinkId> route) const {
  std::vector<std::int64_t> all;
  for (const LinkId bundle : route) {
    const std::vector<std::int64_t>& own = cuts(bundle);
    all.insert(all.end(), own.begin(), own.end());
  }
  // Rounded, a strand may have no part at all.
  std::erase_if(all, [&](std::int64_t cut) { return cut <= 0 || cut >= whole_; });
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::vector<LinkId> StrandCuts::at(std::span<const LinkId> route, std::int64_t place) const {
  std::vector<LinkId> links;
  for (const LinkId bundle : route) {
    const std::vector<std::int64_t>& own = cuts(bundle);
    const auto strand = static_cast<std::size_t>(std::ranges::upper_bound(own, place) - own.begin());
    links.push_back(bundles_.strands(bundle.index())[strand]);
  }
  return links;
}

Schedule deal_strands(const Schedule& planned, const Topology& topology, const Bundles& bundles) {
  if (planned.units == 0 || planned.transfers.empty()) return planned;
  // Units as fine as can be counted leave none to part strands by.
  const std::int64_t parts = exact_whole(topology, bundles, StrandCuts::largest_whole).value_or(rounded_whole);
  const std::int64_t most = max_units / std::min(parts, max_wanted);
  if (planned.units <= most) return StrandDealer(planned, topology, bundles).run();
  return StrandDealer(with_coarser_units(planned, most), topology, bundles).run();
}

}  // namespace espalier
