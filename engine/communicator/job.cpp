#include "engine/communicator/job.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <utility>

#include "engine/communicator/group.h"
#include "engine/rendezvous/background_thread.h"

namespace espalier::engine {
namespace {

std::uint32_t usable_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) return 1;
  return static_cast<std::uint32_t>(std::max(1, CPU_COUNT(&cores)));
}

}  // namespace

Job::Job() = default;

Result<std::shared_ptr<Job>> Job::join(JobOptions options) {
  std::shared_ptr<Job> job(new Job);
  RendezvousOptions rendezvous = std::move(options.rendezvous);
  options.rendezvous = {};
  options.rendezvous.secret = rendezvous.secret;
  job->options_ = std::move(options);
  if (job->options_.make_device) job->device_ = job->options_.make_device();
  if (job->device_ == nullptr) job->device_ = std::make_unique<HostDevice>();
  auto control = ControlPlane::join(std::move(rendezvous));
  if (!control) return tl::unexpected(control.error());
  job->control_ = std::move(*control);
  if (auto ready = job->set_up(); !ready) {
    job->control_->abort(ready.error().message);  // So that the others do not wait for this rank.
    return tl::unexpected(ready.error());
  }
  job->is_oversubscribed_ = job->local_ranks_ > usable_cores();
  job->waiting_.emplace(job->is_oversubscribed_);
  return job;
}

Result<void> Job::set_up() {
  auto guard = ForkGuard::create();
  if (!guard) return tl::unexpected(guard.error());
  fork_guard_ = std::move(*guard);
  auto sockets = SocketWaiter::create(control_->failure_fd());
  if (!sockets) return tl::unexpected(sockets.error());
  sockets_.emplace(std::move(*sockets));
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
  const auto timeout = options_.timeout;
  const auto peers = exchange_peers(*control_, timeout);
  if (!peers) return tl::unexpected(peers.error());
  local_ranks_ = static_cast<std::uint32_t>(std::ranges::count(*peers, (*peers)[rank()].boot_id, &PeerInfo::boot_id));
  std::vector<std::uint32_t> all(world());
  std::iota(all.begin(), all.end(), 0U);

  auto domain = SharedDomain::create();
  if (!domain) return tl::unexpected(domain.error());
  domain_ = std::move(*domain);
  const auto exported = control_->exchange("espalier/memory", all, domain_->exported_directory(), timeout);
  if (!exported) return tl::unexpected(exported.error());

  // A pair uses shared memory when both reach the other's.
  std::string reachable(world(), '-');
  transports_.resize(world());
  for (std::uint32_t rank = 0; rank < world(); ++rank) {
    transports_[rank] = {rank, TransportChoice::tcp, ""};
    if (rank == this->rank()) {
      transports_[rank].transport = TransportChoice::shm;
    } else if (options_.transport == TransportChoice::tcp) {
      transports_[rank].reason = "tcp was asked for";
    } else if (!share_memory((*peers)[this->rank()], (*peers)[rank])) {
      transports_[rank].reason = fmt::format("{} is another machine or container", (*peers)[rank].host_name);
    } else if (const auto met = domain_->attach(rank, (*exported)[rank]); !met) {
      transports_[rank].reason = met.error().message;
    } else {
      reachable[rank] = '+';
      transports_[rank].reason = "same machine";
    }
  }
  const auto answers = control_->exchange("espalier/reach", all, reachable, timeout);
  if (!answers) return tl::unexpected(answers.error());
  for (std::uint32_t rank = 0; rank < world(); ++rank) {
    if (rank == this->rank() || reachable[rank] != '+') continue;
    if ((*answers)[rank].size() == world() && (*answers)[rank][this->rank()] == '+') {
      transports_[rank].transport = TransportChoice::shm;
      ++shm_peers_;
    } else {
      transports_[rank].reason = "it cannot reach this rank's memory";
    }
  }
  if (options_.transport == TransportChoice::shm && shm_peers_ + 1 < world()) {
    const auto outside = std::ranges::find_if(
        transports_, [](const PeerTransport& peer) { return peer.transport != TransportChoice::shm; });
    return fail(
        ErrorCode::unavailable,
        fmt::format("shared memory was asked for, but rank {} is not within reach: {}", outside->peer, outside->reason),
        "leave the choice to auto");
  }
  return open_mesh(*peers);
}

Result<void> Job::open_mesh(const std::vector<PeerInfo>& peers) {
  std::vector<std::uint32_t> all(world());
  std::iota(all.begin(), all.end(), 0U);
  targets_.resize(world());
  std::uint16_t port = 0;
  if (shm_peers_ + 1 < world()) {
    const bool listens_everywhere = !options_.routes.empty();
    auto mesh = TcpMesh::create(listens_everywhere ? "" : control_->local_address(), options_.rendezvous.secret);
    if (!mesh) return tl::unexpected(mesh.error());
    mesh_ = std::move(*mesh);
    port = mesh_->port();
  }
  const auto ports = control_->exchange("espalier/ports", all, std::to_string(port), options_.timeout);
  if (!ports) return tl::unexpected(ports.error());
  for (std::uint32_t rank = 0; rank < world(); ++rank) {
    const std::string& text = (*ports)[rank];
    std::from_chars(text.data(), text.data() + text.size(), targets_[rank].port);
    if (!peers[rank].addresses.empty()) targets_[rank].address = peers[rank].addresses.front();
  }
  return {};
}

Job::~Job() {
  if (is_forked()) {
    // The threads, the connections and the shared memory are the parent's: not to be ended from here.
    static_cast<void>(control_.release());
    static_cast<void>(domain_.release());
    static_cast<void>(mesh_.release());
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
  // However little memory there is: if the others cannot be told, they hear of it by their timeout.
  [[maybe_unused]] const bool is_told = has_memory_for([&] { control_->abort(reason); });
  is_aborted_.store(true, std::memory_order_relaxed);
  if (domain_) domain_->own_doorbell().ring();
}

void Job::note(const NotedCall& call) { noted_.push_back(call); }

std::vector<NotedCall> Job::end_noting() {
  is_noting_ = false;
  return std::exchange(noted_, {});
}

void Job::enqueue(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (!worker_.joinable()) {
    auto thread = start_background_thread([this] { work(); });
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
