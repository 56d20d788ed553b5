// What a lab costs and how exact it is on this machine: the figures of docs/lab.md.
//
// Usage: lab_table. Needs what a lab needs (espalier lab says what is missing). Run it on a machine that does nothing
// else; figures taken beside other work are lower.
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "lab/network.h"
#include "lab/requirements.h"
#include "tests/lab/streams.h"
#include "topology/topology_builder.h"

namespace espalier::lab {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// Seconds that all cores have been busy since boot, whoever made them so; forwarding is nobody's in particular.
double busy_seconds() {
  std::ifstream file("/proc/stat");
  std::string name;
  double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, interrupts = 0, soft_interrupts = 0;
  file >> name >> user >> nice >> system >> idle >> waiting >> interrupts >> soft_interrupts;
  constexpr double ticks_per_second = 100;
  return (user + nice + system + interrupts + soft_interrupts) / ticks_per_second;
}

/// Two ranks with `hops` cables in a row between them.
Topology chain(std::int64_t hops, Bandwidth rate) {
  TopologyBuilder builder;
  NodeId last = builder.rank("a");
  for (std::int64_t hop = 1; hop < hops; ++hop) {
    const NodeId next = builder.forwarder(NodeKind::switch_node, fmt::format("s{}", hop));
    builder.cable(last, next, {rate, {}, ""});
    last = next;
  }
  const NodeId end = builder.rank("b");
  builder.cable(last, end, {rate, {}, ""});
  return std::move(builder).build("chain").value();
}

/// The route along all links in id order that lead away from the first rank.
Schedule route_along(const Topology& topology) {
  Schedule schedule({CollectiveKind::all_gather, 2, {}}, "chain", "test");
  std::vector<LinkId> links;
  for (std::size_t link = 0; link < topology.link_count(); link += 2) links.emplace_back(link);
  schedule.add_route(Rank(0), Rank(1), links);
  return schedule;
}

void print_rate(std::int64_t hops, Bandwidth rate) {
  const Topology topology = chain(hops, rate);
  auto network = LabNetwork::make(topology).value();
  const auto routes = network.add_routes(route_along(topology)).value();
  const auto stream = connect_route(network, routes.front()).value();
  const double busy = busy_seconds();
  constexpr double seconds = 1.5;
  const double measured = measure_rate(stream, seconds);
  fmt::print("{:6} {:12.1f} {:12.1f} {:8.2f} {:10.2f}\n", hops, static_cast<double>(rate.bytes_per_second) / 1e6,
             measured / 1e6, 100 * (measured / static_cast<double>(rate.bytes_per_second) - 1),
             (busy_seconds() - busy) / seconds);
}

void print_rates() {
  fmt::print("# one TCP stream; cores busy with everything on the machine\n");
  fmt::print("#{:>5} {:>12} {:>12} {:>8} {:>10}\n", "hops", "rate MB/s", "got MB/s", "error %", "cores busy");
  for (const std::int64_t hops : {1, 2, 4}) {
    for (const std::int64_t rate : {1, 5, 20, 50, 100, 200, 300, 500, 1000, 4000}) {
      print_rate(hops, {rate * 1'000'000});
    }
  }
}

/// Ranks around a switch.
void print_setup(std::int64_t nodes) {
  TopologyBuilder builder;
  const NodeId hub = builder.forwarder(NodeKind::switch_node, "s");
  for (std::int64_t rank = 1; rank < nodes; ++rank) {
    builder.cable(builder.rank(fmt::format("r{}", rank)), hub, {{10'000'000}, {}, ""});
  }
  const Topology topology = std::move(builder).build("star").value();
  const auto ranks = topology.rank_count();
  Schedule schedule({CollectiveKind::all_to_all, static_cast<std::uint32_t>(ranks), {}}, "star", "test");
  for (std::size_t src = 0; src < ranks; ++src) {
    for (std::size_t dst = 0; dst < ranks; ++dst) {
      if (src == dst) continue;
      const std::array links = {LinkId(2 * src), LinkId(2 * dst + 1)};
      schedule.add_route(Rank(src), Rank(dst), links);
    }
  }
  Clock::time_point begin = Clock::now();
  auto network = LabNetwork::make(topology).value();
  const double making = seconds_since(begin);
  begin = Clock::now();
  const auto routes = network.add_routes(schedule).value();
  const double routing = seconds_since(begin);
  begin = Clock::now();
  const auto closed = network.close();
  fmt::print("{:6} {:10.2f} {:8} {:10.2f} {:12.2f}{}\n", nodes, making, routes.size(), routing, seconds_since(begin),
             closed ? "" : "  " + closed.error().message);
}

}  // namespace
}  // namespace espalier::lab

int main() {
  const auto support = espalier::lab::require_support();
  if (!support) {
    fmt::print(stderr, "{}\n", support.error().message);
    return 3;
  }
  fmt::print("#{:>5} {:>10} {:>8} {:>10} {:>12}\n", "nodes", "set up s", "routes", "routing s", "tear down s");
  for (const std::int64_t nodes : {4, 16, 64, 256}) espalier::lab::print_setup(nodes);
  espalier::lab::print_rates();
  return 0;
}
