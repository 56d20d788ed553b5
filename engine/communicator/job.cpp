#include "engine/communicator/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/communicator/group.h"
#include "engine/communicator/make_transports.h"
#include "engine/rendezvous/background_thread.h"

namespace espalier::engine {

Job::Job() = default;

Result<std::shared_ptr<Job>> Job::join(JobOptions options) {
  std::shared_ptr<Job> job(new Job);
  rendezvous::Options rendezvous = std::move(options.rendezvous);
  options.rendezvous = {};
  options.rendezvous.secret = rendezvous.secret;
  job->options_ = std::move(options);
  if (job->options_.make_device) job->device_ = job->options_.make_device();
  if (job->device_ == nullptr) job->device_ = std::make_unique<HostDevice>();
  auto control = rendezvous::ControlPlane::join(std::move(rendezvous));
  if (!control) return tl::unexpected(control.error());
  job->control_ = std::move(*control);
  if (auto ready = job->set_up(); !ready) {
    job->control_->abort(ready.error().message);  // So that the others do not wait for this rank.
    return tl::unexpected(ready.error());
  }
  return job;
}

Result<void> Job::set_up() {
  auto guard = ForkGuard::create();
  if (!guard) return tl::unexpected(guard.error());
  fork_guard_ = std::move(*guard);
  auto queue = device_->make_queue();
  if (!queue) return tl::unexpected(queue.error());
  queue_ = std::move(*queue);
  if (auto agreed = check_settings(); !agreed) return agreed;
  return find_transports();
}

/// Connections and frames depend on these: ranks that differ would wait for each other.
Result<void> Job::check_settings() {
  std::vector<Setting> settings = {{"--sockets", std::to_string(std::max(1U, options_.sockets_per_peer))},
                                   {"--checksum", options_.checksum ? "on" : "off"},
                                   {"--addresses", options_.routes.empty() ? "not given" : "given"}};
  settings.insert(settings.end(), options_.agreed.begin(), options_.agreed.end());
  return agree_on(*control_, settings, options_.timeout);
}

Result<void> Job::find_transports() {
  if (auto built = parse_transport(to_string(options_.transport)); !built) return tl::unexpected(built.error());
  const auto peers = rendezvous::exchange_peers(*control_, options_.timeout);
  if (!peers) return tl::unexpected(peers.error());
  const auto local_ranks = std::ranges::count(*peers, (*peers)[rank()].boot_id, &rendezvous::PeerInfo::boot_id);
  const bool is_oversubscribed = local_ranks > rendezvous::count_cores(*peers, (*peers)[rank()]);
  peer_transports_.resize(world());
  for (std::uint32_t rank = 0; rank < world(); ++rank) peer_transports_[rank].peer = rank;
  auto candidates = options_.make_transports ? options_.make_transports(*control_, *peers)
                                             : make_transports(*control_, *peers, options_, is_oversubscribed);
  peer_transports_[rank()].transport = candidates.front()->name();
  for (std::unique_ptr<Transport>& candidate : candidates) {
    transports_.push_back(std::move(candidate));
    const auto is_complete = attach(*transports_.back());
    if (!is_complete) return tl::unexpected(is_complete.error());
    if (*is_complete) break;  // On all ranks alike: the others are not needed.
  }
  for (const auto& transport : transports_) {
    if (transport->needs_progress()) progressing_.push_back(transport.get());
  }
  memory_ = std::make_unique<MemoryRegistry>(transports_, *device_);
  make_waiting(is_oversubscribed);
  return check_reach();
}

void Job::make_waiting(bool is_oversubscribed) {
  for (const auto& transport : transports_) {
    RankCores::Shown* own = transport->own_core();
    if (own == nullptr) continue;
    std::vector<const RankCores::Shown*> others;
    for (std::uint32_t rank = 0; rank < world(); ++rank) {
      const RankCores::Shown* core = rank == this->rank() ? nullptr : transport->core_of(rank);
      if (core != nullptr) others.push_back(core);
    }
    const bool knows_all = others.size() + 1 == world();
    waiting_.emplace(is_oversubscribed, RankCores(*own, std::move(others)), knows_all);
    return;
  }
  waiting_.emplace(is_oversubscribed);
}

Result<bool> Job::attach(Transport& transport) {
  const std::string name(transport.name());
  std::vector<std::uint32_t> all(world());
  std::iota(all.begin(), all.end(), 0U);
  const auto own = transport.open(*device_);
  if (!own) return tl::unexpected(own.error());
  const auto exported = control_->exchange("espalier/transport/" + name, all, *own, options_.timeout);
  if (!exported) return tl::unexpected(exported.error());
  std::string reached(world(), '+');  // By rank: by this transport or one before it.
  std::vector<Reach> reaches(world());
  for (std::uint32_t rank = 0; rank < world(); ++rank) {
    if (!peer_transports_[rank].transport.empty()) continue;
    auto attached = transport.attach(rank, (*exported)[rank]);
    if (attached) {
      reaches[rank] = *std::move(attached);
    } else {
      peer_transports_[rank].reason = attached.error().message;
      reached[rank] = '-';
    }
  }
  // A pair uses a transport when both reach the other.
  const auto answers = control_->exchange("espalier/reach/" + name, all, reached, options_.timeout);
  if (!answers) return tl::unexpected(answers.error());
  bool is_complete = true;
  for (std::uint32_t rank = 0; rank < world(); ++rank) {
    const std::string& answer = (*answers)[rank];
    is_complete = is_complete && answer.size() == world() && answer.find('-') == std::string::npos;
    PeerTransport& peer = peer_transports_[rank];
    if (!peer.transport.empty() || reached[rank] != '+') continue;
    if (answer.size() != world() || answer[this->rank()] != '+') {
      peer.reason = fmt::format("it does not reach this rank by {}", name);
      continue;
    }
    peer.transport = name;
    peer.carries_out_calls = reaches[rank].carries_out_calls;
    if (!reaches[rank].reason.empty()) {
      peer.reason = std::move(reaches[rank].reason);
    } else if (peer.reason.empty()) {
      peer.reason = fmt::format("{} was asked for", name);
    }
  }
  return is_complete;
}

Result<void> Job::check_reach() const {
  const auto outside =
      std::ranges::find_if(peer_transports_, [](const PeerTransport& peer) { return peer.transport.empty(); });
  if (outside == peer_transports_.end()) return {};
  return fail(ErrorCode::unavailable,
              fmt::format("{} was asked for, but rank {} is not within reach: {}", to_string(options_.transport),
                          outside->peer, outside->reason),
              "leave the choice to auto");
}

Job::~Job() {
  if (is_forked()) {
    // The threads, the connections and the shared memory are the parent's: not to be ended from here.
    static_cast<void>(control_.release());
    static_cast<void>(memory_.release());
    for (std::unique_ptr<Transport>& transport : transports_) static_cast<void>(transport.release());
    if (worker_.joinable()) worker_.detach();
    return;
  }
  if (worker_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
    }
    changed_.notify_all();
    worker_.join();
  }
}

