#pragma once

// Tested by: tests/unit/scenario/workload/job_test.cpp

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "base/units.h"
#include "schedule/collective.h"
#include "topology/topology.h"

namespace espalier::scenario {

using GroupId = Id<struct GroupTag>;    ///< A process group of a job.
using CallId = Id<struct CallTag>;      ///< One collective of a job.
using TaskId = Id<struct TaskTag>;      ///< Something that one rank does.
using MatrixId = Id<struct MatrixTag>;  ///< A traffic matrix that calls share.
using LabelId = Id<struct LabelTag>;    ///< A name that many tasks and calls share.

enum class TaskKind : std::uint8_t {
  compute,  ///< Keeps the rank's processor busy for a duration.
  wait,     ///< Lets a duration pass.
  call,     ///< The rank's part in a call: from when it takes part until it is through.
};

/// As a task's stream: it waits for no stream and starts as soon as it is ready.
inline constexpr std::uint16_t no_stream = 0xFFFF;

/// Something that one rank does on one of its streams. 24 bytes: a training step has millions.
struct Task {
  std::int64_t duration = 0;  ///< In picoseconds; of compute and wait.
  Rank rank;                  ///< Of the topology.
  CallId call;                ///< Of a call; none otherwise.
  LabelId label;
  std::uint16_t stream = 0;  ///< Which of the rank's streams; a stream does one task at a time. Or `no_stream`.
  TaskKind kind = TaskKind::compute;
};
static_assert(sizeof(Task) == 24);

/// One collective among the ranks of a group.
struct Call {
  Bytes size;  ///< Message size S.
  GroupId group;
  LabelId label;
  LabelId planner;  ///< Its name; none: what suits (plans.h).
  Bytes chunk;      ///< The largest; zero: that of the whole run.
  Rank root;        ///< Counted within the group; none where the kind has no root.
  MatrixId matrix;  ///< Of an all_to_all: unequal blocks; none: all are equal.
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::uint8_t element_size = 4;  ///< Bytes per element.
  /// A message that its sender, the root, does not keep back: it moves from the sender's taking part on, and waits at
  /// its destination until the receiver takes part. Of a broadcast between two ranks only.
  bool is_eager = false;
};

/// Process groups, collectives among them, and tasks of ranks with what they wait for: what a scenario runs. Flat
/// arrays of indices. Plain data: `check_job` says whether it can be run.
class Job {
 public:
  /// The group of these ranks of the topology; the same ranks in any order are the same group. Its ranks are numbered
  /// in topology order. Requires: no rank twice, at least one.
  GroupId add_group(std::vector<Rank> ranks);
  LabelId add_label(std::string_view text);
  CallId add_call(const Call& call);
  /// A traffic matrix, row by row (Collective::shares).
  MatrixId add_matrix(std::vector<std::int64_t> blocks);
  /// `after`: the tasks of the same rank that must be over before it is ready; later tasks may be named too.
  TaskId add_task(const Task& task, std::span<const TaskId> after);
  /// Makes room for about so many times as much as there is. Requires: at least once.
  void reserve(std::size_t times);

  [[nodiscard]] std::span<const Task> tasks() const { return tasks_; }
  [[nodiscard]] std::span<const Call> calls() const { return calls_; }
  [[nodiscard]] std::size_t group_count() const { return group_begins_.size() - 1; }
  [[nodiscard]] std::size_t matrix_count() const { return matrices_.size(); }
  [[nodiscard]] const std::vector<std::int64_t>& matrix(MatrixId id) const { return matrices_[id.index()]; }
  [[nodiscard]] std::size_t label_count() const { return labels_.size(); }
  [[nodiscard]] const Task& task(TaskId id) const { return tasks_[id.index()]; }
  [[nodiscard]] const Call& call(CallId id) const { return calls_[id.index()]; }
  [[nodiscard]] const std::string& label(LabelId id) const { return labels_[id.index()]; }
  /// The ranks of a group, ascending.
  [[nodiscard]] std::span<const Rank> ranks(GroupId id) const {
    return std::span(group_ranks_)
        .subspan(group_begins_[id.index()], group_begins_[id.index() + 1] - group_begins_[id.index()]);
  }
  /// The number of a rank in a group; none when it is not in it. Cost: O(log ranks).
  [[nodiscard]] Rank rank_in(GroupId group, Rank rank) const;
  /// What a task waits for.
  [[nodiscard]] std::span<const TaskId> after(TaskId id) const {
    return std::span(after_).subspan(after_begins_[id.index()],
                                     after_begins_[id.index() + 1] - after_begins_[id.index()]);
  }

  /// "task 12 'forward' of gpu3", for messages.
  [[nodiscard]] std::string describe(TaskId id, const Topology& topology) const;

 private:
  std::vector<Task> tasks_;
  std::vector<std::uint32_t> after_begins_{0};
  std::vector<TaskId> after_;
  std::vector<Call> calls_;
  std::vector<std::vector<std::int64_t>> matrices_;
  std::vector<std::uint32_t> group_begins_{0};
  std::vector<Rank> group_ranks_;
  std::map<std::vector<Rank>, GroupId> group_by_ranks_;
  std::vector<std::string> labels_;
  std::unordered_map<std::string, LabelId> label_by_text_;
};

/// Which task is whose part in which call. Made from a job that passes `check_job`.
class CallParts {
 public:
  explicit CallParts(const Job& job);
  /// By rank of the call's group.
  [[nodiscard]] std::span<const TaskId> tasks(CallId call) const {
    return std::span(tasks_).subspan(begins_[call.index()], begins_[call.index() + 1] - begins_[call.index()]);
  }
  /// The index of a rank's part among the parts of all calls.
  [[nodiscard]] std::size_t index(CallId call, Rank rank_in_group) const {
    return begins_[call.index()] + rank_in_group.index();
  }
  [[nodiscard]] std::size_t count() const { return tasks_.size(); }

 private:
  std::vector<std::uint32_t> begins_;
  std::vector<TaskId> tasks_;
};

/// Most tasks of a job, and most things that tasks wait for.
inline constexpr std::size_t max_tasks = std::size_t{1} << 26;
inline constexpr std::size_t max_dependencies = std::size_t{1} << 30;

/// Whether a job can be run on a topology: ids in range; durations and sizes not negative; a task waits for tasks of
/// its own rank, never in a circle; each rank of a call's group takes part in it exactly once. Errors: invalid_input or
/// too_large, naming task, call and rank. Cost: O(tasks + dependencies).
Result<void> check_job(const Job& job, const Topology& topology);

}  // namespace espalier::scenario
