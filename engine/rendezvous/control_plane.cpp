#include "engine/rendezvous/control_plane.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "engine/rendezvous/hub.h"
#include "engine/rendezvous/member.h"
#include "engine/rendezvous/names.h"
#include "engine/rendezvous/secret.h"

namespace espalier::engine::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// How much longer than its deadline a member waits for the hub to name the missing ranks.
constexpr milliseconds longest_slack{1000};
/// How long a port may still be that of a rank 0 which died.
constexpr milliseconds port_patience{2000};

Result<void> check_options(const Options& options) {
  const auto wrong = [](std::string message, std::string help = {}) -> Result<void> {
    return fail(ErrorCode::invalid_input, std::move(message), std::move(help));
  };
  if (options.world < 1 || options.world > max_ranks) {
    return wrong(fmt::format("a job has 1 to {} ranks, not {}", max_ranks, options.world));
  }
  if (options.rank >= options.world) {
    return wrong(fmt::format("rank {} is not below the job's {} ranks", options.rank, options.world));
  }
  if (options.job.size() > longest_job) {
    return wrong(fmt::format("the job's id has {} bytes, at most {} are allowed", options.job.size(), longest_job));
  }
  if (options.timeout <= milliseconds(0) || options.timeout > std::chrono::hours(24 * 365)) {
    return wrong("the rendezvous' timeout must be positive and at most a year");
  }
  if (options.world == 1) return {};
  if (options.secret.size() < shortest_secret) {
    return wrong(
        fmt::format("the job's secret has {} bytes, at least {} are needed", options.secret.size(), shortest_secret),
        "openssl rand -hex 32 makes a good one");
  }
  if (options.rank > 0 && (options.host.empty() || options.port == 0)) {
    return wrong("the rendezvous has no host or no port", "such as node0:29510");
  }
  return {};
}

Identity identity_of(const Options& options) {
  return {options.rank,   options.world,   options.secret,       options.job,
          process_name(), options.timeout, options.was_listening};
}

}  // namespace

/// What is behind the plane: its state, and the hub's or a member's side.
class ControlPlane::Impl {
 public:
  explicit Impl(const Options& options) : rank(options.rank), world(options.world), timeout(options.timeout) {}

  Result<void> join(Options options);
  Result<void> join_as_hub(Options options, steady_clock::time_point deadline);
  Result<void> join_as_member(const Options& options, steady_clock::time_point deadline);
  void fail_and_tell(const RankFailure& failure);
  void leave();

  const std::uint32_t rank;
  const std::uint32_t world;
  const milliseconds timeout;
  PlaneState state;  // Outlives the sides, whose threads use it.
  std::unique_ptr<Hub> hub;
  std::unique_ptr<Member> member;
};

Result<void> ControlPlane::Impl::join(Options options) {
  if (auto opened = state.open(); !opened) return opened;
  const auto deadline = steady_clock::now() + options.timeout;
  return rank == 0 ? join_as_hub(std::move(options), deadline) : join_as_member(options, deadline);
}

Result<void> ControlPlane::Impl::join_as_hub(Options options, steady_clock::time_point deadline) {
  Listener listener = std::move(options.listener);
  if (world > 1 && !listener.fd.is_open()) {
    auto opened = listen_on(options.host, options.port, std::min(port_patience, options.timeout / 4));
    if (!opened) return tl::unexpected(std::move(opened.error()));
    listener = std::move(*opened);
  }
  const bool is_everywhere = listener.is_everywhere;
  const std::string place = fmt::format("port {} of all addresses of {}", listener.port, host_name());
  if (is_everywhere && options.on_notice) {
    options.on_notice(
        fmt::format("rank 0 listens on {}: '{}' leads to none here that other machines reach", place, options.host));
  }
  auto started = Hub::start(state, identity_of(options), std::move(listener));
  if (!started) return tl::unexpected(std::move(started.error()));
  hub = std::move(*started);
  const auto is_complete = state.wait_complete(deadline);
  if (!is_complete) return tl::unexpected(is_complete.error());
  if (*is_complete) return {};
  const std::string refusal = hub->last_refusal();
  const std::string message =
      fmt::format("{} did not join within {}", ranks_text(hub->missing()), duration_text(timeout));
  fail_and_tell({0, message});
  return fail(ErrorCode::unavailable, message,
              refusal.empty() ? "see whether they were started, and reach " +
                                    (is_everywhere ? "rank 0, which listens on " + place : "rank 0's host and port")
                              : "the last newcomer that was turned away was " + refusal);
}

Result<void> ControlPlane::Impl::join_as_member(const Options& options, steady_clock::time_point deadline) {
  const Identity identity = identity_of(options);
  auto connection = connect_to_hub(identity, options.host, options.port, deadline);
  if (!connection) return tl::unexpected(std::move(connection.error()));
  auto started = Member::start(state, identity, std::move(*connection));
  if (!started) return tl::unexpected(std::move(started.error()));
  member = std::move(*started);
  const auto is_complete = state.wait_complete(deadline + std::min(longest_slack, timeout / 4));
  if (!is_complete) return tl::unexpected(is_complete.error());
  if (*is_complete) return {};
  return fail(ErrorCode::unavailable,
              fmt::format("rank {} joined, but not all others did within {}", rank, duration_text(timeout)),
              "rank 0's own message names who is missing");
}

