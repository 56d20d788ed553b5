#include <fmt/format.h>

#include <optional>

#include "schedule/parts.h"
#include "schedule/relays.h"
#include "schedule/verify/breach_list.h"
#include "schedule/verify/proven_ranks.h"

namespace espalier {
namespace {

std::string rank_or_none(Rank rank) { return rank.is_none() ? "none" : fmt::format("{}", rank.value()); }

/// S1 for the schedule as a whole: what the other rules divide by or look up. False when no other rule can be checked.
bool check_whole(const Schedule& schedule, const Topology& topology, BreachList& breaches) {
  const auto breach = [&](const std::string& text) { breaches.add(Rule::S1, TransferId(), [&] { return text; }); };
  const Collective& collective = schedule.collective;
  if (collective.rank_count != topology.rank_count()) {
    breach(fmt::format("the schedule is for {} ranks and the topology has {}", collective.rank_count,
                       topology.rank_count()));
  } else if (collective.rank_count > max_proven_ranks) {
    breach(fmt::format("{} ranks are past the limit of {}", collective.rank_count, max_proven_ranks));
  } else if (has_root(collective.kind) && collective.root.index() >= collective.rank_count) {
    breach(fmt::format("the root {} is not one of the {} ranks", rank_or_none(collective.root), collective.rank_count));
  } else if (!has_root(collective.kind) && !collective.root.is_none()) {
    breach(fmt::format("{} has no root, but one is given", to_string(collective.kind)));
  } else if (const auto wrong = why_bad_shares(collective)) {
    breach(*wrong);
  }
  if (schedule.slices.size() > max_slices) breach(fmt::format("{} slices are past the limit", schedule.slices.size()));
  if (schedule.transfers.size() > max_transfers) {
    breach(fmt::format("{} transfers are past the limit of 2^31", schedule.transfers.size()));
  }
  return breaches.empty();
}

/// S1 for the relays: nodes of the topology that are no ranks, each once. False when routes cannot be checked.
bool check_relay_ids(const Schedule& schedule, const Topology& topology, BreachList& breaches) {
  const auto breach = [&](const std::string& text) { breaches.add(Rule::S1, TransferId(), [&] { return text; }); };
  if (end_count(schedule) > max_proven_ranks)
    breach(fmt::format("{} relays are past the limit", schedule.relays.size()));
  std::vector<bool> seen(topology.node_count(), false);
  for (std::size_t i = 0; i < schedule.relays.size() && breaches.empty(); ++i) {
    const NodeId node = schedule.relays[i];
    if (node.index() >= topology.node_count()) {
      breach(fmt::format("relay {} is not one of the topology's {} nodes", i, topology.node_count()));
    } else if (topology.node(node).is_rank) {
      breach(fmt::format("relay {} is {}, which is a rank", i, topology.node(node).id));
    } else if (seen[node.index()]) {
      breach(fmt::format("relay {} is {}, which is one already", i, topology.node(node).id));
    } else {
      seen[node.index()] = true;
    }
  }
  return breaches.empty();
}

/// S1 for one transfer: what is wrong, or nothing.
std::optional<std::string> wrong_id(const Schedule& schedule, const Transfer& transfer) {
  const std::size_t slices = schedule.slices.size();
  const std::size_t first = transfer.first_slice.index();
  if (transfer.slice_count == 0) return "it carries no slices";
  if (first >= slices || transfer.slice_count > slices - first) {
    return fmt::format("it carries {} slices from slice {} on, and there are {}", transfer.slice_count, first, slices);
  }
  if (transfer.route.index() >= schedule.route_count()) {
    return fmt::format("its route {} is not one of the {} routes", transfer.route.value(), schedule.route_count());
  }
  if (transfer.channel_value >= max_channels) {
    return fmt::format("its channel {} is past the limit of {}", transfer.channel_value, max_channels);
  }
  const Route route = schedule.route(transfer.route);
  for (const Rank rank : {route.src, route.dst}) {
    if (rank.index() < end_count(schedule)) continue;
    return fmt::format("rank {} is not one of the {} ranks{}", rank_or_none(rank), schedule.collective.rank_count,
                       schedule.relays.empty() ? "" : fmt::format(" and {} relays", schedule.relays.size()));
  }
  if (route.src == route.dst) return fmt::format("it goes from rank {} to itself", route.src.value());
  return std::nullopt;
}

void check_transfers(const Schedule& schedule, BreachList& breaches) {
  for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
    if (auto wrong = wrong_id(schedule, schedule.transfers[i])) {
      breaches.add(Rule::S1, TransferId(i), [&] { return std::move(*wrong); });
    }
  }
}

/// S2 for one slice that should begin at `offset`: what is wrong, or nothing.
std::optional<std::string> wrong_slice(const Schedule& schedule, const Slice& slice, std::int64_t offset,
                                       const BufferParts& parts) {
  if (slice.length <= 0) return fmt::format("its length is {} units", slice.length);
  if (slice.offset != offset) {
    return fmt::format("it begins at unit {}, and the one before ends at {}", slice.offset, offset);
  }
  if (slice.length > schedule.units - offset) {
    return fmt::format("it ends past the buffer's {} units", schedule.units);
  }
  const std::int64_t part = parts.at(offset);
  if (slice.length > parts.begin(part + 1) - offset) {
    return fmt::format("it reaches from part {} of the buffer, which ends at unit {}, into the next", part,
                       parts.begin(part + 1));
  }
  const PartRanks due = ranks_of_part(schedule.collective, part);
  if (slice.rank != due.rank) {
    return fmt::format("its rank is {}, and part {} of the {} belongs to {}", rank_or_none(slice.rank), part,
                       to_string(schedule.collective.kind), rank_or_none(due.rank));
  }
  if (slice.to != due.to) {
    return fmt::format("it goes to rank {}, and part {} of the {} goes to {}", rank_or_none(slice.to), part,
                       to_string(schedule.collective.kind), rank_or_none(due.to));
  }
  return std::nullopt;
}

void check_slices(const Schedule& schedule, BreachList& breaches) {
  const auto breach = [&](const std::string& text) { breaches.add(Rule::S2, TransferId(), [&] { return text; }); };
  if (schedule.units <= 0 || schedule.units > max_units) {
    return breach(fmt::format("a buffer of {} units; it has 1 to 2^62", schedule.units));
  }
  const BufferParts parts(schedule.collective, schedule.units);
  if (!parts.are_whole()) {
    return breach(fmt::format("the {} units do not divide into the {} {} of {} on {} ranks", schedule.units,
                              parts.count(),
                              schedule.collective.shares.empty() ? "equal parts"
                              : schedule.collective.has_matrix() ? "blocks"
                                                                 : "shares",
                              to_string(schedule.collective.kind), schedule.collective.rank_count));
  }
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < schedule.slices.size(); ++i) {
    const Slice& slice = schedule.slices[i];
    if (auto wrong = wrong_slice(schedule, slice, offset, parts)) {
      return breach(fmt::format("slice {}: {}", i, *wrong));  // What follows would be wrong for the same reason.
    }
    offset += slice.length;
  }
  if (offset != schedule.units) {
    breach(fmt::format("the slices end at unit {} of {}", offset, schedule.units));
  }
}

