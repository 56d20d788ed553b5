#pragma once

// Tested by: tests/differential/machines/repeats_test.cpp

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "base/result.h"
#include "schedule/schedule.h"
#include "schedule/symmetry/symmetry.h"
#include "sim/compiled/repeats.h"
#include "sim/simulate.h"
#include "topology/topology.h"

namespace espalier::sim {

/// A schedule made ready to be simulated alone, as Simulator, of which only one part runs where the schedule repeats
/// (compiled/repeats.h) and nothing in the run tells its parts apart. Reports are those of the whole. Safe to share
/// between threads.
class RepeatingSimulator {
 public:
  /// The schedule and the topology must outlive it. `symmetry`: of the schedule, in the same order; null where none is
  /// known. Errors and cost as for Simulator::make_unverified.
  [[nodiscard]] static Result<RepeatingSimulator> make_unverified(const Schedule& schedule, const Topology& topology,
                                                                  const CopyEngines& engines,
                                                                  std::shared_ptr<const ScheduleSymmetry> symmetry);

  /// The same schedule on a network that differs in rates and latencies alone, as Simulator::on. Shares its part.
  [[nodiscard]] Result<RepeatingSimulator> on(const Topology& topology, const CopyEngines& engines) const;

  /// As Simulator::run.
  [[nodiscard]] Result<Report> run(const Options& options) const;

  /// As Simulator::run_until.
  [[nodiscard]] Result<std::optional<Report>> run_until(const Options& options, Picoseconds deadline) const;

  /// Of how many like parts such a run simulates one; 1: all.
  [[nodiscard]] std::uint32_t parts(const Options& options) const;

 private:
  /// The whole schedule, made by whoever needs it first.
  struct Whole {
    std::once_flag once;
    std::optional<Result<Simulator>> made;
  };

  RepeatingSimulator(const Schedule& schedule, const Topology& topology, const CopyEngines& engines,
                     std::shared_ptr<const ScheduleSymmetry> symmetry);
  [[nodiscard]] const Result<Simulator>& find_whole() const;
  [[nodiscard]] Report of_whole(Report of_part) const;
  [[nodiscard]] Result<void> make_part(std::shared_ptr<const Repeats> repeats);

  const Schedule* schedule_;
  const Topology* topology_;
  CopyEngines engines_;
  std::shared_ptr<const ScheduleSymmetry> symmetry_;
  std::shared_ptr<const Repeats> repeats_;  ///< Where it repeats on this network.
  std::optional<Simulator> part_;           ///< Then: of the part.
  std::unique_ptr<Whole> whole_ = std::make_unique<Whole>();
};

/// Of how many like parts a run would simulate one, for who has no simulator yet.
[[nodiscard]] std::uint32_t simulated_parts(const Schedule& schedule, const Topology& topology,
                                            const CopyEngines& engines, const ScheduleSymmetry* symmetry,
                                            const Options& options);

}  // namespace espalier::sim
