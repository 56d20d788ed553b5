#pragma once

// Tested by: tests/unit/planners/bounds/flow_bound_test.cpp

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "planners/bounds/bound_prices.h"
#include "planners/bundled_network.h"
#include "schedule/bound.h"
#include "schedule/collective.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier::planners {

/// By node: whether it forwards nothing, whoever plans: it is no rank, and at most one other node is beside it that is
/// none of these itself. A NIC without its cable is one; a GPU that is no rank, where nothing passes those.
std::vector<bool> find_dead_ends(const Topology& topology, bool passes_idle_gpus = true);

/// Larger networks have no canonical order.
inline constexpr std::uint32_t max_canonical_ranks = 4096;

/// A network with nodes, ranks and links in an order that depends on the network alone, without dead ends: networks
/// that differ in names and numbers alone, such as a machine without one or another of its like cables, become the
/// same, and so do those without a NIC or without its cable. So what is planned on it takes as long whichever of like
/// parts failed.
///
/// Ranks of a machine follow each other along the widest links between them; those at one place of different machines
/// are near each other. Nodes keep their names, for messages; nothing that plans may go by them.
class CanonicalNetwork {
 public:
  /// Nothing where the network is whole, as far as it shows: its own order is as good, and is the one that software has
  /// its ranks in; one that is altered (Topology::is_altered) shows it also by nodes that forward and have fewer links
  /// than their like. Nothing of a network as it came either, but where `also_unaltered`; nothing
  /// for send_recv and a traffic matrix either, whose ranks are told apart by their numbers, and past 4,096 ranks. The
  /// collective's root and shares tell ranks apart. The topology must outlive it. Cost: find_alike; where the network
  /// is not whole, canonical_numbers.
  static std::unique_ptr<const CanonicalNetwork> make(const Topology& topology, Paths paths,
                                                      const Collective& collective, bool also_unaltered,
                                                      bool is_altered);

  [[nodiscard]] const BundledNetwork& network() const { return *network_; }
  /// A collective with this root and these shares among the ranks in this order.
  [[nodiscard]] Collective place(const Collective& collective) const;
  /// What was planned here, on the network itself.
  [[nodiscard]] Schedule restore(const Schedule& planned) const;
  [[nodiscard]] Bound restore(Bound bound) const;
  [[nodiscard]] std::vector<BoundPrice> restore(std::vector<BoundPrice> prices) const;

 private:
  CanonicalNetwork(const Topology& topology, Paths paths, const Collective& collective, bool passes_idle_gpus);

  [[nodiscard]] Rank end_of(Rank end) const;
  [[nodiscard]] std::vector<SliceId> place_slices(const Schedule& planned, Schedule& restored) const;

  Rank root_;                                        ///< In the network's own order, as the next.
  std::vector<std::int64_t> shares_;                 ///< By rank.
  std::vector<NodeId> nodes_;                        ///< By node here: which it is.
  std::vector<LinkId> links_;                        ///< By link here, the same.
  std::vector<Rank> ranks_;                          ///< By rank here, the same.
  std::vector<std::pair<NodeId, NodeId>> attached_;  ///< Dead ends, which are not here, and where each is attached.
  std::unique_ptr<const Topology> topology_;
  std::unique_ptr<const BundledNetwork> network_;
};

/// In which order of nodes a collective is planned on a network: the canonical one, or the network's own.
class PlanningOrder {
 public:
  /// The network must outlive it. `also_unaltered` as for CanonicalNetwork, `of_machine` as for
  /// BundledNetwork::canonical.
  PlanningOrder(const BundledNetwork& asked, const Collective& collective, bool also_unaltered = false,
                bool of_machine = false)
      : asked_(asked),
        is_of_machine_(of_machine),
        canonical_(asked.canonical(collective, also_unaltered, of_machine)),
        network_(canonical_ != nullptr ? canonical_->network() : asked),
        collective_(canonical_ != nullptr ? canonical_->place(collective) : collective) {}

  [[nodiscard]] const BundledNetwork& network() const { return network_; }
  [[nodiscard]] const Collective& collective() const { return collective_; }
  /// A schedule, a bound or prices of this order, on the network that was asked for.
  template <class Planned>
  [[nodiscard]] Planned restore(Planned planned) const {
    if (canonical_ == nullptr) return planned;
    if constexpr (std::is_same_v<Planned, Schedule>) {
      Schedule restored = canonical_->restore(planned);
      return is_of_machine_ ? restored : asked_.restore_paths(std::move(restored));
    } else {
      return canonical_->restore(std::move(planned));
    }
  }

 private:
  const BundledNetwork& asked_;
  bool is_of_machine_;
  const CanonicalNetwork* canonical_;
  const BundledNetwork& network_;
  Collective collective_;
};

}  // namespace espalier::planners
