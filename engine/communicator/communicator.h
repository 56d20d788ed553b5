#pragma once

// Tested by: tests/unit/engine/communicator/communicator_test.cpp

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/element.h"
#include "base/result.h"
#include "engine/communicator/job.h"
#include "engine/executor/recorder.h"
#include "schedule/collective.h"
#include "schedule/schedule_source.h"

namespace espalier {

/// An all_to_all's blocks in a buffer, in elements: one for each rank, in the ranks' order. They stay as they are until
/// the call ends.
struct BlockCounts {
  std::span<const std::int64_t> counts = {};
  /// Where each begins, counted from the buffer's beginning. None: one after the other.
  std::span<const std::int64_t> displacements = {};
};

/// A collective and the buffers of one rank, in NCCL's conventions (schedule/collective.h). `count` is the message size
/// S in elements: for all_gather, reduce_scatter, gather, scatter and all_to_all that of all shards together.
/// Send and receive buffers may be the same place ("in place"): equal for all_reduce, broadcast and reduce; the own
/// shard's place in the larger buffer for all_gather, reduce_scatter, gather and scatter. Any other overlap is refused.
/// A buffer that the rank does not need (reduce: the receive buffer of others than the root) may be null.
///
/// An all_to_all may have counts per peer (MPI_Alltoallv's meaning): what a rank sends to another is what that one
/// receives from it, else the call fails on both with both counts. `count` means nothing then. Blocks may lie in any
/// order; those received do not overlap each other; where they overlap those sent, the call works from a copy of them.
struct CallArguments {
  CollectiveKind kind = CollectiveKind::all_reduce;
  const void* send = nullptr;
  void* receive = nullptr;
  std::size_t count = 0;
  ElementType type = ElementType::float32;
  ReduceOperation operation = ReduceOperation::sum;
  std::uint32_t root = 0;
  /// Unequal shards of all_gather, reduce_scatter, gather and scatter: a whole number per rank, the same on all ranks;
  /// they stay as they are until the call ends. Rank r's shard is shares[r] of their sum, to within an element
  /// (deal_elements in schedule/parts.h); exactly as many elements where `count` is the sum. None: equal shards.
  std::span<const std::int64_t> shares = {};
  /// A queue of the rank's device that the caller works on the buffers with. The call begins when the work is done that
  /// the queue was given before; work that it is given after `run` or `start` begins when the call has ended.
  engine::DeviceQueue* queue = nullptr;
  /// Counts per peer of an all_to_all.
  BlockCounts send_blocks = {};
  BlockCounts receive_blocks = {};

  [[nodiscard]] bool has_counts() const { return !send_blocks.counts.empty() || !receive_blocks.counts.empty(); }
};

class CallHandle;

/// Ranks that run collectives together: one object per rank and group of ranks.
///
/// All members make the same calls in the same order; a rank that does not is found out at the first one, and the call
/// fails on all. Any failure (a rank that died or stopped, a broken connection, a disagreement) ends the call on every
/// rank within the timeout, with an error that names operation, call, group and peer; the whole job is then of no more
/// use, and the process can join a new one. Buffers are as they happen to be then.
///
/// One thread calls at a time; `abort` may come from any.
class Communicator {
 public:
  /// Joins a job; the communicator of all its ranks. Collective.
  /// `schedules` gives the schedule of each collective and size. Errors: those of engine::Job::join.
  static Result<std::unique_ptr<Communicator>> join(JobOptions options, ScheduleSource schedules);

  /// A communicator of some members, which all call this with the same arguments; ranks are numbered in this order.
  /// `name` tells groups of the same members apart. Errors: invalid_input; unavailable.
  Result<std::unique_ptr<Communicator>> split(std::span<const std::uint32_t> members, std::string name,
                                              ScheduleSource schedules);

  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  /// Leaves once the others have taken what was sent to them. The job's rank 0 should be the last to leave it: without
  /// it, no groups and no calls of new shapes can be made (a barrier before the end does).
  ~Communicator();

  [[nodiscard]] std::uint32_t rank() const;
  [[nodiscard]] std::uint32_t size() const;
  [[nodiscard]] const std::string& name() const;
  /// How each rank of the job is reached, and why so.
  [[nodiscard]] const std::vector<PeerTransport>& transports() const;

  /// Memory that the peers of as many transports as possible reach directly: on the host those of this machine, and
  /// calls on it copy nothing in between. Zeroed. Children made by fork have a copy of their own. Errors: unavailable
  /// when there is not enough; unsupported for a space that the rank's device lacks; too_large past 4,096 buffers that
  /// ranks of one machine share.
  Result<void*> allocate(std::size_t bytes, engine::MemorySpace space = engine::MemorySpace::host);
  /// Requires: what `allocate` gave, and no call under way that uses it. Null does nothing.
  void free(void* memory);

  /// Makes memory of the caller such memory, which memory of a device has to be to be called on, where it lies and with
  /// what is in it, until it is deregistered or the job is left: its pages become shared ones with its
  /// peers alone: children made by fork have a copy of their own. No other thread may use it while this runs. Errors:
  /// invalid_input when it is not whole pages (aligned_alloc, mmap), or some of it is registered already, mapped from a
  /// file, shared with other processes, or read-only; those of `allocate`.
  Result<void> register_buffer(void* data, std::size_t bytes, engine::MemorySpace space = engine::MemorySpace::host);
  /// Its pages become the caller's own again; what is in them stays. Requires: no call under way that uses it.
  /// Errors: invalid_input when no registered buffer begins there.
  Result<void> deregister_buffer(void* data);

