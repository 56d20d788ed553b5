#include <vector>

#include "engine/communicator/group.h"

// The group's part in calls with counts per peer (direct_call.h).

namespace espalier::engine {

Result<void> Group::make_direct() {
  if (!job_->options().routes.empty()) {
    return fail(ErrorCode::unsupported, "connections that lead where a plan's routes do carry that plan alone",
                "join without addresses for an all_to_all with counts per peer");
  }
  // A schedule of two parts, for the transports to say which streams a transfer of which part takes.
  const auto collective = make_collective(CollectiveKind::all_to_all, size(), std::nullopt);
  if (!collective) return tl::unexpected(collective.error());
  Schedule schedule(*collective, "direct", "direct");
  const auto streams = [&](Rank from, Rank to) {
    const RouteId route = schedule.add_route(from, to, {});
    std::vector<std::uint32_t> numbers;
    for (std::uint32_t part = 0;; ++part) {  // They are dealt in turn.
      Transfer transfer;
      transfer.route = route;
      transfer.first_slice = SliceId(part);
      transfer.slice_count = 1;
      const std::uint32_t number = streams_.choose_stream(schedule, transfer);
      if (part > 0 && number == numbers.front()) return numbers;
      numbers.push_back(number);
    }
  };
  direct_ = std::make_unique<DirectCall>(size(), Rank(self_), streams, default_chunk());
  return {};
}

Result<PreparedCall*> Group::prepare_direct(CallArguments& arguments, QueuePoint callers_work) {
  if (!direct_) {
    if (auto made = make_direct(); !made) return tl::unexpected(made.error());
  }
  if (auto taken = direct_->take(arguments); !taken) return tl::unexpected(taken.error());
  if (!direct_->kept().empty()) {
    if (auto kept = keep_blocks(arguments, callers_work); !kept) return tl::unexpected(kept.error());
  }
  return &direct_->prepared();
}

Result<void> Group::keep_blocks(CallArguments& arguments, QueuePoint callers_work) {
  if (callers_work.queue != nullptr) {
    if (auto done = await_device(callers_work); !done) return done;
  }
  const DirectCall::Kept& first = direct_->kept().front();
  const bool is_on_host = job_->memory().find(first.from, first.bytes).is_on_host();
  Scratch& kept = is_on_host ? host_input_ : device_input_;
  const MemorySpace space = is_on_host ? MemorySpace::host : MemorySpace::device;
  if (auto reserved = reserve(kept, direct_->kept_bytes(), space); !reserved) return reserved;
  DeviceQueue& queue = job_->queue();
  for (const DirectCall::Kept& block : direct_->kept()) {
    queue.copy(kept.data + block.to, block.from, static_cast<std::size_t>(block.bytes));
  }
  arguments.send = kept.data;
  return await_device({&queue, queue.mark()});
}

Result<SourcedSchedule> one_block_each(const Collective& collective, Bytes) {
  auto schedule = std::make_shared<Schedule>(collective, "members", "direct");
  const std::uint32_t ranks = collective.rank_count;
  schedule->units = collective.part_count();
  for (std::uint32_t from = 0; from < ranks; ++from) {
    for (std::uint32_t to = 0; to < ranks; ++to) {
      const SliceId slice(schedule->slices.size());
      schedule->slices.push_back({slice.value(), 1, Rank(from), Rank(to)});
      if (from == to) continue;
      const RouteId route = schedule->add_route(Rank(from), Rank(to), {});
      schedule->add_transfer(route, slice, 1, Action::copy, ChannelId(0));
    }
  }
  return SourcedSchedule{std::move(schedule), Bytes{}, true};
}

}  // namespace espalier::engine
