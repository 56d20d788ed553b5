#include "profile/costed_network.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <string>
#include <vector>

namespace espalier::profile {
namespace {

std::int64_t part_of(std::int64_t whole, std::int64_t ppm) {
  return static_cast<std::int64_t>(static_cast<__int128>(whole) * ppm / whole_ppm);
}

bool is_switch(const Node& node) { return node.kind == NodeKind::switch_node; }
bool is_nic(const Node& node) { return node.kind == NodeKind::nic; }

bool has_fabric(const Topology& topology) {
  for (std::size_t i = 0; i < topology.link_count(); ++i) {
    if (!is_idle(topology, LinkId(i)) && kind_of(topology, LinkId(i)) == LinkKind::fabric) return true;
  }
  return false;
}

/// How much of a way's hop lies on this cable, in halves.
std::int64_t halves_of_hop(const Node& tail, const Node& head, LinkKind kind) {
  if (kind == LinkKind::pcie && (is_nic(tail) || is_nic(head))) return 0;
  const auto ends = [&](const Node& node) { return kind == LinkKind::network ? !is_switch(node) : node.is_rank; };
  return (ends(tail) ? 1 : 0) + (ends(head) ? 1 : 0);
}

double to_part(std::int32_t ppm) { return static_cast<double>(ppm) / whole_ppm; }

/// Of the links that leave ranks the one that carries most, in bytes a second.
double fullest_rate_of_ranks(const Topology& topology) {
  std::int64_t most = 1;
  for (const Link& link : topology.links()) {
    if (topology.node(link.tail).is_rank) most = std::max(most, link.nominal.bytes_per_second);
  }
  return static_cast<double>(most);
}

}  // namespace

Picoseconds CostedNetwork::launch_with(Bytes chunk) const {
  constexpr double pico = 1e12;
  const double on_the_wire = static_cast<double>(chunk.count) * whole_ppm / endpoints.payload_ppm;
  return endpoints.launch + Picoseconds{std::llround(drain * on_the_wire * pico)};
}

ProtocolCosts on_ranks(const ProtocolCosts& way, CollectiveKind kind, std::size_t ranks) {
  if (way.own_ppm == 0 || ranks < 2 || has_root(kind)) return way;
  const auto transfers = static_cast<std::int64_t>((ranks - 1) * (kind == CollectiveKind::all_reduce ? 2 : 1));
  const std::int64_t whole = transfers * whole_ppm;
  const auto reached = [&](std::int64_t rate) {
    return static_cast<std::int64_t>(static_cast<__int128>(rate) * whole / (whole + way.own_ppm));
  };
  ProtocolCosts found = way;
  found.rate_ppm = static_cast<std::int32_t>(std::max<std::int64_t>(1, reached(way.rate_ppm)));
  for (Bandwidth& most : found.most) most = {reached(most.bytes_per_second)};
  return found;
}

std::uint32_t channels_started(Shape shape, sim::Protocol protocol, std::uint32_t channels, Bytes size,
                               std::size_t ranks) {
  constexpr std::uint64_t of_ll = 512UL * 8, of_ll128 = 640UL * 8, of_simple = 512UL * 64;  // Threads times bytes.
  const bool is_ll = protocol == sim::Protocol::ll;
  const std::uint64_t least = is_ll ? of_ll : protocol == sim::Protocol::ll128 ? of_ll128 : of_simple;
  const std::uint64_t parts = is_ll && shape == Shape::ring ? std::max<std::size_t>(ranks, 1) : 1;
  const std::uint64_t busy = static_cast<std::uint64_t>(size.count) / (least * parts);
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(busy, 1, std::max<std::uint32_t>(channels, 1)));
}

Picoseconds launch_of(const Launch& launch, Shape shape, std::size_t ranks, std::size_t machines,
                      std::uint32_t started) {
  const bool sends = shape == Shape::p2p || shape == Shape::pxn;
  return launch.time(std::max<std::size_t>(1, ranks / machines), sends ? ranks : 0, sends ? 0 : started);
}