  /// A queue of the rank's device for the caller's own work (CallArguments::queue). It ends before the job does.
  Result<std::unique_ptr<engine::DeviceQueue>> make_queue();
  /// As `make_queue`, on a stream of the caller's device library (a cudaStream_t): a call that names it begins behind
  /// what the stream was given before, and what it is given after `start` begins when the call has ended. The stream
  /// outlives the queue. Errors: unsupported where the rank's device has no streams.
  Result<std::unique_ptr<engine::DeviceQueue>> adopt_stream(void* stream);

  /// Runs a collective and waits for it. Where its queue is a stream that captures (cudaStreamBeginCapture), it becomes
  /// part of the graph instead, on all ranks, if kernels carry it out on each; it then runs as often as each rank
  /// launches its graph, in one order on all ranks, on the same buffers, while the communicator lives. Errors: see the
  /// class; unsupported for a call that cannot be captured, with the reason, and nothing was captured then.
  Result<void> run(const CallArguments& arguments);
  /// How captured calls went that graphs have finished. Errors: unavailable for one that waited past the timeout; no
  /// call works then any more.
  Result<void> check_captured();
  /// Starts a collective; calls run one after the other on the job's thread. The buffers belong to the call until it
  /// ends.
  Result<CallHandle> start(const CallArguments& arguments);

  // The collectives by name; counts are those of NCCL: per rank where buffers have shards.
  Result<void> all_reduce(const void* send, void* receive, std::size_t count, ElementType type,
                          ReduceOperation operation);
  Result<void> reduce(const void* send, void* receive, std::size_t count, ElementType type, ReduceOperation operation,
                      std::uint32_t root);
  Result<void> broadcast(const void* send, void* receive, std::size_t count, ElementType type, std::uint32_t root);
  Result<void> all_gather(const void* send, void* receive, std::size_t count_per_rank, ElementType type);
  Result<void> reduce_scatter(const void* send, void* receive, std::size_t count_per_rank, ElementType type,
                              ReduceOperation operation);
  Result<void> all_to_all(const void* send, void* receive, std::size_t count_per_rank, ElementType type);
  /// With counts per peer, by direct messages, or as plan_counts says. Errors: besides, invalid_input for counts that
  /// no buffers can have, and on the two ranks whose counts do not match.
  Result<void> all_to_all(const void* send, const BlockCounts& send_blocks, void* receive,
                          const BlockCounts& receive_blocks, ElementType type);
  /// From now on an all_to_all with counts per peer that `run` is given goes by the schedule that this source has for
  /// the matrix of all counts, which the members tell each other first (forecast/sources/count_plans.h); by direct
  /// messages where that schedule is null, where counts do not match, where some rank's blocks do not lie in the order
  /// of the ranks or overlap what it sends, in a group launch and under capture. All members call this alike, or none.
  void plan_counts(ScheduleSource schedules);
  /// Tells every member how much this rank will send to it: `received[r]` becomes what rank r has for this one in its
  /// `sent`. Both have a number for each member.
  Result<void> exchange_counts(std::span<const std::int64_t> sent, std::span<std::int64_t> received);
  Result<void> gather(const void* send, void* receive, std::size_t count_per_rank, ElementType type,
                      std::uint32_t root);
  Result<void> scatter(const void* send, void* receive, std::size_t count_per_rank, ElementType type,
                       std::uint32_t root);
  /// Between two members: one sends, the other receives, as often and in the same order.
  Result<void> send(const void* data, std::size_t count, ElementType type, std::uint32_t peer);
  Result<void> receive(void* data, std::size_t count, ElementType type, std::uint32_t peer);
  /// Returns when all members came.
  Result<void> barrier();

  /// Between these, calls on this and all communicators of the job are only noted (and return at once); `group_end`
  /// launches them together: those of one communicator in their order, those of different ones, and sends and receives
  /// with different peers, side by side.
  void group_begin();
  Result<void> group_end();

  /// Fails the job on every rank, also while a call runs. Twice is fine.
  void abort(std::string_view reason);

  /// Keeps spans of the calls from now on; null for none. The recorder outlives the calls. Waits for calls that were
  /// started.
  void record(engine::Recorder* recorder);
  /// The schedule of a call, as its ranks run it. Waits for calls that were started. Errors: those of the source.
  Result<SourcedSchedule> schedule_of(const CallArguments& arguments);

  /// For what belongs to the job and not to data: exchanging results, clocks.
  [[nodiscard]] engine::rendezvous::ControlPlane& control();

 private:
  class Impl;
  friend class CallHandle;
  explicit Communicator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// A call that was started.
class CallHandle {
 public:
  /// Whether it has ended, well or not.
  [[nodiscard]] bool test() const;
  /// Waits for its end. Errors: the call's.
  Result<void> wait();
  /// Ends it, and the job, on every rank.
  void abort(std::string_view reason);

 private:
  friend class Communicator;
  struct State;
  explicit CallHandle(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace espalier
