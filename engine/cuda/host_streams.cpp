#include "engine/cuda/host_streams.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace espalier::engine::cuda {
namespace {

struct CounterEnds {
  Rank from;
  Rank to;
};

/// Between which ranks the bytes go that a counter counts; of a rank's own counter, itself twice.
std::vector<CounterEnds> find_counter_ends(const DeviceProgram& program) {
  std::vector<CounterEnds> ends(program.counter_count);
  for (const Block& block : program.blocks) {
    for (const Step& step : std::span(program.steps).subspan(block.first_step, block.step_count)) {
      if (step.signal != no_counter) ends[step.signal] = {step.peer, block.rank};
      for (const Destination& to :
           std::span(program.destinations).subspan(step.first_destination, step.destination_count)) {
        if (to.signal != no_counter) ends[to.signal] = {block.rank, to.rank};
      }
    }
  }
  return ends;
}

using ChunkKey = std::pair<TransferId, std::uint32_t>;

/// The steps of each chunk that hosts move, one for each part of it.
std::map<ChunkKey, std::vector<const Step*>> find_host_steps(const DeviceProgram& program) {
  std::map<ChunkKey, std::vector<const Step*>> steps;
  for (const Block& block : program.blocks) {
    if (!block.by_host) continue;
    for (const Step& step : std::span(program.steps).subspan(block.first_step, block.step_count)) {
      steps[{step.transfer, step.chunk}].push_back(&step);
    }
  }
  return steps;
}

}  // namespace

std::vector<HostOp> find_host_ops(const DeviceProgram& program, const RankProgram& own, const Schedule& schedule,
                                  Rank self, const std::vector<bool>& in_kernel) {
  if (in_kernel.empty()) return {};
  const std::vector<CounterEnds> ends = find_counter_ends(program);
  const auto steps = find_host_steps(program);
  using Order = std::tuple<std::uint32_t, SliceId, std::uint32_t, std::uint32_t, TransferId>;  // MoveOrder's.
  std::vector<std::pair<Order, HostOp>> found;
  for (std::uint32_t stream = 0; stream < own.streams.size(); ++stream) {
    const Stream& of = own.streams[stream];
    if (in_kernel[of.peer.index()]) continue;
    for (std::uint32_t i = 0; i < of.op_count; ++i) {
      const Op& op = own.ops[of.first_op + i];
      HostOp host{stream, i, of.peer, of.is_outgoing, op.transfer, op.chunk, {}, {}};
      std::map<std::uint32_t, std::uint32_t> waits;
      for (const Step* step : steps.at({op.transfer, op.chunk})) {
        host.signals.push_back(step->signal);
        for (const CounterWait& wait : std::span(program.waits).subspan(step->first_wait, step->wait_count)) {
          const auto& [from, to] = ends[wait.counter];
          if (from != self && to != self) continue;
          std::uint32_t& count = waits[wait.counter];
          count = std::max(count, wait.count);
        }
      }
      for (const auto& [counter, count] : waits) host.waits.push_back({counter, count});
      const Transfer& moved = schedule.transfers[op.transfer.index()];
      found.emplace_back(Order{op.level, moved.first_slice, moved.slice_count, op.chunk, op.transfer}, std::move(host));
    }
  }
  std::ranges::sort(found, {}, &std::pair<Order, HostOp>::first);
  std::vector<HostOp> ops;
  for (auto& [order, op] : found) ops.push_back(std::move(op));
  return ops;
}

std::vector<Rank> counter_places(const DeviceProgram& program, const std::vector<bool>& in_kernel, Rank self) {
  std::vector<Rank> places = counter_owners(program);
  if (in_kernel.empty()) return places;
  const std::vector<CounterEnds> ends = find_counter_ends(program);
  for (std::size_t counter = 0; counter < places.size(); ++counter) {
    if (in_kernel[places[counter].index()]) continue;
    const auto& [from, to] = ends[counter];
    places[counter] = in_kernel[from.index()] ? from : in_kernel[to.index()] ? to : self;
  }
  return places;
}

void add_host_blocks(KernelProgram& lowered, Rank self, std::span<const HostOp> ops,
                     std::span<std::uint32_t* const> counters, std::span<const HostStreamWords> words) {
  if (ops.empty()) return;
  std::map<const std::uint32_t*, std::uint32_t> per_run;
  for (const KernelStep& step : lowered.steps) ++per_run[step.signal];
  for (const KernelDestination& to : lowered.destinations) ++per_run[to.signal];
  const auto begin_block = [&] {
    const auto first = static_cast<std::uint32_t>(lowered.steps.size());
    const auto number = static_cast<std::uint32_t>(lowered.blocks.size());
    lowered.blocks.push_back({self.value(), first, static_cast<std::uint32_t>(ops.size()), number});
  };
  const auto begin_step = [&](std::uint32_t* signal) -> KernelStep& {
    KernelStep& step = lowered.steps.emplace_back();
    step.first_wait = static_cast<std::uint32_t>(lowered.waits.size());
    step.first_destination = static_cast<std::uint32_t>(lowered.destinations.size());
    step.signal = signal;
    return step;
  };
  begin_block();
  for (const HostOp& op : ops) {
    KernelStep& step = begin_step(words[op.stream].permitted);
    for (const CounterWait& wait : op.waits) {
      lowered.waits.push_back({counters[wait.counter], wait.count, per_run[counters[wait.counter]]});
    }
    step.wait_count = static_cast<std::uint32_t>(op.waits.size());
  }
  begin_block();
  for (const HostOp& op : ops) {
    ESPALIER_CHECK(!op.signals.empty(), "somebody learns of every op");
    KernelStep& step = begin_step(counters[op.signals.front()]);
    lowered.waits.push_back({words[op.stream].done, op.index + 1, words[op.stream].op_count});
    step.wait_count = 1;
    for (const std::uint32_t signal : std::span(op.signals).subspan(1)) {
      lowered.destinations.push_back({self.value(), 0, 0, counters[signal]});
    }
    step.destination_count = static_cast<std::uint32_t>(op.signals.size()) - 1;
  }
}

}  // namespace espalier::engine::cuda
