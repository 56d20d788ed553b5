#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "schedule/schedule.h"
#include "sim/simulate.h"
#include "topology/topology.h"

/// A small network and a schedule on it, both made by hand, for tests of the simulator.
namespace espalier::test {

/// One byte takes one picosecond at this rate: times can be read off.
inline constexpr Bandwidth byte_per_picosecond{picoseconds_per_second};

class Machine {
 public:
  std::vector<Node> nodes;
  std::vector<Link> links;
  std::vector<std::int64_t> slice_units;  ///< Lengths of the slices.

  /// Ranks g0, g1, ... come before all other nodes.
  explicit Machine(std::size_t ranks) : rank_count_(ranks) {
    for (std::size_t i = 0; i < ranks; ++i) {
      Node node;
      node.id = "g" + std::to_string(i);
      nodes.push_back(node);
    }
    schedule_.collective = {CollectiveKind::all_reduce, static_cast<std::uint32_t>(ranks), {}};
  }

  std::size_t add_switch() {
    Node node;
    node.id = "s" + std::to_string(nodes.size() - rank_count_);
    node.kind = NodeKind::switch_node;
    node.is_rank = false;
    nodes.push_back(node);
    return nodes.size() - 1;
  }

  /// Switches copy and add from here on: routes may begin and end at them, as at ranks.
  void make_relays() {
    for (std::size_t i = rank_count_; i < nodes.size(); ++i) {
      nodes[i].multicast = nodes[i].reduction = true;
      schedule_.relays.emplace_back(i);  // So that a switch's number as an end is its number as a node.
    }
  }

  /// A link between two nodes by their numbers.
  LinkId add_link(std::size_t tail, std::size_t head, std::int64_t latency = 0, Bandwidth rate = byte_per_picosecond) {
    Link link;
    link.tail = NodeId(tail);
    link.head = NodeId(head);
    link.nominal = rate;
    link.latency = {latency};
    links.push_back(link);
    return LinkId(links.size() - 1);
  }

  /// A transfer over these links of `count` slices.
  void send(std::initializer_list<LinkId> route, std::size_t first_slice = 0, std::uint32_t count = 1,
            Action action = Action::copy, std::size_t channel = 0) {
    send(std::vector<LinkId>(route), first_slice, count, action, channel);
  }
  void send(const std::vector<LinkId>& route, std::size_t first_slice, std::uint32_t count, Action action,
            std::size_t channel) {
    const Rank src(links[route.front().index()].tail.index());
    const Rank dst(links[route.back().index()].head.index());
    schedule_.add_transfer(schedule_.add_route(src, dst, route), SliceId(first_slice), count, action,
                           ChannelId(channel));
  }

  [[nodiscard]] Topology topology() const {
    auto made = Topology::make("test", nodes, links);
    ESPALIER_CHECK(made.has_value(), "a test's machine is a topology");
    return std::move(*made);
  }

  [[nodiscard]] Schedule schedule() const {
    Schedule schedule = schedule_;
    schedule.algorithm = "test";
    for (const std::int64_t length : slice_units) {
      schedule.slices.push_back({schedule.units, length, {}, {}});
      schedule.units += length;
    }
    return schedule;
  }

  /// Simulates with 1-byte elements; records everything.
  [[nodiscard]] sim::Report simulate(std::int64_t size, std::int64_t chunk) const {
    auto report = sim::simulate_unverified(schedule(), topology(), {Bytes{size}, Bytes{chunk}, 1, true, true});
    ESPALIER_CHECK(report.has_value(), "a test's machine simulates");
    return std::move(*report);
  }

 private:
  std::size_t rank_count_;
  Schedule schedule_;
};

}  // namespace espalier::test