void ControlPlane::Impl::fail_and_tell(const RankFailure& failure) {
  if (!state.fail(failure)) return;
  if (hub) hub->report(failure);
  if (member) member->report(failure);
}

void ControlPlane::Impl::leave() {
  state.end(fmt::format("rank {} has left the job", rank));
  if (hub) hub->leave();
  if (member) member->leave();
}

ControlPlane::ControlPlane(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ControlPlane::~ControlPlane() { leave(); }

Result<std::unique_ptr<ControlPlane>> ControlPlane::join(Options options) {
  if (auto checked = check_options(options); !checked) return tl::unexpected(std::move(checked.error()));
  auto impl = std::make_unique<Impl>(options);
  if (auto joined = impl->join(std::move(options)); !joined) return tl::unexpected(std::move(joined.error()));
  return std::unique_ptr<ControlPlane>(new ControlPlane(std::move(impl)));
}

std::uint32_t ControlPlane::rank() const noexcept { return impl_->rank; }
std::uint32_t ControlPlane::world() const noexcept { return impl_->world; }

std::string ControlPlane::local_address() const {
  return impl_->hub ? impl_->hub->local_address() : impl_->member->local_address();
}

std::string ControlPlane::hub_address() const { return impl_->hub ? std::string() : impl_->member->hub_address(); }

Result<std::vector<std::string>> ControlPlane::exchange(std::string_view tag, std::span<const std::uint32_t> members,
                                                        std::string_view blob, milliseconds timeout) {
  if (tag.size() > longest_tag || members.size() > impl_->world) {
    return fail(ErrorCode::invalid_input, fmt::format("exchange: a tag of {} bytes and {} members; at most {} and {}",
                                                      tag.size(), members.size(), longest_tag, impl_->world));
  }
  if (blob.size() > largest_blob) {
    return fail(ErrorCode::too_large, fmt::format("exchange '{}': a blob of {} bytes; at most {} are passed on", tag,
                                                  blob.size(), largest_blob));
  }
  const std::uint64_t id = impl_->state.expect();
  const milliseconds patience = std::clamp(timeout, milliseconds(0), milliseconds(std::chrono::hours(24 * 365)));
  Put put{id, static_cast<std::uint64_t>(patience.count()), std::string(tag),
          std::vector<std::uint32_t>(members.begin(), members.end()), std::string(blob)};
  const auto deadline = steady_clock::now() + patience + longest_slack;
  if (impl_->hub) {
    impl_->hub->put(std::move(put));
  } else {
    impl_->member->put(put);
  }
  auto answer = impl_->state.await(id, deadline);
  if (!answer) return tl::unexpected(std::move(answer.error()));
  if (auto* blobs = std::get_if<Result<std::vector<std::string>>>(&*answer)) return std::move(*blobs);
  return fail(ErrorCode::unavailable,
              fmt::format("exchange '{}': rank 0 did not answer within {}", tag, duration_text(patience)),
              "see whether rank 0 is stopped or its host is cut off");
}

Result<void> ControlPlane::barrier(std::string_view tag, std::span<const std::uint32_t> members, milliseconds timeout) {
  auto done = exchange(tag, members, {}, timeout);
  if (!done) return tl::unexpected(std::move(done.error()));
  return {};
}

bool ControlPlane::has_failed() const noexcept { return impl_->state.has_failed(); }
std::optional<RankFailure> ControlPlane::failure() const { return impl_->state.failure(); }
int ControlPlane::failure_fd() const noexcept { return impl_->state.failure_fd(); }

Error ControlPlane::failure_error() const {
  const auto failure = impl_->state.failure();
  ESPALIER_CHECK(failure.has_value(), "only a failed job has a failure");
  return rendezvous::failure_error(*failure);
}

void ControlPlane::abort(std::string_view reason) {
  impl_->fail_and_tell({impl_->rank, fmt::format("{} ({})", reason, process_name())});
}

void ControlPlane::blame(std::uint32_t rank, std::string_view reason) {
  ESPALIER_CHECK(rank < impl_->world, "a rank of the job is blamed");
  impl_->fail_and_tell({rank, std::string(reason)});
}

Result<ClockOffset> ControlPlane::estimate_clock(milliseconds timeout, int rounds) {
  if (impl_->hub) return ClockOffset{};
  const auto deadline = steady_clock::now() + timeout;
  std::optional<ClockOffset> best;
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t id = impl_->state.expect();
    const std::int64_t begin = monotonic_ns();
    impl_->member->ping(id);
    const auto answer = impl_->state.await(id, deadline);
    if (!answer) return tl::unexpected(answer.error());
    const auto* pong = std::get_if<PlaneState::Pong>(&*answer);
    if (pong == nullptr) break;
    // The hub's stamp was taken between begin and arrival; halfway is at most half the round trip off.
    const std::int64_t round_trip = pong->arrival_ns - begin;
    const ClockOffset offset{pong->hub_time_ns - (begin + round_trip / 2), (round_trip + 1) / 2};
    if (!best || offset.error_ns < best->error_ns) best = offset;
  }
  if (best) return *best;
  return fail(ErrorCode::unavailable, fmt::format("rank 0 answered no ping within {}", duration_text(timeout)),
              "see whether rank 0 is stopped or its host is cut off");
}

void ControlPlane::leave() { impl_->leave(); }

}  // namespace espalier::engine::rendezvous
