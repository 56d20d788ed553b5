#include "bench/simgrid/jobs.h"

#include <utility>

#include "base/check.h"
#include "bench/rings.h"
#include "sim/core/jitter.h"

namespace espalier::bench {
namespace {

constexpr std::int64_t mebibyte = std::int64_t{1} << 20;
constexpr std::size_t leaves = 8;
constexpr std::size_t hosts_per_leaf = 16;
constexpr std::size_t spines = 4;
constexpr std::size_t host_count = leaves * hosts_per_leaf;

Topology slow_down(const Topology& topology, std::size_t link, std::int64_t factor) {
  std::vector<Node> nodes(topology.nodes().begin(), topology.nodes().end());
  std::vector<Link> links(topology.links().begin(), topology.links().end());
  links[link].nominal.bytes_per_second /= factor;
  auto made = Topology::make(topology.name(), std::move(nodes), std::move(links));
  ESPALIER_CHECK(made.has_value(), "a slower ring is a topology");
  return std::move(*made);
}

/// Links: from hosts to leaves, from leaves to hosts, from leaves to spines, from spines to leaves.
LinkId up(std::size_t host) { return LinkId(host); }
LinkId down(std::size_t host) { return LinkId(host_count + host); }
LinkId to_spine(std::size_t leaf, std::size_t spine) { return LinkId(2 * host_count + leaf * spines + spine); }
LinkId from_spine(std::size_t leaf, std::size_t spine) {
  return LinkId(2 * host_count + leaves * spines + leaf * spines + spine);
}

Topology make_leaf_spine() {
  std::vector<Node> nodes(host_count + leaves + spines);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].id = "n" + std::to_string(i);
    if (i < host_count) continue;
    nodes[i].kind = NodeKind::switch_node;
    nodes[i].is_rank = false;
  }
  std::vector<Link> links(2 * host_count + 2 * leaves * spines);
  const auto join = [&](LinkId id, std::size_t tail, std::size_t head) {
    Link& link = links[id.index()];
    link.tail = NodeId(tail);
    link.head = NodeId(head);
    link.nominal = {12'500'000'000};
    link.latency = {1'000'000};
  };
  for (std::size_t i = 0; i < host_count; ++i) {
    join(up(i), i, host_count + i / hosts_per_leaf);
    join(down(i), host_count + i / hosts_per_leaf, i);
  }
  for (std::size_t leaf = 0; leaf < leaves; ++leaf) {
    for (std::size_t spine = 0; spine < spines; ++spine) {
      join(to_spine(leaf, spine), host_count + leaf, host_count + leaves + spine);
      join(from_spine(leaf, spine), host_count + leaves + spine, host_count + leaf);
    }
  }
  auto made = Topology::make("leaf-spine-128", std::move(nodes), std::move(links));
  ESPALIER_CHECK(made.has_value(), "leaves and spines are a topology");
  return std::move(*made);
}

RouteId add_way(Schedule& schedule, std::size_t src, std::size_t dst, std::size_t spine) {
  std::vector<LinkId> way{up(src)};
  if (src / hosts_per_leaf != dst / hosts_per_leaf) {
    way.push_back(to_spine(src / hosts_per_leaf, spine));
    way.push_back(from_spine(dst / hosts_per_leaf, spine));
  }
  way.push_back(down(dst));
  return schedule.add_route(Rank(src), Rank(dst), way);
}

void add_slice(Schedule& schedule) {
  schedule.slices.push_back({schedule.units, 1, {}, {}});
  ++schedule.units;
}

}  // namespace

peer::Platform make_platform(const Topology& topology, const Schedule& schedule) {
  peer::Platform platform;
  platform.hosts = static_cast<std::uint32_t>(topology.rank_count());
  for (const Link& link : topology.links()) {
    platform.bandwidths.push_back(static_cast<double>(link.bandwidth().bytes_per_second));
    platform.latencies.push_back(link.latency.seconds());
  }
  for (std::size_t i = 0; i < schedule.route_count(); ++i) {
    const espalier::Route route = schedule.route(RouteId(i));
    peer::Route& added = platform.routes.emplace_back(peer::Route{route.src.value(), route.dst.value(), {}});
    for (const LinkId link : route.links) added.links.push_back(link.value());
  }
  return platform;
}

