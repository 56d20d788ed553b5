#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "engine/communicator/group.h"
#include "engine/executor/nvtx_range.h"
#include "engine/executor/run_calls.h"

namespace espalier::engine {
namespace {

/// What ends one call ends the job: the streams are in no state for another. The buffers are the caller's again.
Result<void> give_up(Job& job, std::span<Group* const> groups, Error error) {
  job.abort(error.message);
  for (Group* group : groups) group->abandon();
  job.queue().drain(DeviceQueue::patience);
  return tl::unexpected(std::move(error));
}

/// What NVIDIA's tools show of calls that run together.
std::string text_of(const std::vector<NotedCall>& calls, const std::vector<std::size_t>& round) {
  std::string text = calls[round.front()].group->describe_running();
  if (round.size() > 1) text += fmt::format(" and {} more", round.size() - 1);
  return text;
}

}  // namespace

RunContext context_of(Job& job) {
  RunContext context;
  context.control = &job.control();
  context.transports = job.transports();
  context.progressing = job.progressing();
  context.waiting = &job.waiting();
  context.is_aborted = &job.is_aborted();
  context.timeout = job.options().timeout;
  return context;
}

Result<void> capture_call(Job& job, Group& group, const CallArguments& arguments) {
  const auto beside = job.device().work_beside_capture();
  auto captured = group.capture(arguments);
  // A call that is refused is refused on all ranks, before any waits for another.
  if (!captured && captured.error().code != ErrorCode::unsupported) {
    return give_up(job, {}, std::move(captured.error()));
  }
  return captured;
}

Result<void> run_call(Job& job, Group& group, const CallArguments& arguments, QueuePoint callers_work) {
  const std::array groups = {&group};
  auto begun = group.begin(arguments, callers_work);
  if (!begun) return give_up(job, groups, std::move(begun.error()));
  const NvtxRange range([&] { return group.describe_running(); });
  if (auto ran = run_calls(std::span(&*begun, 1), context_of(job)); !ran) {
    return give_up(job, groups, std::move(ran.error()));
  }
  if (auto finished = group.finish(arguments); !finished) return give_up(job, groups, std::move(finished.error()));
  for (const auto& transport : job.transports()) transport->reclaim();
  return {};
}

Result<void> run_noted(Job& job, std::vector<NotedCall> calls) {
  // All members begin their calls in one order, for beginning may wait for the others.
  std::ranges::stable_sort(calls, {}, [](const NotedCall& call) { return call.group->id(); });
  std::vector<Group*> groups;
  for (const NotedCall& call : calls) groups.push_back(call.group);
  std::vector<bool> has_run(calls.size());
  std::size_t left = calls.size();
  while (left > 0) {
    std::vector<std::size_t> round;  // The next call of each group.
    std::vector<RunningCall> running;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const bool is_busy =
          std::ranges::any_of(round, [&](std::size_t other) { return calls[other].group == calls[i].group; });
      if (has_run[i] || is_busy) continue;
      auto begun = calls[i].group->begin(calls[i].arguments, callers_work_of(calls[i].arguments));
      if (!begun) return give_up(job, groups, std::move(begun.error()));
      running.push_back(*begun);
      round.push_back(i);
    }
    const NvtxRange range([&] { return text_of(calls, round); });
    if (auto ran = run_calls(running, context_of(job)); !ran) return give_up(job, groups, std::move(ran.error()));
    for (const std::size_t i : round) {
      if (auto finished = calls[i].group->finish(calls[i].arguments); !finished) {
        return give_up(job, groups, std::move(finished.error()));
      }
      has_run[i] = true;
    }
    left -= round.size();
  }
  for (const auto& transport : job.transports()) transport->reclaim();
  return {};
}

}  // namespace espalier::engine