/// S3: what is wrong with one route, or nothing. Nodes seen on it get the `stamp`, which no call before had.
std::optional<std::string> wrong_route(const Schedule& schedule, const Route& route, const Topology& topology,
                                       std::uint32_t stamp, std::vector<std::uint32_t>& stamps) {
  if (route.links.empty()) return "its route has no links";
  NodeId at = node_of_end(schedule, topology, route.src);
  stamps[at.index()] = stamp;
  for (std::size_t hop = 0; hop < route.links.size(); ++hop) {
    if (route.links[hop].index() >= topology.link_count()) {
      return fmt::format("link {} of its route is not one of the topology's {}", hop, topology.link_count());
    }
    const Link& link = topology.link(route.links[hop]);
    if (link.tail != at) {
      return fmt::format("its route goes over {} when it is at {}", topology.link_name(route.links[hop]),
                         topology.node(at).id);
    }
    at = link.head;
    if (stamps[at.index()] == stamp) return fmt::format("its route passes {} twice", topology.node(at).id);
    stamps[at.index()] = stamp;
    if (hop + 1 < route.links.size() && topology.node(at).is_rank) {
      return fmt::format("its route passes through rank {}; data that a rank relays takes two transfers",
                         topology.node(at).id);
    }
  }
  if (at != node_of_end(schedule, topology, route.dst)) {
    return fmt::format("its route ends at {} instead of {}", topology.node(at).id,
                       end_name(schedule, topology, route.dst));
  }
  return std::nullopt;
}

/// Requires: transfers that keep S1.
void check_routes(const Schedule& schedule, const Topology& topology, BreachList& breaches) {
  std::vector<std::uint32_t> stamps(topology.node_count(), UINT32_MAX);
  enum class State : std::uint8_t { unknown, right, wrong };
  std::vector<State> states(schedule.route_count(), State::unknown);
  for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
    const RouteId id = schedule.transfers[i].route;
    State& state = states[id.index()];
    if (state == State::right) continue;
    const auto wrong = wrong_route(schedule, schedule.route(id), topology, TransferId(i).value(), stamps);
    state = wrong ? State::wrong : State::right;
    if (wrong) breaches.add(Rule::S3, TransferId(i), [&] { return *wrong; });
  }
}

void check_actions(const Schedule& schedule, BreachList& breaches) {
  if (reduces(schedule.collective.kind)) return;
  for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
    if (schedule.transfers[i].reduces == 0) continue;
    breaches.add(Rule::S4, TransferId(i),
                 [&] { return fmt::format("it reduces, and {} only copies", to_string(schedule.collective.kind)); });
  }
}

}  // namespace

void verify_structure(const Schedule& schedule, const Topology& topology, BreachList& breaches, Routes routes) {
  if (!check_whole(schedule, topology, breaches) || !check_relay_ids(schedule, topology, breaches)) return;
  check_transfers(schedule, breaches);
  const bool ids_are_right = breaches.empty();
  check_slices(schedule, breaches);
  if (ids_are_right && routes == Routes::checked) check_routes(schedule, topology, breaches);
  check_actions(schedule, breaches);
}

}  // namespace espalier
