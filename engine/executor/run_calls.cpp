#include "engine/executor/run_calls.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "engine/executor/clock.h"

namespace espalier::engine {
namespace {

using std::chrono::nanoseconds;

/// How often a sleeping rank looks whether the job still lives.
constexpr std::int64_t heartbeat_ns = 10'000'000;
/// Between two looks at the clock of a process that runs: a sleep, and room for a busy machine.
constexpr std::int64_t longest_look_ns = 20 * heartbeat_ns;
/// Where peers are reached by several transports, a sleep can only watch one of them.
constexpr std::int64_t mixed_sleep_ns = 100'000;
/// What was posted is flushed, and peers are woken, after this much work, so that they can work along.
constexpr std::int64_t flush_bytes = std::int64_t{256} << 10;
/// From this message size on, a wait by a transport that prefers sleep begins with one: a wake costs less than what
/// yields take from those who move the bytes. docs/verbs.md has both measured.
constexpr std::int64_t sleep_bytes = std::int64_t{512} << 10;
/// How long the control plane may take to report which rank died.
constexpr std::chrono::milliseconds notice_time{500};
/// How long a rank delays the report of its timeout at most: the peer that it waits for may itself wait for another,
/// and then the rank that knows the cause reports first.
constexpr std::chrono::milliseconds longest_reporting_delay{1300};

class CallRunner {
 public:
  CallRunner(std::span<const RunningCall> calls, const RunContext& context)
      : calls_(calls), context_(context), yields_(!sleeps_at_once()) {}

  Result<void> run() {
    context_.waiting->begin_call();
    while (true) {
      if (has_failed()) return tl::unexpected(failure());
      if (advance_all()) {
        context_.waiting->reset();
        if (is_done()) break;
        if (moved_since_flush() > flush_bytes) flush();
        continue;
      }
      if (is_done()) break;
      if (has_call_error()) return tl::unexpected(end_for_call_error());
      if (const auto failed = wait()) return tl::unexpected(*failed);
    }
    if (has_call_error()) return tl::unexpected(end_for_call_error());
    flush();
    return {};
  }

 private:
  [[nodiscard]] bool sleeps_at_once() const {
    const auto is_large = [](const RunningCall& call) { return call.execution->message_bytes() >= sleep_bytes; };
    return std::ranges::any_of(context_.transports, [](const auto& one) { return one->prefers_sleep(); }) &&
           std::ranges::any_of(calls_, is_large);
  }

  bool advance_all() {
    bool moved = false;
    for (Transport* transport : context_.progressing) moved |= transport->progress();
    for (const RunningCall& call : calls_) {
      if (!call.execution->is_done()) moved |= call.execution->advance();
    }
    return moved;
  }

  [[nodiscard]] bool is_done() const {
    return std::ranges::all_of(calls_, [](const RunningCall& call) { return call.execution->is_done(); });
  }

  [[nodiscard]] std::int64_t moved_since_flush() const {
    std::int64_t moved = -flushed_at_;
    for (const RunningCall& call : calls_) moved += call.execution->bytes_moved();
    return moved;
  }

  void flush() {
    flushed_at_ += moved_since_flush();
    for (const RunningCall& call : calls_) {
      for (const auto& transport : call.transports) transport->flush();
    }
  }

  std::optional<Error> wait() {
    // A flush waits until what was written has reached the other cores; meanwhile an answer may be here.
    if (!context_.waiting->is_at_first_spins()) flush();
    const Waiting::Action action = context_.waiting->next(yields_);
    if (action == Waiting::Action::spin) return std::nullopt;
    if (action == Waiting::Action::sleep) sleep();
    const std::int64_t now = action == Waiting::Action::yield ? context_.waiting->looked_ns() : now_ns();
    if (waited_ns(now) > nanoseconds(context_.timeout).count()) return give_up_waiting();
    return std::nullopt;
  }

  /// How long this process has waited, without the time in which it did not run itself: stopped, or suspended with its
  /// machine, it cannot have seen what its peers did meanwhile, and they may have been stopped with it.
  std::int64_t waited_ns(std::int64_t now) {
    if (begun_ns_ != context_.waiting->begun_ns()) {
      begun_ns_ = context_.waiting->begun_ns();
      looked_ns_ = begun_ns_;
      away_ns_ = 0;
    }
    if (now - looked_ns_ > longest_look_ns) away_ns_ += now - looked_ns_;
    looked_ns_ = now;
    return now - begun_ns_ - away_ns_;
  }

