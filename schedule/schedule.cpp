#include "schedule/schedule.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace espalier {

namespace {

constexpr std::array<std::string_view, 3> action_names = {"copy", "reduce", "reduce_input"};  // As Action.

}  // namespace

std::string_view to_string(Action action) { return action_names[static_cast<std::size_t>(action)]; }

std::optional<Action> action_from(std::string_view name) {
  const auto found = std::ranges::find(action_names, name);
  if (found == action_names.end()) return std::nullopt;
  return static_cast<Action>(found - action_names.begin());
}

Schedule::Schedule(Collective what, std::string where, std::string how)
    : ScheduleHeader{std::move(what), std::move(where), std::move(how)} {}

Route Schedule::route(RouteId id) const {
  const std::size_t i = id.index();
  return {route_ends_[i].src, route_ends_[i].dst,
          std::span(route_links_).subspan(route_offsets_[i], route_offsets_[i + 1] - route_offsets_[i])};
}

namespace {

std::uint32_t hash_route(Rank src, Rank dst, std::span<const LinkId> links) {
  std::uint64_t hash = (std::uint64_t{src.value()} << 32U) ^ dst.value();
  for (const LinkId link : links) hash = (hash ^ link.value()) * 0x9E3779B97F4A7C15U;
  return static_cast<std::uint32_t>((hash * 0x9E3779B97F4A7C15U) >> 32U);
}

}  // namespace

RouteId Schedule::add_route(Rank src, Rank dst, std::span<const LinkId> links) {
  const std::uint32_t hash = hash_route(src, dst, links);
  const std::size_t last = route_places_.size() - 1;
  for (std::size_t i = hash & last; !route_places_.empty() && !route_places_[i].route.is_none(); i = (i + 1) & last) {
    if (route_places_[i].hash != hash) continue;
    const Route known = route(route_places_[i].route);
    if (known.src == src && known.dst == dst && std::ranges::equal(known.links, links)) return route_places_[i].route;
  }
  const RouteId added(route_ends_.size());
  route_ends_.push_back({src, dst});
  route_links_.insert(route_links_.end(), links.begin(), links.end());
  route_offsets_.push_back(static_cast<std::uint32_t>(route_links_.size()));
  if (2 * route_ends_.size() > route_places_.size()) {
    constexpr std::size_t min_places = 16;
    std::vector<RoutePlace> before(std::max(min_places, 2 * route_places_.size()));
    before.swap(route_places_);
    for (const RoutePlace& place : before) {
      if (!place.route.is_none()) add_place(place);
    }
  }
  add_place({hash, added});
  return added;
}

/// Requires: a free place.
void Schedule::add_place(RoutePlace place) {
  const std::size_t last = route_places_.size() - 1;
  std::size_t i = place.hash & last;
  while (!route_places_[i].route.is_none()) i = (i + 1) & last;
  route_places_[i] = place;
}

TransferId Schedule::add_transfer(RouteId route, SliceId first_slice, std::uint32_t slice_count, Action action,
                                  ChannelId channel) {
  ESPALIER_CHECK(channel.value() < (1U << 30U), "a channel fits 30 bits");
  Transfer transfer;
  transfer.first_slice = first_slice;
  transfer.slice_count = slice_count;
  transfer.route = route;
  transfer.channel_value = channel.value() & 0x3FFFFFFFU;
  transfer.reduces = action == Action::copy ? 0 : 1;
  transfer.reads_input = action == Action::reduce_input ? 1 : 0;
  transfers.push_back(transfer);
  return TransferId(transfers.size() - 1);
}

bool Schedule::reads_inputs() const {
  return std::ranges::any_of(transfers, [](const Transfer& transfer) { return transfer.reads_input != 0; });
}

std::uint32_t Schedule::channel_count() const {
  std::uint32_t count = 0;
  for (const Transfer& transfer : transfers) count = std::max(count, transfer.channel_value + 1U);
  return count;
}

}  // namespace espalier