std::uint32_t channels_of(const Profile& profile, const Topology& topology, std::size_t machines) {
  if (machines < 2) {
    constexpr std::uint32_t of_pcie = 2;
    return has_fabric(topology) ? profile.channels : std::min(profile.channels, of_pcie);
  }
  static constexpr std::int64_t max_of_channel = 45'000'000'000;
  struct Machine {
    std::uint32_t ranks = 0;
    std::map<NodeId, std::int64_t> nics;  ///< What each sends in all, by whichever ports.

    [[nodiscard]] std::uint32_t channels() const {
      const bool has_fast = std::ranges::any_of(nics, [](const auto& nic) { return nic.second > max_of_channel; });
      return std::min(static_cast<std::uint32_t>(nics.size()), ranks) * (has_fast ? 4 : 2);
    }
  };
  std::map<std::string, Machine> by_host;
  for (std::size_t i = 0; i < topology.rank_count(); ++i) {
    ++by_host[topology.node(topology.node_of(Rank(i))).host].ranks;
  }
  for (std::size_t i = 0; i < topology.link_count(); ++i) {
    const Link& link = topology.link(LinkId(i));
    const Node& tail = topology.node(link.tail);
    const auto host = by_host.find(tail.host);
    if (!is_nic(tail) || host == by_host.end() || kind_of(topology, LinkId(i)) != LinkKind::network) continue;
    host->second.nics[link.tail] += link.seen_rate().bytes_per_second;
  }
  // All machines open as many as the one that opens fewest.
  std::uint32_t fewest = profile.channels;
  for (const auto& [host, machine] : by_host) fewest = std::min(fewest, machine.channels());
  return fewest == 0 ? profile.channels : fewest;
}

Result<CostedNetwork> make_setting(const Profile& profile, const ProtocolCosts& way, sim::Protocol protocol,
                                   Picoseconds launch, const Topology& topology, std::size_t machines,
                                   std::uint32_t used) {
  std::vector<Node> nodes(topology.nodes().begin(), topology.nodes().end());
  std::vector<Link> links(topology.links().begin(), topology.links().end());
  const std::size_t size_class = std::min<std::size_t>(machines, way.most.size()) - 1;
  // Where a channel has a limit of its own, `most` is that of all the profile's channels.
  const std::uint32_t part = way.per_channel.count > 0 ? used : profile.channels;
  const auto most =
      static_cast<std::int64_t>(static_cast<__int128>(way.most[size_class].bytes_per_second) * part / profile.channels);
  for (std::size_t i = 0; i < links.size(); ++i) {
    Link& link = links[i];
    const Node &tail = nodes[link.tail.index()], &head = nodes[link.head.index()];
    const LinkKind kind = kind_of(topology, LinkId(i));
    const auto index = static_cast<std::size_t>(kind);
    const bool is_switched =
        kind == LinkKind::fabric && profile.switched_ppm > 0 && (is_switch(tail) || is_switch(head));
    const std::int32_t reached =
        std::min(link.efficiency_ppm, is_switched ? profile.switched_ppm : profile.reached_ppm[index]);
    std::int64_t rate = part_of(part_of(link.nominal.bytes_per_second, reached), way.rate_ppm);
    if (most > 0 && (tail.is_rank || head.is_rank)) {
      const __int128 on_the_wire = static_cast<__int128>(most) * whole_ppm / way.payload_ppm;
      rate = static_cast<std::int64_t>(std::min<__int128>(rate, on_the_wire));
    }
    link.nominal = {std::max<std::int64_t>(rate, 1)};
    link.efficiency_ppm = whole_ppm;
    const std::int64_t own = kind == LinkKind::network ? link.latency.count : 0;
    const bool is_between = kind == LinkKind::fabric && machines > 1 && way.fabric_between.count > 0;
    const Picoseconds whole_hop = is_between ? way.fabric_between : way.hop[index];
    const std::int64_t hop = halves_of_hop(tail, head, kind) * whole_hop.count / 2;
    const bool flushes = protocol == sim::Protocol::simple;
    if (kind == LinkKind::network) {
      const std::int64_t of_chunk = hop + (flushes ? own : 0);
      const std::int64_t waited_for = of_chunk / way.under_way;
      link.latency = {own + of_chunk - waited_for};
      link.overhead = {link.overhead.count + waited_for};
    } else {
      link.latency = {hop};
    }
  }
  auto made = Topology::make(topology.name(), std::move(nodes), std::move(links));
  if (!made) return tl::unexpected(made.error());
  CostedNetwork setting{*std::move(made), {}, {}, {}, 0};
  if (way.drain_ppm > 0) setting.drain = to_part(way.drain_ppm) / fullest_rate_of_ranks(setting.topology);
  setting.endpoints.payload_ppm = way.payload_ppm;
  setting.endpoints.launch = launch + way.base + ranks_time(way, setting.topology.rank_count());
  setting.endpoints.message = way.message;
  setting.endpoints.processors_per_host = profile.processors;
  return setting;
}

