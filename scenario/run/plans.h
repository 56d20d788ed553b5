#pragma once

// Tested by: tests/unit/scenario/run/plans_test.cpp

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planners/chunking.h"
#include "planners/used_paths.h"
#include "scenario/workload/footprint.h"
#include "scenario/workload/job.h"
#include "schedule/chunking.h"
#include "sim/compiled/compiled_schedule.h"

namespace espalier::scenario {

/// A schedule as it was planned on a footprint; all groups of one shape share it.
struct PlannedSchedule {
  Schedule schedule;
  planners::ChunkModel chunks;
  std::string planner;
  std::optional<Pacing> pacing;  ///< Of "auto": with which it was fastest, alone.
};

/// How a group does a collective: a schedule of its shape, made ready on its own links.
struct Plan {
  const PlannedSchedule* planned = nullptr;
  std::vector<LinkId> links;  ///< Of the network, that it uses, ascending.
  std::unique_ptr<const sim::CompiledSchedule> compiled;

  [[nodiscard]] bool uses(LinkId link) const;
};

/// Plans each collective of each group once, and once only for all groups of one shape. Where links are dead, those
/// plans that use them are made anew around them; the others stay.
///
/// Planners: a call names one, "auto" (of all planners what simulates fastest alone at its size), or "balanced"
/// (balance where ranks are in several boxes, else as without). Without, a broadcast between two ranks takes their best
/// route (of equal ones pairs in different hosts take different ones), and others use the first of ring, tree, pairwise
/// and flat that makes the collective.
class Plans {
 public:
  /// Both must outlive the plans.
  Plans(const Topology& topology, const sim::Network& network, planners::Paths paths = planners::Paths::any);

  /// The plan for a call, around the links that are dead now. It lives as long as this object.
  /// Requires: a group of at least two ranks; always the same job, whose matrices keys name.
  /// Errors: those of the planners; infeasible when no way is left. They name the call.
  [[nodiscard]] Result<const Plan*> find(const Job& job, CallId call);

  /// The plan that moves bytes from one rank to another on their best route.
  [[nodiscard]] Result<const Plan*> find_pair(Rank src, Rank dst);

  void set_dead(LinkId link, bool is_dead);
  [[nodiscard]] bool is_dead(LinkId link) const { return !dead_.empty() && dead_[link.index()]; }
  [[nodiscard]] bool uses_dead(const Plan& plan) const;

  [[nodiscard]] std::size_t plan_count() const { return plans_.size(); }
  [[nodiscard]] std::size_t shape_count() const { return shapes_.size(); }

 private:
  /// What is planned for: `size` counts only where the choice depends on it.
  struct Key {
    std::vector<Rank> ranks;
    CollectiveKind kind = CollectiveKind::all_reduce;
    Rank root;
    std::string planner;
    std::int64_t size = 0;
    std::int64_t element_size = 0;
    std::uint32_t variant = 0;  ///< Of equally good routes.
    MatrixId matrix;            ///< Of the job that runs; none: blocks are equal.
    auto operator<=>(const Key&) const = default;
  };
  /// A shape with its schedules.
  struct Shape {
    Topology topology;
    std::map<Key, std::unique_ptr<const PlannedSchedule>> schedules;
  };

  static bool is_direct(const Key& key);
  using Blocks = std::vector<std::int64_t>;  ///< Of the key's matrix; empty without.
  [[nodiscard]] Result<std::unique_ptr<const PlannedSchedule>> plan_shape(const Key& key, const Blocks& blocks,
                                                                          const Topology& topology) const;
  Result<const Plan*> find(Key key, const Blocks& blocks);
  Result<const Plan*> make(const Key& key, const Blocks& blocks, const std::vector<bool>& dead);

  const Topology& topology_;
  const sim::Network& network_;
  planners::Paths paths_;
  std::vector<std::uint32_t> variants_;  ///< By rank: the number of its host and its own number there, added up.
  std::vector<bool> dead_;               ///< By link; empty while all are alive.
  std::map<std::string, Shape> shapes_;
  std::map<Key, const Plan*> whole_;    ///< Made with all links alive.
  std::map<Key, const Plan*> damaged_;  ///< Made around the links that are dead now.
  std::vector<std::unique_ptr<const Plan>> plans_;
};

}  // namespace espalier::scenario
