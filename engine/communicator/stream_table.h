#pragma once

// Tested by: tests/unit/engine/communicator/communicator_test.cpp

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/executor/execution.h"
#include "engine/program/rank_program.h"
#include "engine/transport/transport.h"

namespace espalier::engine {

/// The streams of one communicator, numbered by peer and direction, and made when a program first needs them.
class StreamTable {
 public:
  StreamTable(std::vector<std::uint32_t> members, std::uint32_t self) : members_(std::move(members)), self_(self) {}
  /// What carries the streams to and from each member; null for this rank.
  void set_transports(std::vector<GroupTransport*> by_member) { transports_ = std::move(by_member); }

  /// The number of the stream that a transfer takes (StreamChoice of the program).
  [[nodiscard]] std::uint32_t choose_stream(const Schedule& schedule, const Transfer& transfer) const;
  /// The ends of a program's streams. Errors: unavailable when a connection cannot be made.
  Result<std::vector<StreamEnds>> connect(const RankProgram& program, std::chrono::milliseconds timeout);
  /// Whether the members get all that was sent to them without this rank.
  [[nodiscard]] bool is_settled() const;

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
  Result<void> make(const Key& key, std::chrono::steady_clock::time_point deadline);

  std::vector<std::uint32_t> members_;
  std::uint32_t self_;
  std::vector<GroupTransport*> transports_;
  std::map<Key, Ends> ends_;
};

}  // namespace espalier::engine
