#include "engine/executor/rank_cores.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <utility>

#include "engine/executor/clock.h"

namespace espalier::engine {
namespace {

/// Of the time, at most one part in so many goes into looking for an emptier core, and into moves that part ranks:
/// where another program computes, a move ends with that program's time slice.
constexpr std::int64_t share_of_looks = 100;
constexpr std::int64_t share_of_moves = 10;

}  // namespace

RankCores::RankCores(Shown& own, std::vector<const Shown*> others) : own_(&own), others_(std::move(others)) { show(); }

void RankCores::show() {
  if (own_ == nullptr) return;
  const auto core = static_cast<std::uint32_t>(sched_getcpu() + 1);  // -1, an error: 0, unknown.
  if (core == shown_) return;
  shown_ = core;
  own_->store(core, std::memory_order_relaxed);
}

bool RankCores::shares_core() {
  show();
  if (!is_shared()) return false;
  const std::int64_t begin = now_ns();
  if (begin < next_look_ns_) return true;
  const std::uint32_t emptier = find_emptier();
  if (emptier != 0) go_to(emptier);
  const std::int64_t now = now_ns();
  const bool is_still_shared = is_shared();
  next_look_ns_ = now + (is_still_shared ? share_of_looks : share_of_moves) * (now - begin);
  return is_still_shared;
}

bool RankCores::is_shared() const {
  return shown_ != 0 && std::ranges::any_of(others_, [this](const Shown* other) {
           return other->load(std::memory_order_relaxed) == shown_;
         });
}

void RankCores::go_to(std::uint32_t core) {
  cpu_set_t allowed;
  cpu_set_t there;
  CPU_ZERO(&there);
  CPU_SET(core - 1, &there);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 || sched_setaffinity(0, sizeof(there), &there) != 0) return;
  sched_setaffinity(0, sizeof(allowed), &allowed);
  ++moves_;
  show();
}

std::uint32_t RankCores::find_emptier() const {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return 0;
  std::array<std::uint16_t, CPU_SETSIZE + 1> ranks{};  // The others, by core and 1.
  for (const Shown* other : others_) {
    ++ranks[std::min<std::uint32_t>(other->load(std::memory_order_relaxed), CPU_SETSIZE)];
  }
  std::uint32_t best = 0;
  for (std::uint32_t step = 1; step <= CPU_SETSIZE; ++step) {  // The nearest first, as cores of a socket are numbered.
    const std::uint32_t core = (shown_ - 1 + step) % CPU_SETSIZE + 1;
    if (!CPU_ISSET(core - 1, &allowed) || ranks[core] + 1 > ranks[shown_]) continue;
    if (best == 0 || ranks[core] < ranks[best]) best = core;
  }
  return best;
}

}  // namespace espalier::engine
