#pragma once

// Tested by: tests/unit/sim/fair/fair_model_test.cpp

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "sim/core/workload.h"
#include "sim/model.h"
#include "sim/run.h"

namespace espalier::sim {

/// What models share: runs that are added, entered, given up and over. Memory goes with the runs under way: those that
/// are over are used again. How chunks move is the derived model's.
class RunningModel : public Model {
 public:
  [[nodiscard]] Result<RunId> add(const CompiledSchedule& compiled, const RunOptions& options) final;
  void enter(RunId run, Rank rank, std::int64_t time) final;
  void enter_all(RunId run, std::int64_t time) final;
  void abort(RunId run) final;
  [[nodiscard]] std::uint64_t events() const override { return events_; }

  [[nodiscard]] Result<void> record(RunId run) final;
  [[nodiscard]] std::unique_ptr<History> take_history(RunId run) final;

  /// As `add`, for what was checked before.
  [[nodiscard]] RunId add_checked(const CompiledSchedule& compiled, Chunking chunking, std::int32_t payload_ppm,
                                  std::uint32_t ahead);

  /// The time so far; below 0 before anything happened.
  [[nodiscard]] std::int64_t now() const { return now_; }

  /// When the last byte of all runs so far arrived.
  [[nodiscard]] std::int64_t elapsed() const { return elapsed_; }

 protected:
  RunningModel(ModelKind kind, const Network& network, const Conditions& conditions);

  /// A run was added.
  virtual void note_added(const Run& run) = 0;
  /// A run was given up.
  virtual void note_given_up(const Run& /*run*/) {}
  /// A rank enters a run that is not put aside.
  virtual void note_entry(RunId /*run*/, Rank /*rank*/, std::int64_t /*time*/) {}
  /// A run is over, or was given up and the model has none of its chunks any more.
  virtual void note_over(const Run& /*run*/) {}
  /// Whether a new run is put aside: it begins by `begin`, or never.
  virtual bool put_aside(RunId /*run*/, const CompiledSchedule& /*compiled*/, const RunOptions& /*options*/) {
    return false;
  }
  /// A rank enters a run. Whether it is still put aside.
  virtual bool enter_aside(RunId /*run*/, Rank /*rank*/, std::int64_t /*time*/) { return false; }
  /// A run that was put aside is simulated after all.
  virtual void take_back(RunId /*run*/) {}
  /// Sends the lane's next chunk when all it waits for is known, or lets the lane wait for what is not.
  virtual void hand_over(Run& run, LaneIndex lane) = 0;

  /// One chunk of a run is not the model's any more. The run is let go when it was given up and this was the last one.
  void drop_chunk(Run& run);
  /// Lets a run go when nothing is left of it to do.
  void let_go_if_over(Run& run) {
    if (run.is_over()) let_go(run);
  }
  [[nodiscard]] bool has_runs() const { return under_way_ > 0; }
  [[nodiscard]] const Run& run_of(RunId id) const { return *runs_[id.index()]; }
  /// A run that was put aside begins as it would have when it was added.
  Run& begin_aside(RunId id, const CompiledSchedule& compiled);
  /// A run that was put aside is over.
  void forget_aside(RunId id) { aside_.erase(id); }

  const Network& network_;
  std::vector<RankEnd> ended_;  // not yet reported
  std::int64_t now_ = -1;
  std::int64_t elapsed_ = 0;
  std::uint64_t events_ = 0;

 private:
  struct Cut {
    Chunking chunking;
    Workload work;
  };
  struct CutKey {
    const CompiledSchedule* compiled;
    std::int64_t size, chunk, element_size;
    std::int32_t payload_ppm;
    std::uint32_t ahead;
    auto operator<=>(const CutKey&) const = default;
  };

  Result<const Cut*> find_cut(const CompiledSchedule& compiled, const RunOptions& options);
  /// A run that was put aside, as it was added.
  struct Added {
    const Cut* cut = nullptr;
    std::int32_t payload_ppm = 0;
    std::uint32_t ahead = 0;
    std::uint32_t first_order = 0;
    std::uint32_t ranks = 0;
  };
  Run& begin(RunId id, const CompiledSchedule& compiled, Chunking chunking, std::int32_t payload_ppm,
             std::uint32_t ahead, std::uint32_t first_order);
  Run* find_to_enter(RunId id, std::int64_t time);
  void let_go(Run& run) {
    note_over(run);
    spare_.push_back(std::move(runs_[run.id().index()]));
    --under_way_;
  }

  ModelKind kind_;
  WorkLimit limit_;
  std::map<CutKey, Cut> cuts_;
  std::map<RunId, Added> aside_;                         // of runs that were put aside
  std::vector<std::unique_ptr<Run>> runs_;               // by id; null when over
  std::vector<std::unique_ptr<Run>> spare_;              // over, for use by later ones
  std::map<RunId, std::unique_ptr<History>> histories_;  // of the runs that are recorded
  std::size_t under_way_ = 0;                            // runs that are not over
  std::uint64_t next_order_ = 0;
};

}  // namespace espalier::sim
