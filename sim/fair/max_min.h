#pragma once

// Tested by: tests/unit/sim/fair/max_min_test.cpp

#include <cstdint>
#include <span>
#include <vector>

namespace espalier::sim {

/// Which flow it is, chosen by the caller; small numbers, as tables are indexed with them.
using FlowIndex = std::uint32_t;

/// Shares resources among flows max-min fairly: no flow can get more without one that has no more than it getting less.
///
/// Capacities and rates are whole numbers of one unit. A rate is what these rounds give, so it depends on the flows and
/// capacities alone, never on the order in which they came: in every round, the level is the smallest whole part of
/// (what is left of a resource / its flows without a rate), and every flow on a resource where that is smallest gets
/// the level. What a division leaves over, less than one unit per flow, is given to nobody; but a flow whose resources
/// all have a capacity gets 1 at least. Divisions that come out whole are exact.
///
/// Flows that share resources, directly or through others, form a component; changes are worked out for the components
/// that they touch, and give what working out everything would.
/// Source: D. Bertsekas, R. Gallager, "Data Networks", 2nd edition 1992, section 6.5.2 (progressive filling).
class MaxMin {
 public:
  /// By resource, its capacity. Requires: none negative. A capacity of 0 stops the flows on it.
  explicit MaxMin(std::vector<std::int64_t> capacities);

  /// A new flow over these resources; its rate is 0 until `solve`.
  /// Requires: `flow` is not in use; at least one resource, each once; `resources` outlives the flow.
  /// Cost: O(resources).
  void add(FlowIndex flow, std::span<const std::uint32_t> resources);

  /// Takes a flow out; its number may be used again. Requires: in use. Cost: O(resources).
  void remove(FlowIndex flow);

  /// Requires: capacity is not negative.
  void set_capacity(std::uint32_t resource, std::int64_t capacity);

  [[nodiscard]] std::int64_t capacity(std::uint32_t resource) const { return resources_[resource].capacity; }

  /// Works the rates out anew where something was added, removed or changed since the last call. Gives the flows whose
  /// rate is another now, in any order; valid until the next call.
  /// Cost: O(e log r) for the touched components of r resources and e pairs of a flow and its resource; O(resources)
  /// for a flow that shares with no other.
  std::span<const FlowIndex> solve();

  /// As of the last `solve`. Requires: in use.
  [[nodiscard]] std::int64_t rate(FlowIndex flow) const { return flows_[flow].rate; }

  /// The flows on a resource, in any order.
  template <class Visit>
  void for_each_on(std::uint32_t resource, Visit&& visit) const {
    for (const Member& member : resources_[resource].members) visit(member.flow);
  }

 private:
  /// A flow on a resource.
  struct Member {
    FlowIndex flow;
    std::uint32_t hop;  // which of the flow's resources it is
  };
  struct Resource {
    std::int64_t capacity = 0;
    std::int64_t left = 0;      // while solving: what the flows with a rate leave
    std::uint32_t waiting = 0;  // while solving: flows without a rate
    std::uint32_t visit = 0;    // the last search for a component that found it
    bool is_dirty = false;
    std::vector<Member> members;
  };
  struct Flow {
    std::span<const std::uint32_t> resources;
    std::int64_t rate = 0;
    std::uint32_t visit = 0;
    bool has_rate = false;  // while solving
  };
  struct Level {
    std::int64_t value;
    std::uint32_t resource;
  };

  [[nodiscard]] std::uint32_t& place(FlowIndex flow, std::size_t hop) { return places_[flow * stride_ + hop]; }
  void make_room(FlowIndex flow, std::size_t hops);
  void mark(std::uint32_t resource);
  void set_rate(FlowIndex flow, std::int64_t rate);
  bool solve_alone(FlowIndex flow);
  void find_component(std::uint32_t start);
  void fill_component();
  [[nodiscard]] static std::int64_t level(const Resource& resource);

  std::vector<Resource> resources_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> places_;  // by flow and hop: where it is among the resource's members
  std::size_t stride_ = 1;             // most hops of a flow so far
  std::vector<std::uint32_t> dirty_;
  std::vector<FlowIndex> changed_;
  std::uint32_t visit_ = 0;

  std::vector<std::uint32_t> component_;  // resources
  std::vector<Level> levels_;             // a heap; each is at most its resource's level
  std::vector<std::uint32_t> lowest_;     // the resources of a round
};

}  // namespace espalier::sim
