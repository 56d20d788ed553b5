#include "schedule/symmetry/schedule_map.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "base/random.h"

namespace espalier {

MapFinder::MapFinder(const Schedule& schedule, const Topology& topology, MoveOrder order)
    : schedule_(schedule), topology_(topology), order_(order), moves_(schedule), of_route_(schedule.route_count()) {
  steps_.reserve(moves_.all().size());
  for (const TransferId id : moves_.all()) steps_.push_back(step_of(id));
}

const MapFinder::OfRoute& MapFinder::with_kinds(RouteId route, const std::vector<Rank>& ranks) {
  OfRoute& known = of_route_[route.index()];
  if (known.kinds_of == map_number_) return known;
  const auto image = [&](Rank end) { return ranks.empty() || end.is_none() ? end : ranks[end.index()]; };
  const Route ends = schedule_.route(route);
  const std::uint64_t src = image(ends.src).value(), dst = image(ends.dst).value();
  for (std::size_t action = 0; action < known.kinds.size(); ++action) {
    known.kinds[action] = Random(src << 34U | dst << 4U | action).next();  // Sums of like ends would be equal.
  }
  known.kinds_of = map_number_;
  return known;
}

/// Requires: the same ranks as long as it is the same map.
MapFinder::Kind MapFinder::kind_of(std::size_t slice, const std::vector<Rank>& ranks) {
  const auto image = [&](Rank end) { return ranks.empty() || end.is_none() ? end : ranks[end.index()]; };
  const Slice& own = schedule_.slices[slice];
  Kind kind = Random(static_cast<std::uint64_t>(own.length)).next();
  for (const Step& step : steps_of(slice)) {
    kind += with_kinds(step.route, ranks).kinds[static_cast<std::size_t>(step.action)];
  }
  if (own.rank.is_none()) return kind;
  // Whose it is comes first: neighbours are looked up one after the other.
  const std::uint64_t count = schedule_.collective.rank_count;
  const std::uint64_t rank = image(own.rank).value();
  const std::uint64_t place =
      own.to.is_none() ? (rank << 32U) / count : ((rank * count + image(own.to).value()) << 31U) / (count * count) * 2;
  return place << 32U | kind >> 32U;
}

void MapFinder::sort_by_kind() {
  ++map_number_;
  for (std::size_t i = 0; i < schedule_.slices.size(); ++i) by_kind_.push_back({kind_of(i, {}), SliceId(i)});
  std::ranges::sort(by_kind_);
  const unsigned bits = std::max(1U, static_cast<unsigned>(std::bit_width(by_kind_.size())));
  kind_shift_ = 64 - bits;
  kind_begins_.assign((std::size_t{1} << bits) + 1, 0);
  place_in_kind_.resize(by_kind_.size());
  for (std::size_t i = 0; i < by_kind_.size(); ++i) {
    ++kind_begins_[(by_kind_[i].kind >> kind_shift_) + 1];
    const bool is_like = i > 0 && by_kind_[i - 1].kind == by_kind_[i].kind;
    place_in_kind_[by_kind_[i].slice.index()] = is_like ? place_in_kind_[by_kind_[i - 1].slice.index()] + 1 : 0;
  }
  std::partial_sum(kind_begins_.begin(), kind_begins_.end(), kind_begins_.begin());
  ++map_number_;
}

/// In ascending order.
std::span<const MapFinder::OfKind> MapFinder::slices_of(Kind kind) const {
  const std::size_t bits = kind >> kind_shift_;
  const std::span<const OfKind> near =
      std::span(by_kind_).subspan(kind_begins_[bits], kind_begins_[bits + 1] - kind_begins_[bits]);
  const auto like = std::ranges::equal_range(near, kind, {}, &OfKind::kind);
  return {like.begin(), like.end()};
}

void MapFinder::begin() {
  map_.ranks.assign(schedule_.collective.rank_count, Rank());
  map_.slices.assign(schedule_.slices.size(), SliceId());
  map_.links.assign(topology_.link_count(), LinkId());
  source_.assign(topology_.link_count(), LinkId());
  noted_.clear();
  routes_.clear();
  ++map_number_;
}

std::optional<ScheduleMap> MapFinder::take_first_to(SliceId slice) {
  const bool is_like_first = schedule_.slices[slice.index()].length == schedule_.slices[0].length &&
                             moves_.of(slice.index()).size() == moves_.of(0).size();
  if (!is_like_first) return std::nullopt;
  begin();
  return map_ranks(slice.index()) ? take_slices(slice) : std::nullopt;
}

std::optional<ScheduleMap> MapFinder::take_ranks_to(const std::vector<Rank>& ranks) {
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] == Rank(i)) return std::nullopt;
  }
  begin();
  map_.ranks = ranks;
  return take_slices(SliceId());
}

