#pragma once

// Tested by: tests/unit/engine/transport/transport_test.cpp

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/device/device.h"
#include "engine/executor/rank_cores.h"
#include "engine/memory/memory.h"
#include "engine/transport/stream_end.h"
#include "engine/transport/whole_call.h"
#include "schedule/chunking.h"
#include "schedule/layout.h"

namespace espalier::engine {

/// A communicator as a transport serves it.
struct GroupInfo {
  std::string name;
  std::uint64_t id = 0;                ///< The same on all members; no other group of the job has it.
  std::vector<std::uint32_t> members;  ///< Ranks of the job.
  std::uint32_t self = 0;              ///< This rank's place among them.
  std::vector<bool> is_reached;        ///< By member: whether this transport carries its streams.
  std::chrono::milliseconds timeout{30000};
};

/// What calls of one shape are, for a transport that may carry them out by itself.
struct WholeCallShape {
  const Schedule& schedule;
  const Layout& layout;
  Pacing pacing;
  const RankProgram& program;  ///< Of this rank.
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes size;
  bool may_be_replaced = false;  ///< Nobody asked for this very schedule.
  /// Not null: the call is captured by this queue, and is done when it is with it. It needs no host when it runs.
  DeviceQueue* captured_by = nullptr;
};

/// What a transport keeps for one communicator: connections, and what its members publish about their calls.
/// Used by one thread at a time. The streams that it makes end before it does.
class GroupTransport {
 public:
  virtual ~GroupTransport() = default;

  /// The number of the stream that a transfer takes; both of its ends come to the same.
  [[nodiscard]] virtual std::uint32_t choose_stream(const Schedule& schedule, const Transfer& transfer) const = 0;
  /// The chunk for schedules that leave it open.
  [[nodiscard]] virtual Bytes default_chunk() const = 0;
  /// Whether it reaches every member from every other, and each compares each call with all others: those that have no
  /// stream in common, too. The same on all members.
  [[nodiscard]] virtual bool compares_all_calls() const { return false; }
  /// The ends of a stream to a member and from one, which makes the other end. Errors: unavailable at the deadline, or
  /// when the job fails.
  virtual Result<std::unique_ptr<Sender>> connect(std::uint32_t member, std::uint32_t stream,
                                                  std::chrono::steady_clock::time_point deadline) = 0;
  virtual Result<std::unique_ptr<Receiver>> accept(std::uint32_t member, std::uint32_t stream,
                                                   std::chrono::steady_clock::time_point deadline) = 0;

  /// How this transport carries out such a call as a whole. Null: it does not. The same on all members.
  virtual std::unique_ptr<WholeCall> make_whole_call(const WholeCallShape&, DeviceQueue&) { return nullptr; }

  /// Whether no member is so many calls behind that this rank has to wait before it enters the call of this number.
  [[nodiscard]] virtual bool may_enter(std::uint64_t) { return true; }
  /// Where `may_enter` just said no: for which rank of the job. Errors: unavailable when that rank has left.
  virtual Result<std::uint32_t> find_straggler(std::uint64_t) {
    return fail(ErrorCode::unsupported, "this transport waits for nobody");
  }
  /// Announces to the members that this rank has entered the call, before its streams are opened. Whole calls do so
  /// themselves.
  virtual void enter(const StreamCall&) {}
  /// What was posted goes out, and members who sleep for it are woken.
  virtual void flush() {}

  /// Announces to the members that this rank makes no more calls.
  virtual void leave() {}
  /// Whether the members get all that was sent to them without this rank.
  [[nodiscard]] virtual bool is_settled() { return true; }
};

/// How a transport reaches a rank.
struct Reach {
  std::string reason;              ///< Why it does; empty where only another transport's failure explains it.
  bool carries_out_calls = false;  ///< Kernels of both carry out whole calls in memory that both open.
};

/// Moves bytes between ranks: which ranks it reaches, its streams, how to sleep until something comes, and how
/// peers reach memory directly. A job has a list of them, the preferred ones first; each pair of ranks uses the first
/// one that reaches in both directions. All ranks of a job have the same list.
///
/// Made before the other ranks are known; the destructor closes what is open. `wake` may come from any thread, memory
/// may be allocated and registered by any; all else is called by one thread at a time.
class Transport {
 public:
  virtual ~Transport() = default;

  /// As users name it: "shm", "tcp", ...
  [[nodiscard]] virtual std::string_view name() const = 0;

  // Joining: every rank opens, all exchange what they export, every rank attaches to those that it may reach.
  /// Opens what others connect to; gives what they need for that. `device`, whose memories it moves, outlives this.
  virtual Result<std::string> open(Device& device) = 0;
  /// Whether a rank can be reached, by what it exported. Errors: why not.
  virtual Result<Reach> attach(std::uint32_t rank, std::string_view exported) = 0;
  /// Serves a communicator. Collective over its members.
  virtual Result<std::unique_ptr<GroupTransport>> join(const GroupInfo& group) = 0;

  // Memory.
  struct Allocation {
    std::byte* data = nullptr;
    std::unique_ptr<Registration> registration;
  };
  /// Zeroed memory that peers and the rank's device reach from the start; null where the transport makes no memory of
  /// this space.
  virtual Result<Allocation> allocate(std::int64_t, MemorySpace) { return Allocation{}; }
  /// Lets peers reach memory; `device` is whose it is in the space `device`. Null: they reach it as it is, or not at
  /// all.
  virtual Result<std::unique_ptr<Registration>> register_memory(void*, std::int64_t, MemorySpace, Device& /*device*/) {
    return nullptr;
  }

  // Waiting.
  /// Whether it makes progress only in `progress`. Asked once.
  [[nodiscard]] virtual bool needs_progress() const { return false; }
  /// Moves what is under way along. False: nothing moved.
  virtual bool progress() { return false; }
  /// Whether devices or the kernel move its bytes on processors that ranks who wait would take from them: who waits for
  /// many bytes had better sleep than yield.
  [[nodiscard]] virtual bool prefers_sleep() const { return false; }
  /// Whether anything can come by it that would have to end a sleep.
  [[nodiscard]] virtual bool can_wake() const = 0;
  /// Before a sleep: what comes from now on ends it. True: look once more for what came before.
  virtual bool arm() { return false; }
  virtual void sleep(std::chrono::nanoseconds longest) = 0;
  /// After `arm`, whether there was a sleep or not.
  virtual void disarm() {}
  /// Ends this rank's sleep.
  virtual void wake() {}
  /// Where this rank shows the others of its machine on which core it runs, and where those that it reaches show
  /// theirs, by rank; null where nobody does. Requires: attached.
  [[nodiscard]] virtual RankCores::Shown* own_core() { return nullptr; }
  [[nodiscard]] virtual const RankCores::Shown* core_of(std::uint32_t /*rank*/) const { return nullptr; }

  /// No call is under way: what was kept for calls may go.
  virtual void reclaim() {}
};

}  // namespace espalier::engine
