#include "engine/rendezvous/plane_state.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "engine/rendezvous/names.h"

namespace espalier::engine::rendezvous {

Error failure_error(const RankFailure& failure) {
  return {ErrorCode::unavailable, fmt::format("rank {}: {}", failure.rank, failure.reason),
          "the job cannot go on with this control plane; form a new communicator"};
}

std::int64_t monotonic_ns() {
  // libstdc++'s steady clock is CLOCK_MONOTONIC.
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Result<void> PlaneState::open() {
  failure_fd_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (failure_fd_.is_open()) return {};
  return espalier::fail(ErrorCode::unavailable, "cannot create an eventfd: " + errno_text(errno),
                        "raise the limit of open files (ulimit -n)");
}

std::optional<RankFailure> PlaneState::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

bool PlaneState::fail(RankFailure failure) {
  const std::lock_guard lock(mutex_);
  if (failure_ || end_) return false;
  failure_ = std::move(failure);
  has_failed_.store(true, std::memory_order_release);
  const std::uint64_t one = 1;
  // The counter is far from its limit, so that the write cannot fail.
  [[maybe_unused]] const ssize_t written = ::write(failure_fd_.get(), &one, sizeof one);
  changed_.notify_all();
  return true;
}

void PlaneState::end(std::string why) {
  const std::lock_guard lock(mutex_);
  if (!end_) end_ = std::move(why);
  changed_.notify_all();
}

void PlaneState::complete() {
  const std::lock_guard lock(mutex_);
  is_complete_ = true;
  changed_.notify_all();
}

std::optional<Error> PlaneState::failure_or_end() const {
  if (failure_) return failure_error(*failure_);
  if (end_) return Error{ErrorCode::unavailable, *end_, "form a new communicator"};
  return std::nullopt;
}

Result<bool> PlaneState::wait_complete(Time deadline) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, deadline, [this] { return is_complete_ || failure_ || end_; });
  if (auto error = failure_or_end()) return tl::unexpected(std::move(*error));
  return is_complete_;
}

std::uint64_t PlaneState::expect() {
  const std::lock_guard lock(mutex_);
  const std::uint64_t id = next_id_++;
  answers_.emplace(id, std::monostate{});
  return id;
}

void PlaneState::deliver(std::uint64_t id, Answer answer) {
  const std::lock_guard lock(mutex_);
  const auto found = answers_.find(id);
  if (found == answers_.end()) return;
  found->second = std::move(answer);
  changed_.notify_all();
}

namespace {

/// Waits until it holds, or the time is up; time in which this process is stopped does not count, as the others may be
/// stopped, too.
template <class Holds>
void wait_while_running(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, PlaneState::Time deadline,
                        Holds holds) {
  constexpr std::chrono::milliseconds step{250};
  while (true) {
    const PlaneState::Time until = std::min(deadline, std::chrono::steady_clock::now() + step);
    if (changed.wait_until(lock, until, holds)) return;
    const auto late = std::chrono::steady_clock::now() - until;
    if (late > step) {
      deadline += late;
    } else if (until == deadline) {
      return;
    }
  }
}

}  // namespace

Result<PlaneState::Answer> PlaneState::await(std::uint64_t id, Time deadline) {
  std::unique_lock lock(mutex_);
  const auto has_come = [this, id] { return !std::holds_alternative<std::monostate>(answers_.at(id)); };
  wait_while_running(changed_, lock, deadline, [&] { return has_come() || failure_ || end_; });
  auto node = answers_.extract(id);
  // An exchange that fails may be the trace of the failure.
  const auto* blobs = std::get_if<Result<std::vector<std::string>>>(&node.mapped());
  if (blobs != nullptr && !*blobs && failure_) return tl::unexpected(failure_error(*failure_));
  if (!std::holds_alternative<std::monostate>(node.mapped())) return std::move(node.mapped());
  if (auto error = failure_or_end()) return tl::unexpected(std::move(*error));
  return std::monostate{};
}

}  // namespace espalier::engine::rendezvous
