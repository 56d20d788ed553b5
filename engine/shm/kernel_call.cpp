#include "engine/shm/kernel_call.h"

#include <fmt/format.h>

#include <algorithm>

namespace espalier::engine {

KernelCall::KernelCall(ShmGroup& group, std::unique_ptr<RankKernel> kernel, DeviceQueue& queue,
                       std::optional<std::vector<bool>> left_streams, DeviceQueue* captured_by)
    : group_(group),
      kernel_(std::move(kernel)),
      queue_(queue),
      left_streams_(std::move(left_streams)),
      captured_by_(captured_by),
      memories_(group.peers().size()) {}

KernelCall::~KernelCall() {
  kernel_.reset();
  if (shared_ == nullptr) return;
  if (!shared_id_.is_none()) group_.domain().free(shared_id_);
  queue_.device().release(shared_, 0);
}

Result<void> KernelCall::begin(const StreamCall& call, Recorder* recorder) {
  call_ = &call;
  recorder_ = recorder;
  members_entered_ = 0;
  runs_ = false;
  turn_ = group_.kernel_turns().begun++;
  group_.enter(call);
  group_.mark_all();  // All wait for all.
  return {};
}

bool KernelCall::all_entered() {
  const auto peers = group_.peers();
  for (; members_entered_ < peers.size(); ++members_entered_) {
    const auto& peer = peers[members_entered_];
    if (peer && !peer->has_entered(*call_)) return false;
  }
  return true;
}

bool KernelCall::are_all_on_devices() const {
  const std::uint64_t sequence = call_->header->sequence;
  const auto is_on_device = [](const SharedCall& call) { return (call.on_device & SharedCall::all_on_device) != 0; };
  return is_on_device(group_.own_call(sequence)) && std::ranges::all_of(group_.peers(), [&](const auto& peer) {
           return !peer || is_on_device(peer->call(sequence));
         });
}

Result<void> KernelCall::show_memory() {
  Device& device = queue_.device();
  const auto memory = device.allocate(std::max<std::int64_t>(1, kernel_->shared_bytes()), MemorySpace::device);
  if (!memory) return tl::unexpected(memory.error());
  shared_ = *memory;
  const auto shared = device.share_memory(shared_, kernel_->shared_bytes());
  if (!shared) return tl::unexpected(shared.error());
  const auto id = group_.domain().name_device_memory(*shared);
  if (!id) return tl::unexpected(id.error());
  shared_id_ = *id;
  group_.show_kernel_memory(call_->header->sequence, shared_id_);
  return {};
}

Result<bool> KernelCall::attach() {
  if (shared_ == nullptr) {
    if (auto shown = show_memory(); !shown) return tl::unexpected(shown.error());
  }
  std::vector<std::byte*> addresses;
  for (const auto& peer : group_.peers()) {
    if (!peer) {
      addresses.push_back(shared_);
      continue;
    }
    const auto theirs = peer->kernel_memory(call_->header->sequence);
    if (!theirs) return false;
    const auto opened = group_.domain().open_device_memory(peer->place().rank, *theirs);
    if (!opened) return tl::unexpected(opened.error());
    addresses.push_back(*opened);
  }
  if (auto attached = kernel_->attach(addresses); !attached) return tl::unexpected(attached.error());
  is_attached_ = true;
  return true;
}

Result<bool> KernelCall::launch() {
  if (!is_attached_) {
    if (auto attached = attach(); !attached || !*attached) return attached;
  }
  if (kernel_queue_ == nullptr) {
    const auto queue = leaves_streams() ? group_.kernel_queue() : Result<DeviceQueue*>(&queue_);
    if (!queue) return tl::unexpected(queue.error());
    kernel_queue_ = *queue;
  }
  const CallHeader& header = *call_->header;
  const auto peers = group_.peers();
  for (std::size_t member = 0; member < peers.size(); ++member) {
    if (!peers[member]) {
      memories_[member] = call_->buffers->base;
      continue;
    }
    if (!kernel_->reached()[member]) continue;
    const auto mapped = peers[member]->map_memories(header.sequence);
    if (!mapped) return tl::unexpected(mapped.error());
    memories_[member] = mapped->base;
  }
  if (captured_by_ != nullptr) {
    auto given = kernel_->capture(*captured_by_, queue_, header.type, header.operation, memories_);
    return given ? Result<bool>(true) : tl::unexpected(given.error());
  }
  auto given = kernel_->launch(*kernel_queue_, header.type, header.operation, memories_, recorder_ != nullptr);
  if (!given) return tl::unexpected(given.error());
  mark_ = kernel_queue_->mark();
  runs_ = true;
  return true;
}

WholeCall::Progress KernelCall::advance() {
  if (call_->error->cause()) return Progress::none;
  if (!runs_) {
    if (!all_entered() || group_.kernel_turns().gone != turn_) return Progress::none;
    const bool is_declined = !are_all_on_devices();
    if (is_declined && captured_by_ != nullptr) {
      call_->error->set({ErrorCode::unsupported,
                         "it cannot be captured: not all buffers are memory of the ranks' devices",
                         "let the communicators allocate them in device memory, or register it"});
      return Progress::none;
    }
    const auto launched = is_declined ? Result<bool>(true) : launch();
    if (!launched) call_->error->set(launched.error());
    if (!launched || !*launched) return Progress::none;
    ++group_.kernel_turns().gone;
    if (captured_by_ != nullptr) return Progress::done;
    return is_declined ? Progress::declined : Progress::some;
  }
  if (!kernel_queue_->is_done(mark_)) {
    check_queue();
    return Progress::none;
  }
  if (auto went_well = kernel_->check(); !went_well) {
    call_->error->set(went_well.error());
    return Progress::none;
  }
  if (recorder_ != nullptr) kernel_->record(*recorder_);
  bytes_moved_ += call_->program->receive_bytes;
  return Progress::done;
}

/// Other members' kernels may still look at counters in this one's memory: it stays until they have ended, too.
void KernelCall::close() {
  if (runs_) group_.note_exchanged(call_->header->sequence);
  runs_ = false;
}

std::uint32_t KernelCall::permitted(std::uint32_t stream) const { return runs_ ? kernel_->permitted(stream) : 0; }

void KernelCall::check_queue() {
  if (kernel_queue_ == &queue_ || !kernel_queue_->has_failed()) return;
  const Error& error = kernel_queue_->error();
  call_->error->set(
      {error.code, fmt::format("the device '{}' failed: {}", queue_.device().name(), error.message), error.help});
}

void KernelCall::abandon() {
  if (kernel_queue_ != nullptr && kernel_queue_ != &queue_) kernel_queue_->drain(DeviceQueue::patience);
}

Stall KernelCall::find_stall() const {
  const std::size_t missing = std::min(members_entered_, memories_.size() - 1);
  if (!runs_) return {Rank(static_cast<std::uint32_t>(missing)), "has not entered the call", true};
  return {Rank(0), "or another has not done its part of this call"};
}

}  // namespace espalier::engine