Result<Topology> counted_network(const Topology& topology, const TunerModel& tuner) {
  std::vector<Node> nodes(topology.nodes().begin(), topology.nodes().end());
  std::vector<Link> links(topology.links().begin(), topology.links().end());
  for (std::size_t i = 0; i < links.size(); ++i) {
    const auto kind = static_cast<std::size_t>(kind_of(topology, LinkId(i)));
    const std::int64_t rate = part_of(links[i].seen_rate().bytes_per_second, tuner.counted_ppm[kind]);
    links[i].nominal = {std::max<std::int64_t>(rate, 1)};
    links[i].efficiency_ppm = whole_ppm;
    links[i].reported = {};
  }
  return Topology::make(topology.name(), std::move(nodes), std::move(links));
}

std::uint32_t channels_used(const ProtocolCosts& way, std::uint32_t channels, Bytes size, std::uint64_t shards) {
  if (way.per_channel.count == 0) return channels;
  const auto parts =
      static_cast<std::uint64_t>(size.count) / static_cast<std::uint64_t>(way.per_channel.count) / shards;
  return parts >= channels ? channels : std::bit_floor(static_cast<std::uint32_t>(std::max<std::uint64_t>(parts, 1)));
}

Bytes chunk_of(const ProtocolCosts& way, std::uint32_t channels, Bytes size, std::uint64_t shards, double largest_part,
               double depth) {
  if (way.chunk.count == 0) return {};
  const double of_channel = static_cast<double>(size.count) / channels / static_cast<double>(shards);
  auto chunk = static_cast<double>(way.chunk.count);
  const auto least = static_cast<double>(std::max<std::int64_t>(way.min_chunk.count, 1));
  for (std::size_t halvings = 0; chunk / 2 >= least; ++halvings, chunk /= 2) {
    const std::uint32_t wanted =
        way.in_flight.empty() ? 1 : way.in_flight[std::min(halvings, way.in_flight.size() - 1)];
    if (of_channel >= chunk * wanted * depth) break;
  }
  const double count = std::max(1.0, std::ceil(of_channel / chunk));
  return {std::max<std::int64_t>(
      16, static_cast<std::int64_t>(std::ceil(largest_part * static_cast<double>(size.count) / count)))};
}

Bytes min_chunk_of(const ProtocolCosts& way, std::uint32_t channels, Bytes size, double largest_part) {
  const Bytes least = way.min_chunk.count > 0 ? way.min_chunk : usual_least_chunk;
  const double of_part = static_cast<double>(least.count) * channels * largest_part;
  return {std::min(size.count, static_cast<std::int64_t>(of_part))};
}

}  // namespace espalier::profile
