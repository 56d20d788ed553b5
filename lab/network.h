#pragma once

// Tested by: tests/lab/network_test.cpp

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/addresses.h"
#include "lab/namespaces/keeper.h"
#include "lab/wiring.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier::lab {

/// The most nodes that a lab has; each is a network namespace.
inline constexpr std::size_t max_nodes = 1024;

/// What the devices of one link have sent, headers included.
struct LinkCount {
  std::int64_t bytes = 0;
  std::int64_t packets = 0;
};

/// A topology as a network of this machine: namespaces, shaped cables and static routes (lab/wiring.h). It goes away
/// with this object, and also when this process is killed (lab/namespaces/keeper.h).
/// Not thread-safe.
class LabNetwork {
 public:
  /// Builds the network of a scaled topology (lab/scale.h); latencies are built only where they are not zero, and need
  /// netem. The topology must outlive it. Requires: one lab at a time is made in a process.
  /// Errors: too_large past `max_nodes`; unavailable when the kernel or the rights do not allow it, with the words of
  /// ip(8) or tc(8).
  /// Cost: two short processes per node, about 5 ms each.
  [[nodiscard]] static Result<LabNetwork> make(const Topology& scaled);

  /// Adds the routes of a schedule of this topology, and gives their addresses by route id. Routes over the same links
  /// as earlier ones have the same addresses.
  /// Errors: unsupported when the schedule has relays or a route passes a node twice; too_large when a rank's addresses
  /// are used up; unavailable with the words of ip(8).
  Result<std::vector<RouteAddresses>> add_routes(const Schedule& schedule);

  /// The namespace that a rank runs in (lab/process.h: run_in_namespace).
  [[nodiscard]] std::string name_space(Rank rank) const { return wiring_->name_space(topology_->node_of(rank)); }
  /// Where a rank is reached over cables of their own, unshaped, for what is not data (rendezvous).
  [[nodiscard]] std::string control_address(Rank rank) const { return addresses_.control_address(rank); }
  /// A namespace that reaches all control addresses, for a program that is no rank, and its address.
  [[nodiscard]] std::string hub_name_space() const { return wiring_->hub(); }
  [[nodiscard]] std::string hub_address() const { return AddressPlan::hub_address(); }
  /// What all its namespaces' names begin with.
  [[nodiscard]] std::string prefix() const { return keeper_.job().prefix(); }

  /// What each link has carried, by link id.
  [[nodiscard]] Result<std::vector<LinkCount>> counts() const;

  /// Tears it down now. Errors: unavailable, with the tools' own words.
  Result<void> close() { return keeper_.finish(); }
  /// Leaves the namespaces for looking around; `clean_leftovers` removes them once this process has ended.
  void keep() { keeper_.let_go(); }

 private:
  LabNetwork(const Topology& scaled, AddressPlan addresses, Keeper keeper);
  Result<void> build();
  Result<void> add_route(const Route& route, const RouteAddresses& ends, std::vector<std::string>& lines) const;
  Result<void> set_kernel_options(const std::string& name_space, bool forwards) const;

  const Topology* topology_;
  std::unique_ptr<Wiring> wiring_;
  AddressPlan addresses_;
  Keeper keeper_;
  std::map<std::vector<LinkId>, RouteAddresses> routes_;
};

}  // namespace espalier::lab
