#pragma once

// Tested by: python/tests/torch_backend.py

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "python/torch/device_communicator.h"
#include "python/torch/device_stage.h"
#include "python/torch/group_work.h"

namespace espalier::python {

/// Messages between two members with tags, beside the group's collectives: sends and receives that were started go on
/// side by side, in any order. Each direction between two members is a job of two ranks with a thread at either end,
/// made at its first message; a message is a header and the tensor's bytes. Bytes of a GPU's tensors go from GPU to GPU
/// by a job of their own, where the engine can at both ends. Thread-safe.
///
/// Invariants: messages of one sender and tag arrive in the order that they were sent; a receive takes the first that
/// fits it; what arrives before its receive is kept.
class Mailroom {
 public:
  /// Joins the job of the direction from one member to another, of the host or with this rank's GPU; gives up when
  /// `is_over`.
  using Join = std::function<Owned<EngineJob>(std::uint32_t from, std::uint32_t to, const std::atomic<bool>& is_over,
                                              Owned<EngineGpu> gpu)>;

  Mailroom(Engine& engine, std::uint32_t self, std::uint32_t size, DeviceTensors device_tensors, Join join);
  Mailroom(const Mailroom&) = delete;
  Mailroom& operator=(const Mailroom&) = delete;
  /// Messages whose end nobody waited for end with an error.
  ~Mailroom();

  void send(c10::intrusive_ptr<GroupWork> work, StagedTensor tensor, std::uint32_t to, int tag);
  /// `from`: none for the first that comes.
  void receive(c10::intrusive_ptr<GroupWork> work, StagedTensor tensor, std::optional<std::uint32_t> from, int tag);
  /// Ends all messages with this peer, or all there are, on both ends.
  void abort(std::optional<std::uint32_t> peer, const std::string& reason);

 private:
  /// How the bytes of a message go: as it is, or as both ends find out first.
  enum class Path : std::int64_t { host, gpu, ask };
  struct Header {
    std::int64_t tag = 0;
    std::int64_t bytes = 0;
    Path path = Path::host;
  };
  struct Outgoing {
    c10::intrusive_ptr<GroupWork> work;
    StagedTensor staged;
    int tag = 0;
  };
  struct Posted {
    c10::intrusive_ptr<GroupWork> work;
    StagedTensor staged;
    std::optional<std::uint32_t> from;
    int tag = 0;
  };
  struct Arrived {
    std::int64_t tag = 0;
    at::Tensor bytes;
  };
  /// One direction, from or to one peer.
  struct Direction {
    std::shared_ptr<EngineJob> ranks;         ///< None before the first message.
    std::shared_ptr<DeviceCommunicator> gpu;  ///< None where messages do not go from GPU to GPU, or none did yet.
    bool asks_for_gpu = true;                 ///< The sender's: whether they may.
    std::deque<Outgoing> outgoing;
    std::deque<Arrived> arrived;
    std::exception_ptr failure;
    bool is_busy = false;  ///< Its thread is in a call of the job's.
    std::thread thread;

    void abort(const std::string& reason) const {
      if (ranks) ranks->abort(reason.c_str());
      if (gpu) gpu->ranks().abort(reason.c_str());
    }
  };

  void send_all(std::uint32_t to, Direction& direction);
  void receive_all(std::uint32_t from, Direction& direction);
  /// One message from a peer, to the receive that it fits or to those that arrived.
  void receive_one(std::uint32_t from, Direction& direction);
  /// The thread's call of the job is over. Before whoever waits for its message learns of that, and may end the group.
  void end_call(Direction& direction);
  void send_one(std::uint32_t to, Direction& direction, const Outgoing& message);
  std::shared_ptr<EngineJob> open(Direction& direction, std::uint32_t from, std::uint32_t to);
  /// Both ends find out whether messages go from GPU to GPU from now on; `device`: of this end's tensor, if it has one.
  void agree_on_gpu(Direction& direction, std::uint32_t from, std::uint32_t to, std::optional<c10::Device> device);
  /// The bytes of a message that has come, by GPU or in `host`. Throws where the job fails.
  at::Tensor receive_bytes(const Header& header, Direction& direction, const at::Tensor& host);
  [[nodiscard]] bool has_posted(std::uint32_t from) const;
  std::optional<Posted> take_posted(std::uint32_t from, std::int64_t tag);
  void fail_direction(std::uint32_t from, Direction& direction, const std::exception_ptr& why);

  Engine& engine_;
  std::uint32_t self_;
  std::uint32_t size_;
  DeviceTensors device_tensors_;
  Join join_;
  std::atomic<bool> is_over_ = false;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint32_t, Direction> to_;    ///< By peer.
  std::map<std::uint32_t, Direction> from_;  ///< By peer.
  std::list<Posted> posted_;                 ///< In the order of the calls.
};

}  // namespace espalier::python
