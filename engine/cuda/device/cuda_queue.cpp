#include "engine/cuda/device/cuda_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "engine/cuda/device/launch_shape.h"
#include "engine/cuda/kernels/kernel_call.h"

namespace espalier::engine::cuda {
namespace {

constexpr std::uint64_t hold_words = 1023;       // So many holds at a time.
constexpr std::uint64_t words = hold_words + 1;  // A page.
constexpr std::size_t max_events = 64;
constexpr std::chrono::hours longest_of_callers{1};
constexpr unsigned wait_until_at_least = 0;  // CU_STREAM_WAIT_VALUE_GEQ, modulo 2^32.

DeviceAddress address_of(const void* data) { return reinterpret_cast<DeviceAddress>(data); }

}  // namespace

Result<std::unique_ptr<DeviceQueue>> CudaQueue::make(CudaDevice& device) {
  std::unique_ptr<CudaQueue> queue(new CudaQueue(device));
  if (auto done = queue->make_words(); !done) return tl::unexpected(done.error());
  const Driver& driver = device.driver();
  const auto made = driver.check(driver.api().make_stream(&queue->stream_, non_blocking_stream), "make a stream");
  if (!made) return tl::unexpected(made.error());
  queue->owns_stream_ = true;
  return queue;
}

Result<std::unique_ptr<DeviceQueue>> CudaQueue::adopt(CudaDevice& device, DriverHandle stream) {
  std::unique_ptr<CudaQueue> queue(new CudaQueue(device));
  if (auto done = queue->make_words(); !done) return tl::unexpected(done.error());
  queue->stream_ = stream;
  queue->is_adopted_ = true;
  return queue;
}

Result<void> CudaQueue::make_words() {
  const auto memory = gpu_.allocate(words * sizeof(std::uint32_t), MemorySpace::pinned);
  if (!memory) return tl::unexpected(memory.error());
  words_ = reinterpret_cast<std::uint32_t*>(*memory);
  return {};
}

CudaQueue::~CudaQueue() {
  const DriverApi& api = gpu_.driver().api();
  // A stream of the caller's may have been given more than ours; one that captures does none of it yet.
  if (owns_stream_) drain(patience);
  if (is_adopted_ && !is_capturing()) drain(longest_of_callers);
  if (gpu_.is_lost()) return;  // It may still use the stream, its events and words.
  if (owns_stream_ || is_adopted_) {
    for (const Pending& pending : pending_) api.destroy_event(pending.event);
    for (DriverHandle event : unused_) api.destroy_event(event);
    if (owns_stream_) api.destroy_stream(stream_);
  }
  if (words_ != nullptr) gpu_.release(reinterpret_cast<std::byte*>(words_), words * sizeof(std::uint32_t));
}

void CudaQueue::fail_once(Error error) {
  if (!has_failed()) fail_with(std::move(error));
}

void CudaQueue::note(DriverStatus status, std::string_view action) {
  note_given();
  taken_.store(mark(), std::memory_order_release);
  if (status == status_success) return;
  const std::lock_guard lock(mutex_);
  fail_once(gpu_.driver().describe(status, action));
}

void CudaQueue::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (has_failed()) return note(status_success, {});
  gpu_.make_current();
  note(bytes == 0 ? status_success : gpu_.driver().api().copy(address_of(to), address_of(from), bytes, stream_),
       "copy");
}

void CudaQueue::launch(KernelKind kind, ElementType type, ReduceOperation operation, std::uint64_t bytes,
                       void* parameters) {
  const auto kernel = gpu_.find_kernel(kind, type, operation);
  if (!kernel) {
    const std::lock_guard lock(mutex_);
    return fail_once(kernel.error());
  }
  gpu_.make_current();
  std::array<void*, 1> list = {parameters};
  note(gpu_.driver().api().launch(*kernel, blocks_for(gpu_, bytes), 1, 1, threads_per_block, 1, 1, 0, stream_,
                                  list.data(), nullptr),
       "launch " + kernel_name(kind, type, operation));
}

bool CudaQueue::is_capturing() const {
  if (!is_adopted_) return false;
  gpu_.make_current();
  int status = 0;
  return gpu_.driver().api().is_capturing(stream_, &status) == status_success && status == capture_is_active;
}

void CudaQueue::launch_together(DriverHandle kernel, std::uint32_t blocks, KernelCall call,
                                const CudaQueue& stops_with) {
  if (has_failed()) return note(status_success, {});
  call.abort_flag = stops_with.words_ + hold_words;
  call.bulk_copies = gpu_.copies_in_bulk() ? 1 : 0;
  gpu_.make_current();
  std::array<void*, 1> parameters = {&call};
  note(gpu_.driver().api().launch_cooperative(kernel, blocks, 1, 1, threads_per_block, 1, 1, gpu_.shared_bytes(),
                                              stream_, parameters.data()),
       fmt::format("launch the interpreter on GPU {}", gpu_.ordinal()));
}