  void sleep() {
    // Spins and yields are too short a time to learn of a device's failure.
    for (const RunningCall& call : calls_) call.execution->check_device();
    const auto has_device_work = [](const RunningCall& call) { return call.execution->is_device_at_work(); };
    if (std::ranges::any_of(calls_, has_device_work)) return;
    Transport* watched = nullptr;
    bool are_several = false;
    for (const auto& transport : context_.transports) {
      if (!transport->can_wake()) continue;
      are_several = watched != nullptr;
      watched = transport.get();
    }
    if (watched == nullptr) return;
    // To look once more for what came by the others would end most sleeps: a short one does as well.
    const bool looks_again = watched->arm() && !are_several;
    if (looks_again && advance_all()) {
      context_.waiting->reset();
    } else if (!has_call_error() && !is_done()) {
      watched->sleep(nanoseconds(are_several ? mixed_sleep_ns : heartbeat_ns));
    }
    watched->disarm();
  }

  [[nodiscard]] bool has_call_error() const {
    return std::ranges::any_of(calls_, [](const RunningCall& call) { return bool(call.execution->call_error()); });
  }

  [[nodiscard]] std::string where(const RunningCall& call) const {
    return fmt::format("{} (group {}, rank {})", describe(call.execution->header()), call.group,
                       context_.control->rank());
  }

  [[nodiscard]] bool has_failed() const {
    return context_.control->has_failed() || context_.is_aborted->load(std::memory_order_relaxed);
  }

  /// Requires: has_failed.
  [[nodiscard]] Error failure() const {
    if (!context_.control->has_failed()) {
      return Error{ErrorCode::unavailable, where(unfinished()) + ": aborted by this rank", "join a new job"};
    }
    Error error = context_.control->failure_error();
    error.message = where(unfinished()) + ": " + error.message;
    return error;
  }

  /// Requires: has_call_error.
  Error end_for_call_error() {
    const auto& call =
        *std::ranges::find_if(calls_, [](const RunningCall& one) { return bool(one.execution->call_error()); });
    const CallError& broken = call.execution->call_error();
    if (broken.is_broken_connection() && learns_of_failure(notice_time)) return failure();
    Error error = *broken.cause();
    error.message = where(call) + ": " + error.message;
    return fail_with(error);
  }

  /// Whether the control plane reports soon which rank failed.
  [[nodiscard]] bool learns_of_failure(std::chrono::milliseconds longest) const {
    pollfd waiting{context_.control->failure_fd(), POLLIN, 0};
    poll(&waiting, 1, static_cast<int>(longest.count()));
    return context_.control->has_failed();
  }

  [[nodiscard]] const RunningCall& unfinished() const {
    const auto found = std::ranges::find_if(calls_, [](const RunningCall& call) { return !call.execution->is_done(); });
    return found == calls_.end() ? calls_.front() : *found;
  }

  std::optional<Error> give_up_waiting() {
    const RunningCall& call = unfinished();
    if (call.execution->is_device_at_work()) return fail_with(device_timeout_error(call));
    const Stall stall = call.execution->find_stall();
    // A peer that has not entered may still wait in the call before, and then reports for whom.
    const auto reporting_delay =
        std::min(longest_reporting_delay, context_.timeout / 4 + std::chrono::milliseconds(300));
    if (learns_of_failure(stall.is_absent ? 2 * reporting_delay : reporting_delay)) return failure();
    return fail_with(timeout_error(call, stall));
  }

  [[nodiscard]] Error timeout_error(const RunningCall& call, const Stall& stall) const {
    return {ErrorCode::unavailable,
            fmt::format("{}: nothing moved for {:.1f} s: rank {} {}", where(call),
                        static_cast<double>(context_.timeout.count()) / 1000, call.members[stall.peer.index()],
                        stall.expectation),
            "look at that rank; raise --timeout if it may be that slow"};
  }

  [[nodiscard]] Error device_timeout_error(const RunningCall& call) const {
    return {ErrorCode::unavailable,
            fmt::format("{}: nothing moved for {:.1f} s: the device '{}' has not finished its work", where(call),
                        static_cast<double>(context_.timeout.count()) / 1000, call.execution->device_name()),
            "look at that device; raise --timeout if it may be that slow"};
  }

  /// Ends the job on all ranks, with this rank's reason.
  Error fail_with(Error error) {
    context_.control->abort(error.message);
    return error;
  }

  std::span<const RunningCall> calls_;
  const RunContext& context_;
  bool yields_;  ///< Before it sleeps.
  std::int64_t flushed_at_ = 0;
  std::int64_t begun_ns_ = 0;   ///< Of the wait that the two below are about.
  std::int64_t looked_ns_ = 0;  ///< At the clock, last.
  std::int64_t away_ns_ = 0;    ///< In which this process did not run.
};

}  // namespace

Result<void> run_calls(std::span<const RunningCall> calls, const RunContext& context) {
  return CallRunner(calls, context).run();
}

}  // namespace espalier::engine
