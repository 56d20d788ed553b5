#include "engine/communicator/counted_plans.h"

#include <algorithm>
#include <numeric>

namespace espalier::engine {
namespace {

/// A rank tells whether its blocks lie in order, then what it sends to each rank, then what it receives from each.
constexpr std::size_t numbers_of(std::size_t ranks) { return 1 + 2 * ranks; }

/// Whether these are counts for so many ranks whose blocks lie one after the other; their sum.
std::optional<std::int64_t> sum_in_order(const BlockCounts& blocks, std::size_t ranks, std::int64_t most) {
  if (blocks.counts.size() != ranks) return std::nullopt;
  if (!blocks.displacements.empty() && blocks.displacements.size() != ranks) return std::nullopt;
  std::int64_t sum = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::int64_t count = blocks.counts[rank];
    if (count < 0 || count > most - sum) return std::nullopt;
    if (count > 0 && !blocks.displacements.empty() && blocks.displacements[rank] != sum) return std::nullopt;
    sum += count;
  }
  return sum;
}

/// Whether a schedule that has the blocks in the order of the ranks can carry out the call.
bool lies_in_order(const CallArguments& arguments, std::size_t ranks) {
  const std::int64_t element = size_of(arguments.type);
  const std::int64_t most = max_message_size.count / element;
  const auto sent = sum_in_order(arguments.send_blocks, ranks, most);
  const auto received = sum_in_order(arguments.receive_blocks, ranks, most);
  if (!sent || !received) return false;
  const auto send = reinterpret_cast<std::uintptr_t>(arguments.send);
  const auto receive = reinterpret_cast<std::uintptr_t>(arguments.receive);
  if ((send == 0 && *sent > 0) || (receive == 0 && *received > 0)) return false;
  const auto send_end = send + static_cast<std::uintptr_t>(*sent * element);
  const auto receive_end = receive + static_cast<std::uintptr_t>(*received * element);
  return send >= receive_end || receive >= send_end;
}

}  // namespace

CountedPlans::~CountedPlans() {
  if (told_ != nullptr) job_->memory().release(told_);
}

Result<void> CountedPlans::tell(const CallArguments& arguments, const RunCall& run) {
  const std::size_t ranks = members_.size();
  const std::size_t numbers = numbers_of(ranks);
  if (told_ == nullptr) {
    const auto space = job_->device().reaches_unpinned() ? MemorySpace::host : MemorySpace::pinned;
    const auto bytes = static_cast<std::int64_t>((ranks + 1) * numbers * sizeof(std::int64_t));
    const auto memory = job_->memory().allocate(bytes, space);
    if (!memory) return tl::unexpected(memory.error());
    told_ = reinterpret_cast<std::int64_t*>(*memory);
  }
  std::fill_n(told_, numbers, 0);
  if (lies_in_order(arguments, ranks)) {
    told_[0] = 1;
    std::ranges::copy(arguments.send_blocks.counts, told_ + 1);
    std::ranges::copy(arguments.receive_blocks.counts, told_ + 1 + ranks);
  }
  return run(members_, {CollectiveKind::all_gather, told_, told_ + numbers, ranks * numbers, ElementType::int64});
}

bool CountedPlans::read_matrix() {
  const std::size_t ranks = members_.size();
  const std::int64_t* const all = told_ + numbers_of(ranks);
  const auto row = [&](std::size_t rank) { return all + rank * numbers_of(ranks); };
  matrix_.assign(ranks * ranks, 0);
  for (std::size_t from = 0; from < ranks; ++from) {
    if (row(from)[0] != 1) return false;
    for (std::size_t to = 0; to < ranks; ++to) {
      const std::int64_t sent = row(from)[1 + to];
      if (row(to)[1 + ranks + from] != sent) return false;
      matrix_[from * ranks + to] = sent;
    }
  }
  return true;
}

std::int64_t CountedPlans::most_of_a_rank() const {
  const std::size_t ranks = members_.size();
  std::int64_t most = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::int64_t sent = 0, received = 0;
    for (std::size_t peer = 0; peer < ranks; ++peer) {
      sent += matrix_[rank * ranks + peer];
      received += matrix_[peer * ranks + rank];
    }
    most = std::max({most, sent, received});
  }
  return most;
}

Result<std::optional<CallArguments>> CountedPlans::plan(const CallArguments& arguments, const RunCall& run) {
  if (members_.size() > max_counted_ranks) return std::nullopt;
  if (auto told = tell(arguments, run); !told) return tl::unexpected(told.error());
  if (!read_matrix()) return std::nullopt;
  const std::int64_t most = most_of_a_rank();
  if (most == 0) return std::nullopt;
  const auto collective = make_collective(CollectiveKind::all_to_all, members_.size(), std::nullopt, matrix_);
  if (!collective) return std::nullopt;  // Counts that only direct messages can have.
  const auto planned = schedules_(*collective, Bytes{most * size_of(arguments.type)});
  if (!planned) return tl::unexpected(planned.error());
  if (planned->schedule == nullptr) return std::nullopt;
  if (!group_) {
    auto made = Group::make(job_, members_.members(), members_.name() + "/planned", schedules_);
    if (!made) return tl::unexpected(made.error());
    group_ = std::move(*made);
  }
  CallArguments call = arguments;
  call.send_blocks = call.receive_blocks = {};
  call.count = static_cast<std::size_t>(most);
  call.shares = matrix_;
  return call;
}

}  // namespace espalier::engine