void CudaQueue::reduce(ElementType type, ReduceOperation operation, std::span<void* const> targets, const void* first,
                       std::span<const void* const> sources, std::size_t element_count) {
  if (has_failed() || element_count == 0) return note(status_success, {});
  if (sources.size() > max_reduce_buffers) {
    note_given();
    const std::lock_guard lock(mutex_);
    return fail_once({ErrorCode::unsupported,
                      fmt::format("a reduction of {} sources: a kernel takes {}", sources.size(), max_reduce_buffers),
                      "use a schedule that adds fewer contributions at a time (a tree)"});
  }
  const std::uint64_t bytes = element_count * static_cast<std::uint64_t>(size_of(type));
  ReduceCall call;
  call.first = static_cast<const unsigned char*>(first);
  call.element_count = element_count;
  const std::size_t in_kernel = std::min<std::size_t>(targets.size(), max_reduce_buffers);
  for (std::size_t i = 0; i < in_kernel; ++i) call.targets[i] = static_cast<unsigned char*>(targets[i]);
  for (std::size_t i = 0; i < sources.size(); ++i) call.sources[i] = static_cast<const unsigned char*>(sources[i]);
  call.target_count = static_cast<std::uint32_t>(in_kernel);
  call.source_count = static_cast<std::uint32_t>(sources.size());
  launch(KernelKind::reduce, type, operation, bytes, &call);
  for (std::size_t i = in_kernel; i < targets.size(); ++i) {
    copy(static_cast<std::byte*>(targets[i]), static_cast<const std::byte*>(targets.front()), bytes);
  }
}

void CudaQueue::divide(ElementType type, void* data, std::size_t element_count, std::uint32_t ranks) {
  if (has_failed() || element_count == 0) return note(status_success, {});
  DivideCall call;
  call.data = static_cast<unsigned char*>(data);
  call.element_count = element_count;
  call.ranks = ranks;
  launch(KernelKind::divide, type, ReduceOperation::sum, element_count * static_cast<std::uint64_t>(size_of(type)),
         &call);
}

bool CudaQueue::run_pattern(const PatternCall& call) {
  if (has_failed()) return true;
  PatternCall parameter = call;
  launch(KernelKind::pattern, ElementType::uint8, ReduceOperation::sum, call.range.length * call.element_size,
         &parameter);
  return true;
}

std::uint64_t CudaQueue::mark_stream() {
  if (is_adopted_) {
    note(status_success, {});  // What others gave the stream counts as one work more, for which an event stands.
    const std::lock_guard lock(mutex_);
    record_event();
  }
  return mark();
}

std::uint64_t CudaQueue::hold() {
  {
    const std::lock_guard lock(mutex_);
    record_event();  // What was given before must not wait for the hold.
  }
  gpu_.make_current();
  const std::uint64_t ticket = ++tickets_;
  note(gpu_.driver().api().await_value(stream_, address_of(words_ + ticket % hold_words),
                                       static_cast<std::uint32_t>(ticket), wait_until_at_least),
       "hold a stream");
  return ticket;
}

void CudaQueue::release(std::uint64_t ticket) {
  std::atomic_ref(words_[ticket % hold_words]).store(static_cast<std::uint32_t>(ticket), std::memory_order_release);
}

void CudaQueue::record_event() {
  const std::uint64_t given = taken_.load(std::memory_order_acquire);
  if (given == covered_ || has_failed()) return;
  gpu_.make_current();
  const DriverApi& api = gpu_.driver().api();
  DriverHandle event = nullptr;
  DriverStatus status = status_success;
  if (!unused_.empty()) {
    event = unused_.back();
    unused_.pop_back();
  } else {
    status = api.make_event(&event, event_without_timing);
  }
  if (status == status_success) status = api.record_event(event, stream_);
  if (status != status_success) return fail_once(gpu_.driver().describe(status, "record an event"));
  pending_.push_back({event, given});
  covered_ = given;
}

std::uint64_t CudaQueue::look() {
  const std::lock_guard lock(mutex_);
  if (has_failed()) return finished_;
  gpu_.make_current();
  while (!pending_.empty()) {
    const DriverStatus status = gpu_.driver().api().query_event(pending_.front().event);
    if (status == status_not_ready) break;
    if (status != status_success) {
      fail_once(gpu_.driver().describe(status, "finish work on a stream"));
      return finished_;
    }
    finished_ = pending_.front().given;
    unused_.push_back(pending_.front().event);
    pending_.pop_front();
  }
  note_done(finished_);
  if (pending_.size() < max_events) record_event();
  return finished_;
}

void CudaQueue::drain(std::chrono::milliseconds longest) {
  std::atomic_ref(words_[hold_words]).store(1, std::memory_order_release);
  for (std::uint64_t ticket = tickets_; ticket > 0 && ticket + hold_words > tickets_; --ticket) release(ticket);
  const auto ended = gpu_.await(stream_, longest, "finish work on a stream");
  const std::lock_guard lock(mutex_);
  if (!ended) fail_once(ended.error());
  if (gpu_.is_lost()) return;
  for (const Pending& pending : pending_) unused_.push_back(pending.event);
  pending_.clear();
  covered_ = finished_ = mark();
  note_done(finished_);
}

}  // namespace espalier::engine::cuda
