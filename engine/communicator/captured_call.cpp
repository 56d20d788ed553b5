#include "engine/communicator/captured_call.h"

#include <fmt/format.h>

#include "engine/communicator/group.h"

namespace espalier::engine {
namespace {

/// Tells captured calls from others where ranks compare what they call.
constexpr std::uint64_t captured_mark = 0x9E3779B97F4A7C15;

}  // namespace

Error Group::why_not_captured(const PreparedCall& prepared) const {
  std::string reason = "its schedule is not one for them";
  if (size() == 1) reason = "a rank alone copies by its host";
  for (std::uint32_t member = 0; member < size(); ++member) {
    const PeerTransport& peer = job_->peer_transports()[members_[member]];
    if (member == self_ || peer.carries_out_calls) continue;
    reason = fmt::format("rank {} is reached by {} ({})", members_[member], peer.transport, peer.reason);
    break;
  }
  return {ErrorCode::unsupported,
          fmt::format("{} of {} bytes cannot be captured: no kernels carry it out on all ranks: {}",
                      to_string(prepared.source.schedule->collective.kind), prepared.program.receive_bytes, reason),
          "call it outside of the capture, or give each rank a GPU that opens the memory of the others'"};
}

Result<std::unique_ptr<CapturedCall>> Group::make_captured(const PreparedCall& prepared,
                                                           const CallArguments& arguments) {
  const Schedule& schedule = *prepared.source.schedule;
  const Bytes bytes{static_cast<std::int64_t>(arguments.count) * size_of(arguments.type)};
  const auto layout = Layout::make(schedule, bytes, size_of(arguments.type));
  if (!layout) return tl::unexpected(layout.error());
  const Pacing pacing{prepared.chunk, prepared.source.ahead};
  auto call = std::make_unique<CapturedCall>(*job_);
  for (const auto& transport : transports_) {
    if (call->whole) break;
    call->whole = transport->make_whole_call(
        {schedule, *layout, pacing, prepared.program, arguments.kind, bytes, false, arguments.queue}, job_->queue());
  }
  if (!call->whole) return tl::unexpected(why_not_captured(prepared));
  return call;
}

Result<void> Group::capture(const CallArguments& arguments) {
  CallHeader header = header_of(arguments);
  auto captured = capture(arguments, header);
  if (!captured) return tl::unexpected(in_call(header, std::move(captured.error())));
  return captured;
}

Result<void> Group::capture(const CallArguments& arguments, CallHeader& header) {
  if (job_->control().has_failed()) return tl::unexpected(job_->control().failure_error());
  if (job_->is_aborted()) return fail(ErrorCode::unavailable, "the job failed before", "join a new job");
  const auto found = prepare(arguments);
  if (!found) return tl::unexpected(found.error());
  PreparedCall& prepared = **found;
  if (auto checked = check(arguments, prepared.program); !checked) return checked;
  auto call = make_captured(prepared, arguments);
  if (!call) return tl::unexpected(call.error());
  header.schedule = prepared.schedule_hash ^ captured_mark;
  header.chunk = static_cast<std::uint64_t>(prepared.chunk.count);
  header.shares = prepared.shares_hash;
  auto buffers = find_buffers(arguments, prepared.program);
  if (!buffers) return tl::unexpected(buffers.error());
  const auto replace = [&](Place place, std::byte*& memory, std::int64_t size) -> Result<void> {
    const auto allocated = job_->memory().allocate(size, MemorySpace::device);
    if (!allocated) return tl::unexpected(allocated.error());
    memory = *allocated;
    buffers->base[static_cast<std::size_t>(place)] = memory;
    buffers->registered[static_cast<std::size_t>(place)] = job_->memory().find(memory, size);
    return {};
  };
  const RankProgram& program = prepared.program;
  if (program.scratch_bytes > 0) {
    if (auto made = replace(Place::scratch, (*call)->scratch, program.scratch_bytes); !made) return made;
  }
  if (program.keeps_input && is_in_place(arguments, program)) {
    if (auto made = replace(Place::send, (*call)->input, program.send_bytes); !made) return made;
    arguments.queue->copy((*call)->input, static_cast<const std::byte*>(arguments.send),
                          static_cast<std::size_t>(program.send_bytes));
  }
  if (auto open = await_window(); !open) return open;
  auto ends = streams_.connect(prepared.program, job_->options().timeout);
  if (!ends) return tl::unexpected(ends.error());
  Execution execution(prepared.program, std::move(*ends), job_->queue());
  if (auto begun = execution.begin_whole(header, *buffers, nullptr, *(*call)->whole); !begun) return begun;
  const RunningCall running{&execution, name_, members_, transports_};
  if (auto ran = run_calls(std::span(&running, 1), context_of(*job_)); !ran) return ran;
  execution.close();
  const bool is_divided = arguments.operation == ReduceOperation::avg && reduces(arguments.kind);
  if (is_divided && prepared.program.receive_bytes > 0) {
    const auto elements = static_cast<std::size_t>(prepared.program.receive_bytes / prepared.program.element_size);
    arguments.queue->divide(arguments.type, arguments.receive, elements, size());
  }
  captured_.push_back(std::move(*call));
  // What ranks show each other of this call's kernels has room for one call at a time.
  return job_->control().barrier("espalier/captured/" + name_, members_, job_->options().timeout);
}

Result<void> Group::check_captured() const {
  for (const auto& call : captured_) {
    if (auto went_well = call->whole->check_captured(); !went_well) return went_well;
  }
  return {};
}

}  // namespace espalier::engine
