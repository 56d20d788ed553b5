#include "nccl_plugins/profiler/recorder.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <new>
#include <string_view>

namespace espalier::nccl_plugins::profiler {
namespace {

/// FNV-1a.
std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  constexpr std::uint64_t prime = 0x100000001B3U;
  for (unsigned byte = 0; byte < sizeof(value); ++byte) hash = (hash ^ ((value >> (8 * byte)) & 0xFFU)) * prime;
  return hash;
}
constexpr std::uint64_t start_of_hash = 0xCBF29CE484222325U;

std::uint64_t hash_text(const char* text) {
  std::uint64_t hash = start_of_hash;
  for (; text != nullptr && *text != '\0'; ++text) hash = mix(hash, static_cast<unsigned char>(*text));
  return hash;
}

std::int64_t bytes_of(const char* type) {
  const std::string_view name = type == nullptr ? std::string_view() : type;
  if (name.find("64") != std::string_view::npos || name.find("ouble") != std::string_view::npos) return 8;
  if (name.find("16") != std::string_view::npos || name.find("alf") != std::string_view::npos) return 2;
  if (name.find("32") != std::string_view::npos || name.ends_with("Float") || name.ends_with("Int")) return 4;
  if (name.find('8') != std::string_view::npos || name.ends_with("Char")) return 1;
  return 0;
}

template <std::size_t Size>
void copy_text(std::array<char, Size>& to, const char* from) {
  const std::size_t length = from == nullptr ? 0 : strnlen(from, Size - 1);
  if (length > 0) std::memcpy(to.data(), from, length);
  to[length] = '\0';
}

}  // namespace

std::int64_t monotonic_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

EventRecorder* EventRecorder::make(std::size_t max_events, std::int64_t only_call) {
  const std::size_t bytes = max_events * sizeof(Event);
  // With its pages: their first touch would be half of what an event costs.
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* const recorder = new (std::nothrow) EventRecorder(static_cast<Event*>(memory), max_events, only_call);
  if (recorder == nullptr) munmap(memory, bytes);
  return recorder;
}

void EventRecorder::destroy(EventRecorder* recorder) {
  munmap(recorder->events_, recorder->max_events_ * sizeof(Event));
  delete recorder;
}

std::size_t EventRecorder::count() const { return std::min(next_.load(std::memory_order_acquire), max_events_); }

Event* EventRecorder::take() {
  const std::size_t place = next_.fetch_add(1, std::memory_order_relaxed);
  if (place >= max_events_) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  Event* const event = new (events_ + place) Event;
  event->owner = this;
  return event;
}

Event* EventRecorder::start_call(EventType type, int of_rank, const CallStart& call) {
  const bool is_collective = type == collective_event;
  if (is_collective) {
    const std::int64_t number = calls_.fetch_add(1, std::memory_order_relaxed);
    if (only_call_ >= 0 && number != only_call_) return nullptr;
  } else if (only_call_ >= 0) {
    return nullptr;
  }
  Event* const event = take();
  if (event == nullptr) return nullptr;
  event->type = type;
  event->rank = of_rank;
  event->peer = call.peer;
  event->is_send = call.function != nullptr && std::strcmp(call.function, "Send") == 0;
  copy_text(event->function, call.function);
  if (call.algorithm != nullptr && call.protocol != nullptr) {
    std::snprintf(event->way.data(), event->way.size(), "%s/%s", call.algorithm, call.protocol);
  }
  event->bytes = static_cast<std::int64_t>(call.count) * bytes_of(call.type);
  if (is_collective) {
    event->call = mix(hash_text(call.function), call.sequence);
  } else {
    // The n-th message from one rank to another is the same on both.
    const auto peer = static_cast<std::size_t>(std::max(0, call.peer)) % peers_counted;
    const std::uint32_t number = messages_[2 * peer + (event->is_send ? 1 : 0)].fetch_add(1, std::memory_order_relaxed);
    event->call = mix(mix(start_of_hash, 1), number);
  }
  event->begin = monotonic_ns();
  return event;
}

Event* EventRecorder::start_operation(const Event* call, int of_rank, const ProxyOperation& operation) {
  Event* const event = call->owner->take();
  if (event == nullptr) return nullptr;
  event->type = proxy_operation_event;
  event->parent = call;
  event->call = call->call;
  event->rank = of_rank;
  event->peer = operation.peer;
  event->channel = operation.channel;
  event->bytes = operation.chunk_bytes;
  event->is_send = operation.is_send != 0;
  event->begin = monotonic_ns();
  return event;
}

Event* EventRecorder::start_step(const Event* operation, int step) {
  Event* const event = operation->owner->take();
  if (event == nullptr) return nullptr;
  event->type = proxy_step_event;
  event->parent = operation;
  event->call = operation->call;
  event->rank = operation->rank;
  event->peer = operation->peer;
  event->channel = operation->channel;
  event->is_send = operation->is_send;
  event->step = step;
  event->begin = monotonic_ns();
  return event;
}

Event* EventRecorder::start_channel(const Event* call, std::uint8_t channel) {
  Event* const event = call->owner->take();
  if (event == nullptr) return nullptr;
  event->type = kernel_channel_event;
  event->parent = call;
  event->call = call->call;
  event->rank = call->rank;
  event->channel = channel;
  event->begin = monotonic_ns();
  return event;
}

void EventRecorder::set_state(Event& event, int state) {
  if (event.type != proxy_step_event) return;
  if (state == send_waits_for_wire) event.moving = monotonic_ns();
  if ((state == receive_flushes || state == receive_waits_for_gpu) && event.arrived == 0)
    event.arrived = monotonic_ns();
}

void EventRecorder::stop(Event& event) { event.end = monotonic_ns(); }

}  // namespace espalier::nccl_plugins::profiler
