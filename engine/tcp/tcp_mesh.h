#pragma once

// Tested by: tests/faults/unauthenticated_test.cpp

#include <atomic>
#include <chrono>
#include <compare>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "engine/rendezvous/control_plane.h"
#include "engine/rendezvous/pending_connections.h"
#include "engine/rendezvous/wire/digest.h"
#include "engine/rendezvous/wire/listener.h"
#include "engine/rendezvous/wire/poller.h"

namespace espalier::engine {

/// Which stream a connection carries: from this rank of the job, for this communicator, the stream of this number.
struct ConnectionKey {
  std::uint64_t communicator = 0;
  std::uint32_t src = 0;
  std::uint32_t stream = 0;
  friend auto operator<=>(const ConnectionKey&, const ConnectionKey&) = default;
};

struct StreamClaim;

/// Makes the connections that carry data between ranks. Both ends prove that they know the job's secret (HMAC-SHA256
/// over fresh nonces). A connection that has not costs one descriptor and a few bytes; how many there are at once and
/// who goes when there are more: PendingPlaces. Thread-safe.
class TcpMesh {
 public:
  /// Of this rank. Listens on `address`, or on all when it is empty. Errors: unavailable.
  static Result<std::unique_ptr<TcpMesh>> create(const std::string& address, std::string secret,
                                                 std::uint32_t rank = 0);
  ~TcpMesh();
  TcpMesh(const TcpMesh&) = delete;
  TcpMesh& operator=(const TcpMesh&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }

  struct Target {
    std::vector<std::string> addresses;  ///< Where it may be reached, the likeliest first.
    std::uint16_t port = 0;
    std::string bind;  ///< The near address; any when empty.
    std::uint32_t rank = 0;
  };
  /// Connects a stream to the rank that receives it, at the first of its addresses where that rank answers. Both give
  /// up when the job fails. Errors: unavailable when the deadline passes or the other end is none of this job.
  Result<FileDescriptor> connect(const ConnectionKey& key, const Target& target,
                                 std::chrono::steady_clock::time_point deadline,
                                 const rendezvous::ControlPlane& control);
  /// The connection that the sender of a stream made to this rank.
  Result<FileDescriptor> accept(const ConnectionKey& key, std::chrono::steady_clock::time_point deadline,
                                const rendezvous::ControlPlane& control);

 private:
  /// An accepted connection that has not authenticated.
  struct Pending {
    FileDescriptor socket;
    rendezvous::Digest nonce{};
    std::string received;  ///< Of its claim.

    [[nodiscard]] int fd() const { return socket.get(); }
  };

  TcpMesh(std::string secret, std::uint32_t rank);
  // These run in a thread of their own.
  void serve();
  void handle(std::uint64_t token, std::chrono::steady_clock::time_point now);
  static std::optional<Pending> welcome(FileDescriptor socket);
  /// Reads its claim as far as it came; true when the connection is of no more use.
  bool authenticate(std::uint64_t token, Pending& pending);
  /// A connection to one of the addresses, or what the last of them said that another try may change.
  Result<FileDescriptor> try_addresses(const ConnectionKey& key, const Target& target,
                                       std::chrono::steady_clock::time_point deadline,
                                       const rendezvous::ControlPlane& control);
  Result<FileDescriptor> try_address(const ConnectionKey& key, const Target& target, std::size_t address,
                                     std::chrono::steady_clock::time_point deadline,
                                     const rendezvous::ControlPlane& control) const;
  /// The connecting end's part of the greeting.
  Result<void> greet(int fd, const StreamClaim& claim, std::chrono::steady_clock::time_point deadline,
                     const rendezvous::ControlPlane& control) const;

  std::uint16_t port_ = 0;
  std::string secret_;
  std::uint32_t rank_;
  rendezvous::Poller poller_;
  rendezvous::PendingConnections<Pending> pending_;
  std::atomic<bool> is_ending_ = false;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<ConnectionKey, FileDescriptor> connections_;
  std::map<std::uint32_t, std::size_t> answered_at_;  ///< By rank, which of its addresses did so last.
  /// Since when nobody could be let in.
  std::optional<std::chrono::steady_clock::time_point> lacks_files_since_;
  std::thread thread_;
};

}  // namespace espalier::engine
