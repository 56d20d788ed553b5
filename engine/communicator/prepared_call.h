#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/communicator/job.h"
#include "engine/executor/execution.h"
#include "engine/program/rank_program.h"
#include "engine/shm/shm_peer.h"
#include "engine/tcp/tcp_stream.h"
#include "schedule/schedule_source.h"

namespace espalier::engine {

/// Calls of one shape: what is left per call are the buffers.
struct PreparedCall {
  SourcedSchedule source;
  std::vector<std::int64_t> shares;  ///< As the caller gave them.
  std::uint64_t shares_hash = 0;     ///< Of those of the collective, which have no common factor.
  std::uint64_t schedule_hash = 0;
  Bytes chunk;
  RankProgram program;
  bool is_exchange = false;  ///< Runs as an exchange of all inputs (Execution::begin_exchange) instead of the program.
  bool may_exchange_blocks = false;  ///< Where memory is private (Execution::prefer_blocks).
  [[nodiscard]] bool involves_all() const { return is_exchange || may_exchange_blocks; }
  std::unique_ptr<Execution> execution;  ///< Null until the first call.
  std::vector<ShmPeer*> shm_peers;       ///< Those that the program meets, or all.
  std::uint64_t last_use = 0;            ///< The group's call that used it last.
};

/// The connections of one communicator: streams are numbered by peer and direction, and made when a program first needs
/// it.
class StreamTable {
 public:
  StreamTable(Job& job, std::uint64_t communicator, std::vector<std::uint32_t> members, std::uint32_t self)
      : job_(job), communicator_(communicator), members_(std::move(members)), self_(self) {}

  /// The peers on this machine, in member order; null for others and for the own rank.
  void set_shm_peers(std::vector<std::unique_ptr<ShmPeer>> peers) { shm_peers_ = std::move(peers); }
  [[nodiscard]] ShmPeer* shm_peer(std::uint32_t member) const { return shm_peers_[member].get(); }
  [[nodiscard]] std::span<const std::unique_ptr<ShmPeer>> shm_peers() const { return shm_peers_; }

  /// The number of the stream that a transfer takes (StreamChoice of the program).
  [[nodiscard]] std::uint32_t choose_stream(const Schedule& schedule, const Transfer& transfer) const;
  /// The ends of a program's streams. Errors: unavailable when a connection cannot be made.
  Result<std::vector<StreamEnds>> connect(const RankProgram& program);
  /// Waits until the members have all that was sent to them, so that the ends may go. Gives up when they leave, the
  /// job fails, or the time is up.
  void settle();

 private:
  struct Key {
    bool is_outgoing = false;
    std::uint32_t member = 0;
    std::uint32_t stream = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Ends {
    std::unique_ptr<Sender> sender;
    std::unique_ptr<Receiver> receiver;
  };
  Result<void> make_sender(const Key& key, std::chrono::steady_clock::time_point deadline);
  Result<void> make_receiver(const Key& key, std::chrono::steady_clock::time_point deadline);

  Job& job_;
  std::uint64_t communicator_;
  std::vector<std::uint32_t> members_;
  std::uint32_t self_;
  std::vector<std::unique_ptr<ShmPeer>> shm_peers_;
  std::map<Key, Ends> ends_;
};

/// A hash of what a schedule does, equal on ranks that have the same one.
std::uint64_t hash_of(const Schedule& schedule);

}  // namespace espalier::engine
