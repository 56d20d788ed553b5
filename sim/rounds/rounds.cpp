#include "sim/rounds/rounds.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace espalier::sim {
namespace {

/// By transfer: its first chunk's round, one more than those of all that it waits for.
std::vector<std::uint32_t> find_first_rounds(const CompiledSchedule& compiled, const Chunking& chunking) {
  const std::vector<Transfer>& transfers = compiled.schedule().transfers;
  std::vector<std::uint32_t> first(transfers.size(), 0);
  const auto round_after = [&](TransferId transfer) {
    std::uint32_t round = 0;
    for (const Dependency dependency : compiled.dependencies().of(transfer)) {
      round = std::max(round, first[dependency.transfer().index()] + 1);
    }
    return round;
  };
  const SharedWaits& shared = compiled.shared_waits();
  std::vector<std::optional<std::uint32_t>> after_shared(shared.count());
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    if (const std::uint32_t list = shared.of(TransferId(i)); list != SharedWaits::none) {
      if (!after_shared[list]) after_shared[list] = round_after(TransferId(i));
      first[i] = std::max(first[i], *after_shared[list]);
    } else {
      first[i] = std::max(first[i], round_after(TransferId(i)));
    }
    // What is handed over behind it on its lane comes later in the program.
    const TransferId next = compiled.lanes().next[i];
    if (!next.is_none()) {
      first[next.index()] = std::max(first[next.index()], first[i] + chunking.pieces(transfers[i]).count);
    }
  }
  return first;
}

}  // namespace

Rounds::Rounds(const CompiledSchedule& compiled, const Chunking& chunking, std::uint32_t ahead) {
  if (ahead == 0 || !compiled.shares_resources()) return;
  std::vector<std::uint32_t> first = find_first_rounds(compiled, chunking);
  std::uint32_t count = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    count = std::max(count, first[i] + chunking.pieces(compiled.schedule().transfers[i]).count);
  }
  if (ahead >= count) return;
  first_ = std::move(first);
  ahead_ = ahead;
}

}  // namespace espalier::sim