/// Where slices and links go, when that is known of ranks; the first slice to this one, if to any.
std::optional<ScheduleMap> MapFinder::take_slices(SliceId image_of_first) {
  if (by_kind_.empty()) sort_by_kind();
  std::vector<bool> is_taken(schedule_.slices.size(), false);
  for (std::size_t i = 0; i < schedule_.slices.size(); ++i) {
    // Of like slices, which parallel links may carry, the one in the same place, or else the first that fits.
    const std::span<const OfKind> like = slices_of(kind_of(i, map_.ranks));
    const auto fits = [&](const OfKind& other) {
      return !is_taken[other.slice.index()] && (i != 0 || image_of_first.is_none() || other.slice == image_of_first) &&
             schedule_.slices[i].length == schedule_.slices[other.slice.index()].length && take(i, other.slice.index());
    };
    const std::size_t place = place_in_kind_[i];
    const auto taken = place < like.size() && fits(like[place]) ? like.begin() + static_cast<std::ptrdiff_t>(place)
                                                                : std::ranges::find_if(like, fits);
    if (taken == like.end()) return std::nullopt;
    map_.slices[i] = taken->slice;
    is_taken[taken->slice.index()] = true;
  }
  return std::move(map_);
}

/// Where ranks go if the first slice's transfers go to this slice's. False where two go to one, or one stays.
bool MapFinder::map_ranks(std::size_t slice) {
  const std::span<const TransferId> ones = moves_.of(0), others = moves_.of(slice);
  std::vector<bool> is_taken(map_.ranks.size(), false);
  const auto goes = [&](Rank from, Rank to) {
    Rank& known = map_.ranks[from.index()];
    if (known == to) return true;
    if (from == to || !known.is_none() || is_taken[to.index()]) return false;
    known = to;
    is_taken[to.index()] = true;
    return true;
  };
  for (std::size_t i = 0; i < ones.size(); ++i) {
    ++work_;
    const Transfer& one = schedule_.transfers[ones[i].index()];
    const Transfer& other = schedule_.transfers[others[i].index()];
    if (!goes(schedule_.src(one), schedule_.src(other)) || !goes(schedule_.dst(one), schedule_.dst(other)))
      return false;
  }
  return std::ranges::none_of(map_.ranks, [](Rank rank) { return rank.is_none(); });
}

std::optional<ScheduleMap> MapFinder::move_on(std::uint32_t ranks, std::size_t slices) {
  begin();
  for (std::size_t i = 0; i < map_.ranks.size(); ++i) map_.ranks[i] = Rank((i + ranks) % map_.ranks.size());
  for (std::size_t i = 0; i < map_.slices.size(); ++i) {
    const std::size_t image = (i + slices) % map_.slices.size();
    if (!take(i, image)) return std::nullopt;
    map_.slices[i] = SliceId(image);
  }
  return std::move(map_);
}

