#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "schedule/schedule.h"
#include "schedule/trees/ring_walk.h"
#include "topology/topology.h"

/// The rings and chains that the benchmarks of the simulator run on.
namespace espalier::bench {

/// A one-way ring of 100 GB/s and 1 us links; link i goes from rank i to the next one.
inline Topology make_ring_topology(std::size_t ranks) {
  std::vector<Node> nodes(ranks);
  std::vector<Link> links(ranks);
  for (std::size_t i = 0; i < ranks; ++i) {
    nodes[i].id = "g" + std::to_string(i);
    links[i].tail = NodeId(i);
    links[i].head = NodeId((i + 1) % ranks);
    links[i].nominal = {100'000'000'000};
    links[i].latency = {1'000'000};
  }
  auto topology = Topology::make("ring", std::move(nodes), std::move(links));
  ESPALIER_CHECK(topology.has_value(), "a ring is a topology");
  return std::move(*topology);
}

/// The ring all-reduce: in step s rank r sends shard r - s to the next rank, which adds it in the first N - 1 steps and
/// takes it over in the other N - 1.
inline Schedule make_ring_all_reduce(std::size_t ranks) {
  Schedule schedule({CollectiveKind::all_reduce, static_cast<std::uint32_t>(ranks), {}}, "ring", "ring");
  schedule.units = static_cast<std::int64_t>(ranks);
  std::vector<RouteId> routes;
  for (std::size_t r = 0; r < ranks; ++r) {
    schedule.slices.push_back({static_cast<std::int64_t>(r), 1, {}, {}});
    const std::vector<LinkId> link{LinkId(r)};
    routes.push_back(schedule.add_route(Rank(r), Rank((r + 1) % ranks), link));
  }
  schedule.transfers.reserve(2 * (ranks - 1) * ranks);
  for (std::size_t step = 0; step < 2 * (ranks - 1); ++step) {
    for (std::size_t r = 0; r < ranks; ++r) {
      schedule.add_transfer(routes[r], SliceId((r + 2 * ranks - step) % ranks), 1,
                            step + 1 < ranks ? Action::reduce : Action::copy, ChannelId(0));
    }
  }
  return schedule;
}

/// The same, to be walked.
inline RingWalk make_ring_walk(std::size_t ranks) {
  RingWalk walk;
  walk.collective = {CollectiveKind::all_reduce, static_cast<std::uint32_t>(ranks), {}};
  for (std::size_t i = 0; i < ranks; ++i) {
    walk.order.emplace_back(i);
    walk.hops.push_back({LinkId(i)});
  }
  return walk;
}

/// Ranks in a line, a switch between every two; the links behind the switches have `slow_rate`.
inline Topology make_chain_topology(std::size_t ranks, Bandwidth slow_rate) {
  std::vector<Node> nodes(2 * ranks - 1);
  std::vector<Link> links(2 * ranks - 2);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].id = "n" + std::to_string(i);
    nodes[i].is_rank = i % 2 == 0;
    if (i % 2 == 1) nodes[i].kind = NodeKind::switch_node;
  }
  for (std::size_t i = 0; i < links.size(); ++i) {
    links[i].tail = NodeId(i);
    links[i].head = NodeId(i + 1);
    links[i].nominal = i % 2 == 0 ? Bandwidth{100'000'000'000} : slow_rate;
    links[i].latency = {1'000'000};
  }
  auto topology = Topology::make("chain", std::move(nodes), std::move(links));
  ESPALIER_CHECK(topology.has_value(), "a chain is a topology");
  return std::move(*topology);
}

/// A broadcast down the chain.
inline Schedule make_chain_broadcast(std::size_t ranks) {
  Schedule schedule({CollectiveKind::broadcast, static_cast<std::uint32_t>(ranks), Rank(0), {}}, "chain", "chain");
  schedule.units = 1;
  schedule.slices.push_back({0, 1, {}, {}});
  for (std::size_t r = 0; r + 1 < ranks; ++r) {
    const std::vector<LinkId> links{LinkId(2 * r), LinkId(2 * r + 1)};
    schedule.add_transfer(schedule.add_route(Rank(r), Rank(r + 1), links), SliceId(0), 1, Action::copy, ChannelId(0));
  }
  return schedule;
}

}  // namespace espalier::bench