void Job::abort(std::string_view reason) {
  if (is_forked()) return;  // What ends in a child does not end the rank's job.
  // However little memory there is: if the others cannot be told, their timeout ends their calls.
  [[maybe_unused]] const bool is_told = rendezvous::has_memory_for([&] { control_->abort(reason); });
  is_aborted_.store(true, std::memory_order_relaxed);
  for (const auto& transport : transports_) transport->wake();
}

void Job::note(const NotedCall& call) { noted_.push_back(call); }

std::vector<NotedCall> Job::end_noting() {
  is_noting_ = false;
  return std::exchange(noted_, {});
}

void Job::enqueue(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (!worker_.joinable()) {
    auto thread = rendezvous::start_background_thread([this] { work(); });
    if (!thread) {
      task();
      return;
    }
    worker_ = std::move(*thread);
  }
  pending_.fetch_add(1, std::memory_order_relaxed);
  tasks_.push_back(std::move(task));
  changed_.notify_all();
}

void Job::drain() {
  if (pending_.load(std::memory_order_acquire) == 0) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return pending_.load(std::memory_order_relaxed) == 0; });
}

void Job::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_ending_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = nullptr;  // What it keeps alive may be this job: to be let go while others still wait for the task.
    lock.lock();
    pending_.fetch_sub(1, std::memory_order_release);
    changed_.notify_all();
  }
}

}  // namespace espalier::engine