/// Whether what happens to one slice happens to the other; notes where links go if so.
bool MapFinder::take(std::size_t slice, std::size_t image) {
  const std::span<const Step> ones = steps_of(slice), others = steps_of(image);
  if (ones.size() != others.size()) return false;
  std::span<const TransferId> matched;
  const bool is_in_order = order_ == MoveOrder::same || go_to(ones, others, map_.ranks);
  if (!is_in_order) {
    matched = match(slice, image, map_.ranks);
    if (matched.empty()) return false;
  }
  const std::size_t links = noted_.size(), routes = routes_.size();
  for (std::size_t i = 0; i < ones.size(); ++i) {
    ++work_;
    if (is_image(ones[i], is_in_order ? others[i] : step_of(matched[i]))) continue;
    take_back(links, routes);
    return false;
  }
  return true;
}

bool MapFinder::go_to(std::span<const Step> ones, std::span<const Step> others, const std::vector<Rank>& ranks) const {
  return std::ranges::equal(ones, others, [&](const Step& one, const Step& other) {
    const Route from = schedule_.route(one.route), to = schedule_.route(other.route);
    return ranks[from.src.index()] == to.src && ranks[from.dst.index()] == to.dst;
  });
}

std::span<const TransferId> MapFinder::match(std::size_t slice, std::size_t image, const std::vector<Rank>& ranks) {
  const std::span<const TransferId> ones = moves_.of(slice), others = moves_.of(image);
  if (ones.size() != others.size()) return {};
  if (order_ == MoveOrder::same || go_to(steps_of(slice), steps_of(image), ranks)) return others;
  // Along trees a rank gets a slice from one other, and sends what it added up to one other.
  const auto place_of = [](Rank src, Rank dst, const Transfer& transfer) {
    return 2 * (transfer.reduces != 0 ? src : dst).index() + transfer.reduces;
  };
  by_place_.assign(2 * std::size_t{schedule_.collective.rank_count}, TransferId());
  for (const TransferId id : others) {
    const Transfer& other = schedule_.transfers[id.index()];
    TransferId& known = by_place_[place_of(schedule_.src(other), schedule_.dst(other), other)];
    if (!known.is_none()) return {};
    known = id;
  }
  matched_.clear();
  for (const TransferId id : ones) {
    const Transfer& one = schedule_.transfers[id.index()];
    const TransferId found =
        by_place_[place_of(ranks[schedule_.src(one).index()], ranks[schedule_.dst(one).index()], one)];
    if (found.is_none()) return {};
    matched_.push_back(found);
  }
  return matched_;
}

bool MapFinder::is_image(const Step& one, const Step& other) {
  if (one.action != other.action) return false;
  OfRoute& known = of_route_[one.route.index()];
  if (known.image_of == map_number_ && known.image == other.route) return true;
  const Route from = schedule_.route(one.route);
  const Route to = schedule_.route(other.route);
  const bool goes =
      to.src == map_.ranks[from.src.index()] && to.dst == map_.ranks[from.dst.index()] &&
      std::ranges::equal(from.links, to.links, [&](LinkId link, LinkId image) { return note(link, image); });
  if (!goes) return false;
  known.image_of = map_number_;
  known.image = other.route;
  routes_.push_back(one.route);
  return true;
}

/// Whether a link can go to this one.
bool MapFinder::note(LinkId link, LinkId image) {
  LinkId& known = map_.links[link.index()];
  if (known == image) return true;
  LinkId& source = source_[image.index()];
  if (!known.is_none() || !source.is_none() || !are_alike(topology_.link(link), topology_.link(image))) return false;
  known = image;
  source = link;
  noted_.push_back(link);
  return true;
}

/// Of what was noted only so many stay.
void MapFinder::take_back(std::size_t links, std::size_t routes) {
  for (; noted_.size() > links; noted_.pop_back()) {
    LinkId& image = map_.links[noted_.back().index()];
    source_[image.index()] = LinkId();
    image = LinkId();
  }
  for (; routes_.size() > routes; routes_.pop_back()) of_route_[routes_.back().index()].image_of = 0;
}

}  // namespace espalier