WalkedRing make_walked_ring(const Ring& ring) {
  WalkedRing made{make_ring_topology(ring.ranks), make_ring_walk(ring.ranks), Bytes{64 * mebibyte}, {}};
  if (ring.slow != 1) made.topology = slow_down(made.topology, 0, ring.slow);
  made.conditions.jitter_ppm = ring.jitter_ppm;
  made.conditions.seed = 1;
  return made;
}

Job make_ring_job(const Ring& ring) {
  WalkedRing walked = make_walked_ring(ring);
  const std::size_t ranks = ring.ranks;
  Job job{"ring", std::move(walked.topology), make_ring_all_reduce(ranks), walked.size, 0, walked.conditions, {}, {}};
  job.hops = job.schedule.transfers.size();
  job.rings.hosts.resize(1);
  for (std::uint32_t r = 0; r < ranks; ++r) job.rings.hosts[0].push_back(r);
  job.rings.steps = static_cast<std::uint32_t>(2 * (ranks - 1));
  const double shard = static_cast<double>(job.size.count) / static_cast<double>(ranks);
  const sim::Jitter jitter(job.conditions.jitter_ppm, job.conditions.seed);
  job.rings.bytes = [=](std::uint32_t step, std::uint32_t position) {
    if (!jitter.is_on()) return shard;
    // The transfers of a step are in the order of their senders; what jitter adds to 2^32 is a part of 2^32.
    const auto order = static_cast<std::uint32_t>(step * ranks + position);
    constexpr auto one = std::int64_t{1} << 32;
    return shard * (1 + static_cast<double>(jitter.extra(one, order, 0, 0)) / static_cast<double>(one));
  };
  return job;
}

Job make_all_to_all_job() {
  Schedule schedule({CollectiveKind::all_reduce, host_count, {}}, "leaf-spine-128", "pairs");
  Job job{"all-to-all", make_leaf_spine(), std::move(schedule), {}, 0, {}, {}, {}};
  constexpr std::int64_t bytes = 8 * mebibyte / static_cast<std::int64_t>(host_count);
  for (std::uint32_t distance = 1; distance < host_count; ++distance) {
    for (std::uint32_t src = 0; src < host_count; ++src) {
      const auto dst = static_cast<std::uint32_t>((src + distance) % host_count);
      const RouteId route = add_way(job.schedule, src, dst, (src + dst) % spines);
      job.schedule.add_transfer(route, SliceId(job.schedule.slices.size()), 1, Action::copy, ChannelId(0));
      add_slice(job.schedule);
      job.hops += job.schedule.route(route).links.size();
      job.messages.push_back({0, src, dst, static_cast<double>(bytes)});
    }
  }
  job.size = {bytes * job.schedule.units};
  return job;
}

Job make_sixteen_rings_job() {
  Schedule schedule({CollectiveKind::all_reduce, host_count, {}}, "leaf-spine-128", "rings");
  Job job{"16 rings", make_leaf_spine(), std::move(schedule), {}, 0, {}, {}, {}};
  constexpr std::int64_t bytes = 8 * mebibyte / static_cast<std::int64_t>(leaves);
  std::vector<RouteId> routes;  // by ring and leaf
  job.rings.hosts.resize(hosts_per_leaf);
  for (std::size_t ring = 0; ring < hosts_per_leaf; ++ring) {
    for (std::size_t leaf = 0; leaf < leaves; ++leaf) {
      const std::size_t src = leaf * hosts_per_leaf + ring;
      job.rings.hosts[ring].push_back(static_cast<std::uint32_t>(src));
      routes.push_back(add_way(job.schedule, src, (src + hosts_per_leaf) % host_count, ring % spines));
      add_slice(job.schedule);
    }
  }
  job.rings.steps = 2 * (leaves - 1);
  for (std::size_t step = 0; step < job.rings.steps; ++step) {
    for (std::size_t i = 0; i < routes.size(); ++i) {
      const std::size_t shard = (i % leaves + 2 * leaves - step) % leaves;
      job.schedule.add_transfer(routes[i], SliceId(i / leaves * leaves + shard), 1,
                                step + 1 < leaves ? Action::reduce : Action::copy, ChannelId(0));
      job.hops += job.schedule.route(routes[i]).links.size();
    }
  }
  job.rings.bytes = [](std::uint32_t, std::uint32_t) { return static_cast<double>(bytes); };
  job.size = {bytes * job.schedule.units};
  return job;
}

}  // namespace espalier::bench
