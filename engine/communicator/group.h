#pragma once

// Tested by: tests/unit/engine/communicator/communicator_test.cpp

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "engine/communicator/captured_call.h"
#include "engine/communicator/communicator.h"
#include "engine/communicator/direct_call.h"
#include "engine/communicator/prepared_call.h"
#include "engine/communicator/stream_table.h"
#include "engine/executor/run_calls.h"
#include "engine/transport/transport.h"

namespace espalier::engine {

/// Whether the caller's buffers overlap: the call is in place.
bool is_in_place(const CallArguments& arguments, const RankProgram& program);

/// A point in a queue's work: behind all that was given to it before. No queue: there is nothing to wait for.
struct QueuePoint {
  DeviceQueue* queue = nullptr;
  std::uint64_t mark = 0;
};

/// Ranks of a job that call together: their connections, their programs, the count of their calls.
class Group {
 public:
  /// `members` are ranks of the job; all of them make the group at the same time.
  static Result<std::unique_ptr<Group>> make(std::shared_ptr<Job> job, std::vector<std::uint32_t> members,
                                             std::string name, ScheduleSource schedules);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  [[nodiscard]] std::uint32_t self() const { return self_; }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(members_.size()); }
  [[nodiscard]] const std::vector<std::uint32_t>& members() const { return members_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Tells the groups of a job apart; the same on all members.
  [[nodiscard]] std::uint64_t id() const { return id_; }
  /// Whether every member reaches every other's memory; the same on all.
  [[nodiscard]] bool shares_memory() const;
  void record(Recorder* recorder) { recorder_ = recorder; }

  /// The program of a call of this shape, compiled when it is the first. Asks no other rank.
  Result<PreparedCall*> prepare(const CallArguments& arguments);

  /// Begins a call: the execution is then ready to run. Waits for the caller's own work first. Errors: invalid_input
  /// for buffers that cannot be; unavailable when that work does not come to an end.
  Result<RunningCall> begin(const CallArguments& arguments, QueuePoint callers_work);
  /// Ends the call that was begun. Errors: unavailable when the device does not come to an end, or the job failed.
  Result<void> finish(const CallArguments& arguments);
  /// Gives a call to the graph for which its queue captures; all members do. Errors: unsupported where it would need
  /// the host, with the reason; those of `begin`.
  Result<void> capture(const CallArguments& arguments);
  /// How those calls went that are done. Errors: unavailable past the deadline.
  [[nodiscard]] Result<void> check_captured() const;
  /// After a call that failed: what carries it out touches no memory any more.
  void abandon();
  /// "call 3: all_reduce of 1024 float, sum (group world)": the call that was begun last.
  [[nodiscard]] std::string describe_running() const;

 private:
  Group(std::shared_ptr<Job> job, std::vector<std::uint32_t> members, std::string name, ScheduleSource schedules);
  /// Joins the job's transports, and finds out which one carries the streams of each member.
  Result<void> join_transports();
  /// Waits until the members have all that was sent to them. Gives up when they leave, the job fails, or the time is
  /// up.
  void settle();
  Result<void> check(const CallArguments& arguments, const RankProgram& program) const;
  /// The program of a call with counts per peer; `arguments` then begin at the first byte that it uses.
  Result<PreparedCall*> prepare_direct(CallArguments& arguments, QueuePoint callers_work);
  Result<void> make_direct();
  /// Sends from a copy of the blocks.
  Result<void> keep_blocks(CallArguments& arguments, QueuePoint callers_work);
  [[nodiscard]] Bytes default_chunk() const;
  Result<RunningCall> begin(const CallArguments& called, QueuePoint callers_work, CallHeader& header);
  /// What the next call says, as far as its arguments go.
  CallHeader header_of(const CallArguments& arguments);
  Result<void> capture(const CallArguments& arguments, CallHeader& header);
  Result<std::unique_ptr<CapturedCall>> make_captured(const PreparedCall& prepared, const CallArguments& arguments);
  [[nodiscard]] Error why_not_captured(const PreparedCall& prepared) const;
  /// All members compare their calls before the first call of a shape: ranks that call different things may have no
  /// stream in common on which they would notice.
  Result<void> agree(const CallHeader& header);
  Result<void> connect(PreparedCall& call);
  Result<void> await_window();
  /// Waits for the device's work up to a point.
  Result<void> await_device(QueuePoint point);
  /// A moment of a wait. Errors: unavailable when the job failed.
  Result<void> wait_a_moment();
  [[nodiscard]] bool is_too_late(std::int64_t begun_ns) const;
  [[nodiscard]] Error in_call(const CallHeader& header, Error error) const;
  /// A buffer of a call that was looked up among the registered memories, and when.
  struct FoundPlace {
    const void* data = nullptr;
    std::int64_t bytes = 0;
    std::uint64_t generation = 0;  ///< Of the registry.
    MemoryPlace place;
  };
  const MemoryPlace& place_of(const void* data, std::int64_t bytes, FoundPlace& last) const;
  /// Memory of the calls themselves, in one space; as much as the largest of them took.
  struct Scratch {
    std::byte* data = nullptr;
    std::int64_t bytes = 0;
    FoundPlace found;
  };
  Result<void> reserve(Scratch& scratch, std::int64_t bytes, MemorySpace space);
  /// Whether the rank's device reaches the caller's buffers.
  Result<void> check_reach(const CallArguments& arguments, const RankProgram& program, const Buffers& buffers) const;
  /// The caller's buffers, and scratch memory beside them: on the device where one of the buffers is.
  Result<Buffers> find_buffers(const CallArguments& arguments, const RankProgram& program);
  /// Sends from a copy of the input: in place the input itself is added to while peers still read it.
  Result<void> keep_input(const RankProgram& program, Buffers& buffers);

  /// The shape of a call, as far as the program depends on it.
  struct Shape {
    CollectiveKind kind = CollectiveKind::all_reduce;
    std::uint32_t root = 0;
    std::size_t count = 0;
    std::int64_t element_size = 1;
    std::span<const std::int64_t> shares;  ///< Of a prepared call: its own.

    friend bool operator==(const Shape& a, const Shape& b) {
      return a.kind == b.kind && a.root == b.root && a.count == b.count && a.element_size == b.element_size &&
             std::ranges::equal(a.shares, b.shares);
    }
    friend bool operator<(const Shape& a, const Shape& b) {
      const auto numbers = [](const Shape& shape) {
        return std::tuple(shape.kind, shape.root, shape.count, shape.element_size);
      };
      if (numbers(a) != numbers(b)) return numbers(a) < numbers(b);
      return std::ranges::lexicographical_compare(a.shares, b.shares);
    }
  };

  std::shared_ptr<Job> job_;
  std::vector<std::uint32_t> members_;
  std::uint32_t self_ = 0;
  std::string name_;
  std::uint64_t id_ = 0;
  ScheduleSource schedules_;
  Scratch host_scratch_;
  Scratch device_scratch_;
  Scratch host_input_;  ///< Copies of inputs (keep_input).
  Scratch device_input_;
  std::vector<std::unique_ptr<GroupTransport>> transports_;  ///< In the job's order.
  StreamTable streams_;
  /// The least recently used makes room for a new one: the same on every member, since all make the same calls.
  void forget_oldest();
  using PreparedCalls = std::map<Shape, std::unique_ptr<PreparedCall>>;
  PreparedCalls prepared_;
  PreparedCalls::iterator last_ = prepared_.end();   ///< What was called last is mostly called again.
  std::map<const Schedule*, std::uint64_t> hashes_;  ///< Of schedules that `prepared_` keeps.
  std::unique_ptr<DirectCall> direct_;               ///< Of all calls with counts per peer; null before the first.
  std::vector<std::unique_ptr<CapturedCall>> captured_;
  PreparedCall* running_ = nullptr;
  CallHeader running_header_;
  std::uint64_t sequence_ = 0;
  FoundPlace found_send_;
  FoundPlace found_receive_;
  Recorder* recorder_ = nullptr;
};

/// How many shapes of calls a group keeps prepared.
inline constexpr std::size_t max_prepared = 256;

/// A call of a group that is to be launched with others.
struct NotedCall {
  Group* group = nullptr;  ///< Null for a pair that sends and receives, which `find_pair` gives.
  CallArguments arguments;
  std::tuple<std::string, std::uint32_t, std::uint32_t> pair = {};  ///< The group's name, from, to.
  std::function<Result<Group*>()> find_pair = {};
};

/// What the caller has given the queue of a call so far.
inline QueuePoint callers_work_of(const CallArguments& arguments) {
  if (arguments.queue == nullptr) return {};
  return {arguments.queue, arguments.queue->mark_stream()};
}

/// What calls of the job run in.
RunContext context_of(Job& job);

/// Captures a call into the graph for which its queue captures.
Result<void> capture_call(Job& job, Group& group, const CallArguments& arguments);

/// Runs one call of a group to its end, after the caller's own work.
Result<void> run_call(Job& job, Group& group, const CallArguments& arguments, QueuePoint callers_work);

/// Launches calls together; those of one group run one after the other.
Result<void> run_noted(Job& job, std::vector<NotedCall> calls);

/// The schedule source of pairs that send and receive: a broadcast from the first of two.
Result<SourcedSchedule> broadcast_to_one(const Collective& collective, Bytes size);

/// The schedule source of groups that tell each other counts: each block of an all_to_all from its rank to where it
/// goes, or in any other way.
Result<SourcedSchedule> one_block_each(const Collective& collective, Bytes size);

}  // namespace espalier::engine
