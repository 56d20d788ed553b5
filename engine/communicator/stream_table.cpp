#include "engine/communicator/stream_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace espalier::engine {

std::uint32_t StreamTable::choose_stream(const Schedule& schedule, const Transfer& transfer) const {
  const std::uint32_t src = schedule.src(transfer).value();
  const std::uint32_t peer = src == self_ ? schedule.dst(transfer).value() : src;
  return transports_[peer]->choose_stream(schedule, transfer);
}

Result<std::vector<StreamEnds>> StreamTable::connect(const RankProgram& program, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  // First all connections out: the other ends accept at any time, so nobody waits in a circle.
  for (const bool outgoing : {true, false}) {
    for (const Stream& stream : program.streams) {
      if (stream.is_outgoing != outgoing) continue;
      const Key key{outgoing, stream.peer.value(), stream.number};
      if (ends_.contains(key)) continue;
      if (const auto made = make(key, deadline); !made) {
        return fail(made.error().code,
                    fmt::format("no connection {} rank {}: {}", outgoing ? "to" : "from", members_[key.member],
                                made.error().message),
                    made.error().help);
      }
    }
  }
  std::vector<StreamEnds> found;
  for (const Stream& stream : program.streams) {
    const Ends& ends = ends_.at({stream.is_outgoing, stream.peer.value(), stream.number});
    found.push_back({ends.sender.get(), ends.receiver.get()});
  }
  return found;
}

bool StreamTable::is_settled() const {
  return std::ranges::all_of(
      ends_, [](const auto& entry) { return !entry.second.sender || entry.second.sender->is_settled(); });
}

Result<void> StreamTable::make(const Key& key, std::chrono::steady_clock::time_point deadline) {
  GroupTransport& transport = *transports_[key.member];
  if (key.is_outgoing) {
    auto sender = transport.connect(key.member, key.stream, deadline);
    if (!sender) return tl::unexpected(sender.error());
    ends_[key].sender = std::move(*sender);
  } else {
    auto receiver = transport.accept(key.member, key.stream, deadline);
    if (!receiver) return tl::unexpected(receiver.error());
    ends_[key].receiver = std::move(*receiver);
  }
  return {};
}

}  // namespace espalier::engine
