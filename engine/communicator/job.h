#pragma once

// Tested by: tests/unit/engine/communicator/communicator_test.cpp

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "engine/communicator/agreement.h"
#include "engine/communicator/fork_guard.h"
#include "engine/communicator/transport_choice.h"
#include "engine/device/device.h"
#include "engine/executor/waiting.h"
#include "engine/memory/memory_registry.h"
#include "engine/rendezvous/control_plane.h"
#include "engine/rendezvous/peers.h"
#include "engine/transport/route_address.h"
#include "engine/transport/transport.h"
#include "engine/verbs/verbs_options.h"

namespace espalier {

struct JobOptions {
  engine::rendezvous::Options rendezvous;
  TransportChoice transport = TransportChoice::automatic;
  std::chrono::milliseconds timeout{30000};  ///< The longest that nothing may move in a call.
  bool checksum = false;                     ///< A CRC32C over every chunk on TCP.
  std::uint32_t sockets_per_peer = 1;        ///< TCP connections, or queue pairs, that a pair's transfers are dealt to.
  engine::VerbsOptions verbs;
  std::vector<engine::RouteAddress> routes;  ///< Where given, every route has a TCP connection of its own.
  std::vector<engine::Setting> agreed;  ///< What all ranks must have alike besides; joining fails where they do not.
  std::function<std::unique_ptr<engine::Device>()> make_device;  ///< What works on this rank's memories; else the host.
  /// The transports that the job may use, the preferred ones first; else those that `transport` allows.
  std::function<std::vector<std::unique_ptr<engine::Transport>>(engine::rendezvous::ControlPlane&,
                                                                const std::vector<engine::rendezvous::PeerInfo>&)>
      make_transports;
};

namespace engine {

struct NotedCall;

/// What all communicators of a process share: the job's ranks and the transports that reach them.
class Job {
 public:
  /// Joins the other ranks and finds out how to reach each. Collective.
  /// Errors: those of ControlPlane::join; unavailable when a forced transport cannot be had.
  static Result<std::shared_ptr<Job>> join(JobOptions options);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  [[nodiscard]] const JobOptions& options() const { return options_; }
  [[nodiscard]] std::uint32_t rank() const { return control_->rank(); }
  [[nodiscard]] std::uint32_t world() const { return control_->world(); }
  [[nodiscard]] rendezvous::ControlPlane& control() { return *control_; }
  [[nodiscard]] MemoryRegistry& memory() { return *memory_; }
  [[nodiscard]] Device& device() { return *device_; }
  /// Of the device, for the calls of all communicators.
  [[nodiscard]] DeviceQueue& queue() { return *queue_; }
  [[nodiscard]] Waiting& waiting() { return *waiting_; }
  /// How each rank is reached, by rank.
  [[nodiscard]] const std::vector<PeerTransport>& peer_transports() const { return peer_transports_; }
  /// Those in use, the preferred ones first.
  [[nodiscard]] std::span<const std::unique_ptr<Transport>> transports() const { return transports_; }
  /// Those that move bytes only when they are asked to.
  [[nodiscard]] std::span<Transport* const> progressing() const { return progressing_; }

  /// Fails the job on all ranks; from any thread, also while a call runs.
  void abort(std::string_view reason);
  /// Whether `abort` was called here.
  [[nodiscard]] const std::atomic<bool>& is_aborted() const { return is_aborted_; }
  /// Whether this process is a fork of the one that joined. Cost: a load.
  [[nodiscard]] bool is_forked() const { return fork_guard_.is_child(); }
  /// Tells groups of one name and members apart, who all hash to this: the same on all members.
  std::uint64_t number_group(std::uint64_t hash) { return hash + ++groups_[hash]; }

  /// Calls that are launched together: noted between the two, in the order of the calls.
  void begin_noting() { is_noting_ = true; }
  [[nodiscard]] bool is_noting() const { return is_noting_; }
  void note(const NotedCall& call);
  std::vector<NotedCall> end_noting();

  /// Runs tasks one after the other on the job's own thread.
  void enqueue(std::function<void()> task);
  /// Waits until all tasks that were enqueued have run. Cost: a load while there are none.
  void drain();

 private:
  Job();
  Result<void> set_up();
  Result<void> check_settings();
  Result<void> find_transports();
  /// Finds out which ranks that are not reached yet a transport reaches; true when all ranks reach all others then.
  Result<bool> attach(Transport& transport);
  Result<void> check_reach() const;
  void make_waiting(bool is_oversubscribed);
  void work();

  JobOptions options_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<DeviceQueue> queue_;
  ForkGuard fork_guard_;
  std::unique_ptr<rendezvous::ControlPlane> control_;
  std::vector<std::unique_ptr<Transport>> transports_;
  std::vector<Transport*> progressing_;
  std::unique_ptr<MemoryRegistry> memory_;
  std::optional<Waiting> waiting_;
  std::vector<PeerTransport> peer_transports_;  ///< By rank; the own entry names the first transport.
  std::atomic<bool> is_aborted_ = false;

  std::map<std::uint64_t, std::uint32_t> groups_;
  bool is_noting_ = false;
  std::vector<NotedCall> noted_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::atomic<std::uint32_t> pending_ = 0;
  bool is_ending_ = false;
  std::thread worker_;
};

}  // namespace engine
}  // namespace espalier
