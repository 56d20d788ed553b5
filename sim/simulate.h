#pragma once

// Tested by: tests/unit/sim/simulate_test.cpp

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "schedule/schedule.h"
#include "schedule/timeline/run_report.h"
#include "sim/core/endpoints.h"
#include "sim/critical_path/critical_path.h"
#include "sim/model.h"
#include "topology/topology.h"

namespace espalier::sim {

struct Options {
  Bytes size;                     ///< Message size S.
  Bytes chunk;                    ///< Largest chunk; at least one element.
  std::int64_t element_size = 4;  ///< Bytes per element.
  bool record_timeline = false;
  bool record_critical_path = false;
  bool record_sharing = false;  ///< Also whom the critical path waited for, with it; the run is run twice for that.
  ModelKind model = ModelKind::link;
  Picoseconds launch;                    ///< When the ranks begin; counted in the time elapsed.
  Conditions conditions;                 ///< What is not as the topology says.
  std::int32_t payload_ppm = 1'000'000;  ///< As RunOptions.
  std::uint32_t ahead = 0;               ///< As RunOptions.

  void set(const Pacing& pacing) {
    chunk = pacing.chunk;
    ahead = pacing.ahead;
  }

  /// Takes over launch, payload and conditions; copy engines are the Simulator's.
  void set(const Circumstances& circumstances) {
    launch = circumstances.endpoints.launch;
    payload_ppm = circumstances.endpoints.payload_ppm;
    conditions = circumstances.conditions;
  }
};

/// Whom the critical path waited for: who was served before it, or in the model fair with whom it shared what held it
/// back; and how much longer it took for that.
struct SharedTime {
  LinkId link;  ///< None for a node's backplane, reduction or copy engine.
  NodeId node;
  Rank src;  ///< The others' transfers: from whom to whom, ranks or relays.
  Rank dst;
  Picoseconds time;
  friend bool operator==(const SharedTime&, const SharedTime&) = default;
};

struct Report : RunReport {
  std::vector<LinkUse> links;               ///< By link id.
  std::uint64_t events = 0;                 ///< How many times a link, backplane or reduction served a chunk.
  std::vector<CriticalStep> critical_path;  ///< From the launch to the end.
  std::uint32_t window_waits = 0;           ///< CriticalPath::window_waits.
  std::vector<PathPart> path_parts;  ///< The launch and the critical path in pieces; they add up to the time elapsed.
  std::vector<SharedTime> shared;    ///< Most first. Their sum is at most what the critical path was queued.
};

/// Errors: invalid_input when the launch is out of range or the conditions are wrong.
Result<void> check_options(const Options& options, const Topology& topology);

/// Errors: invalid_input past max_copy_engines, or when their rate is negative.
Result<void> check_engines(const CopyEngines& engines);

/// A schedule made ready to be simulated alone. What does not depend on the size is worked out once, so that many sizes
/// cost less than as many calls of `simulate`. Safe to share between threads.
class Simulator {
 public:
  /// Both must outlive the simulator.
  /// Errors: invalid_input when the schedule does not pass `verify` on this topology, or the copy engines are past
  /// their limits. Cost: of `verify` and of `make_unverified`.
  [[nodiscard]] static Result<Simulator> make(const Schedule& schedule, const Topology& topology,
                                              const CopyEngines& engines = {});

  /// As `make`, of a schedule that nothing is proven of here: planners verify what they make, and a part of a schedule
  /// does not do what the whole promises. `places` as for CompiledSchedule: nodes and links that stand for others take
  /// what goes over these (planners/symmetric).
  /// Errors: invalid_input when an id or route is not of this topology, or the copy engines are past their limits.
  /// Cost: as Dependencies; 16 bytes per transfer beside it, and 32 per lane.
  [[nodiscard]] static Result<Simulator> make_unverified(const Schedule& schedule, const Topology& topology,
                                                         const CopyEngines& engines = {}, const Parts& places = {});

  /// The same schedule on a network that differs in rates and latencies alone; where that changes neither what a route
  /// passes nor what its messages cost, nothing is worked out again. Errors as for `make_unverified`; not of a
  /// simulator with places.
  [[nodiscard]] Result<Simulator> on(const Topology& topology, const CopyEngines& engines = {}) const;

  Simulator(Simulator&&) noexcept;
  Simulator& operator=(Simulator&&) noexcept;
  ~Simulator();

  /// Deterministic: the same input gives the same report.
  /// Errors: too_large when the simulated time would not fit 2^61 ps, or when the chunks are past the limits of
  /// sim/limits.h; invalid_input when the size does not fit the layout, a chunk is smaller than an element or the
  /// conditions are wrong; infeasible when a link that the schedule uses dies for good before it is done.
  /// Cost: O(log of the time's bits) per chunk and link expected; 40 bytes per transfer, and what is recorded.
  [[nodiscard]] Result<Report> run(const Options& options) const;

  /// The same, or nothing: a run is given up once it is certain that it takes longer than the deadline. Requires:
  /// nothing is recorded.
  [[nodiscard]] Result<std::optional<Report>> run_until(const Options& options, Picoseconds deadline) const;

 private:
  struct Prepared;
  explicit Simulator(std::unique_ptr<const Prepared> prepared);
  [[nodiscard]] Result<std::optional<Report>> simulate(const Options& options, Picoseconds deadline) const;

  std::unique_ptr<const Prepared> prepared_;
};

/// Makes a Simulator and runs it once. Errors as there.
Result<Report> simulate(const Schedule& schedule, const Topology& topology, const Options& options,
                        const CopyEngines& engines = {});

/// The same by Simulator::make_unverified.
Result<Report> simulate_unverified(const Schedule& schedule, const Topology& topology, const Options& options,
                                   const CopyEngines& engines = {});

/// The same with Simulator::run_until.
Result<std::optional<Report>> simulate_unverified_until(Picoseconds deadline, const Schedule& schedule,
                                                        const Topology& topology, const Options& options);

}  // namespace espalier::sim
