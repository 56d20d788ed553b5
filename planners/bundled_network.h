#pragma once

// Tested by: tests/property/planners/bundled_network_test.cpp

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "planners/bounds/bound_prices.h"
#include "planners/planning_problem.h"
#include "planners/used_paths.h"
#include "schedule/schedule.h"
#include "topology/bundles.h"
#include "topology/topology.h"

namespace espalier::planners {

class CanonicalNetwork;

/// A network with one link for each bundle of parallel ones (topology/bundles.h): what all planners plan on, and what
/// bounds are computed on.
class BundledNetwork {
 public:
  /// Not explicit, so that plans and bounds of a topology can be asked for. It must outlive this. With the paths of
  /// software, plans are made on what UsedPaths leaves; bounds count every path and are not for that.
  BundledNetwork(const Topology& topology, Paths paths = Paths::any);
  ~BundledNetwork();
  BundledNetwork(const BundledNetwork&) = delete;
  BundledNetwork& operator=(const BundledNetwork&) = delete;

  [[nodiscard]] const Topology& topology() const { return topology_; }
  [[nodiscard]] bool has_every_path() const { return !paths_; }
  /// With the paths that plans may take: its ranks are those of `topology()`.
  [[nodiscard]] const Topology& planned_on() const { return planned_on_; }
  /// On the network of those paths, with one link for each bundle.
  [[nodiscard]] const PlanningProblem& problem() const { return problem_; }
  /// The network as its links are reported, to plan on as software does; this one where that is the same.
  [[nodiscard]] const BundledNetwork& as_reported() const;
  /// What planned_on has in the place of this network, put back.
  [[nodiscard]] Schedule restore_paths(Schedule planned) const;
  /// planned_on, or all of `topology()` (without idle GPUs) with the paths of software, in the order in which such a
  /// collective is planned; null where that is its own.
  [[nodiscard]] const CanonicalNetwork* canonical(const Collective& collective, bool also_unaltered,
                                                  bool of_machine = false) const;
  /// What is planned for the problem, spread over the strands of its bundles.
  [[nodiscard]] Schedule lift(Schedule planned) const;
  /// Of its bundle's price each strand has the part that it has of the bundle's rate.
  [[nodiscard]] std::vector<BoundPrice> lift(std::vector<BoundPrice> prices) const;

 private:
  struct KnownCanonical {
    Collective collective;
    bool also_unaltered = false;
    bool of_machine = false;
    std::unique_ptr<const CanonicalNetwork> network;
  };

  const Topology& topology_;
  std::optional<UsedPaths> paths_;  ///< Where not every path is taken.
  const Topology& planned_on_;
  Bundles bundles_;
  std::optional<Topology> bundled_;  ///< Where some links are parallel.
  PlanningProblem problem_;
  std::optional<Topology> reported_;                           ///< Where it differs.
  mutable std::unique_ptr<const BundledNetwork> as_reported_;  ///< Made when first asked for.
  mutable std::mutex mutex_;
  mutable std::deque<KnownCanonical> canonical_;  ///< Each made when first asked for.
};

}  // namespace espalier::planners
