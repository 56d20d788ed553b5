#include <unistd.h>

#include <array>
#include <cstdlib>
#include <exception>
#include <string>

#include "nccl_plugins/profiler/interface.h"
#include "nccl_plugins/profiler/recorder.h"
#include "nccl_plugins/profiler/write_timeline.h"

namespace espalier::nccl_plugins::profiler {
namespace {

constexpr int wanted =
    collective_event | message_event | proxy_operation_event | proxy_step_event | kernel_channel_event;

/// A whole number of an environment variable, or what holds without it.
std::int64_t number_of(const char* variable, std::int64_t otherwise) {
  const char* const text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return otherwise;
  char* end = nullptr;
  const long long value = std::strtoll(text, &end, 10);
  return *end == '\0' && value >= 0 ? value : otherwise;
}

NcclResult begin(void** context, int* mask) {
  constexpr std::int64_t usual_events = 1 << 18, max_events = 1 << 28;
  *context = nullptr;
  *mask = 0;
  const std::int64_t events = number_of("ESPALIER_PROFILER_MAX_EVENTS", usual_events);
  EventRecorder* const recorder =
      EventRecorder::make(static_cast<std::size_t>(events > 0 && events <= max_events ? events : usual_events),
                          number_of("ESPALIER_PROFILER_CALL", -1));
  if (recorder == nullptr) return NcclResult::system_error;
  *context = recorder;
  *mask = wanted;
  return NcclResult::success;
}

NcclResult begin_known(void** context, int* mask, std::uint64_t communicator, int ranks, int rank, Logger logger) {
  const NcclResult result = begin(context, mask);
  if (result != NcclResult::success) return result;
  auto& recorder = *static_cast<EventRecorder*>(*context);
  recorder.communicator = communicator;
  recorder.ranks = ranks;
  recorder.rank = rank;
  recorder.logger = logger;
  return result;
}

NcclResult init_v1(void** context, int* mask) { return begin(context, mask); }
NcclResult init_v4(void** context, int* mask, const char* /*name*/, std::uint64_t communicator, int /*nodes*/,
                   int ranks, int rank, Logger logger) {
  return begin_known(context, mask, communicator, ranks, rank, logger);
}
NcclResult init_v5(void** context, std::uint64_t communicator, int* mask, const char* /*name*/, int /*nodes*/,
                   int ranks, int rank, Logger logger) {
  return begin_known(context, mask, communicator, ranks, rank, logger);
}

/// Version 1 has numbers in the place of names.
template <std::size_t Size>
const char* name_at(const std::array<const char*, Size>& names, std::uint8_t number) {
  return number < Size ? names[number] : "unknown";
}
constexpr std::array<const char*, 8> functions = {"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
                                                  "AllReduce", "SendRecv", "Send",      "Recv"};
constexpr std::array<const char*, 7> algorithms = {"tree",      "ring", "collnet_direct", "collnet_chain", "nvls",
                                                   "nvls_tree", "pat"};
constexpr std::array<const char*, 3> protocols = {"ll", "ll128", "simple"};
constexpr std::array<const char*, 10> types = {"ncclInt8",    "ncclUint8",   "ncclInt32",   "ncclUint32",
                                               "ncclInt64",   "ncclUint64",  "ncclFloat16", "ncclFloat32",
                                               "ncclFloat64", "ncclBfloat16"};

CallStart call_of(const CollectiveV1& call) {
  return {name_at(functions, call.function),
          call.sequence,
          call.count,
          name_at(types, call.type),
          name_at(algorithms, call.algorithm),
          name_at(protocols, call.protocol)};
}
template <class Collective>
CallStart call_of(const Collective& call) {
  return {call.function, call.sequence, call.count, call.type, call.algorithm, call.protocol};
}
CallStart message_of(const MessageV1& message) {
  return {name_at(functions, message.function),
          0,
          message.count,
          name_at(types, message.type),
          nullptr,
          nullptr,
          message.peer};
}
template <class Message>
CallStart message_of(const Message& message) {
  return {message.function, 0, message.count, message.type, nullptr, nullptr, message.peer};
}

/// Which communicator it is, where only calls tell.
template <class Call>
void learn(EventRecorder& recorder, int rank, const Call& call) {
  if (recorder.rank < 0) recorder.rank = rank;
  if constexpr (requires { call.communicator; }) recorder.communicator = call.communicator;
}

/// An operation of another process has pointers of that process, which mean nothing here; and so have its steps, whose
/// operation is then null.
template <class OfDescriptor>
NcclResult start(void* context, void** event, OfDescriptor* descriptor) {
  *event = nullptr;
  const auto* const parent = static_cast<const Event*>(descriptor->parent);
  switch (descriptor->type) {
    case collective_event: {
      auto& recorder = *static_cast<EventRecorder*>(context);
      learn(recorder, descriptor->rank, descriptor->collective);
      *event = recorder.start_call(collective_event, descriptor->rank, call_of(descriptor->collective));
      break;
    }
    case message_event: {
      auto& recorder = *static_cast<EventRecorder*>(context);
      learn(recorder, descriptor->rank, descriptor->message);
      *event = recorder.start_call(message_event, descriptor->rank, message_of(descriptor->message));
      break;
    }
    case proxy_operation_event:
      if (parent != nullptr && descriptor->proxy_operation.process == getpid()) {
        *event = EventRecorder::start_operation(parent, descriptor->rank, descriptor->proxy_operation);
      }
      break;
    case proxy_step_event:
      if (parent != nullptr) *event = EventRecorder::start_step(parent, descriptor->proxy_step.step);
      break;
    case kernel_channel_event:
      if (parent != nullptr) *event = EventRecorder::start_channel(parent, descriptor->kernel_channel.channel);
      break;
    default: break;
  }
  return NcclResult::success;
}

NcclResult stop(void* event) {
  if (event != nullptr) EventRecorder::stop(*static_cast<Event*>(event));
  return NcclResult::success;
}

NcclResult record_state(void* event, int state, void* /*arguments*/) {
  if (event != nullptr) EventRecorder::set_state(*static_cast<Event*>(event), state);
  return NcclResult::success;
}

std::string path_of(const EventRecorder& recorder) {
  const char* const prefix = std::getenv("ESPALIER_PROFILER_FILE");
  std::array<char, 64> tail = {};
  std::snprintf(tail.data(), tail.size(), ".%llx.rank%d.json", static_cast<unsigned long long>(recorder.communicator),
                recorder.rank < 0 ? 0 : recorder.rank);
  return std::string(prefix == nullptr || *prefix == '\0' ? "espalier-nccl" : prefix) + tail.data();
}

void report(const EventRecorder& recorder, LogLevel level, const std::string& text) {
  if (recorder.logger != nullptr) {
    recorder.logger(level, tuning_subsystem, __FILE__, __LINE__, "espalier profiler: %s", text.c_str());
  } else if (level == LogLevel::warn) {
    std::fprintf(stderr, "espalier profiler: %s\n", text.c_str());
  }
}

NcclResult finalize(void* context) {
  auto* const recorder = static_cast<EventRecorder*>(context);
  if (recorder == nullptr) return NcclResult::success;
  try {
    const std::string path = path_of(*recorder);
    const std::string wrong = write_timeline(*recorder, path);
    if (!wrong.empty()) {
      report(*recorder, LogLevel::warn, "no timeline: " + wrong);
    } else {
      report(*recorder, LogLevel::info, path + ": " + std::to_string(recorder->count()) + " events");
    }
    if (wrong.empty() && recorder->dropped() > 0) {
      report(*recorder, LogLevel::warn,
             std::to_string(recorder->dropped()) + " events were left out; set ESPALIER_PROFILER_MAX_EVENTS");
    }
  } catch (const std::exception& lack) {
    report(*recorder, LogLevel::warn, std::string("no timeline: ") + lack.what());
  }
  EventRecorder::destroy(recorder);
  return NcclResult::success;
}

}  // namespace

ESPALIER_NCCL_EXPORT const InterfaceV1 ncclProfiler_v1 = {"espalier", init_v1,      start<DescriptorV1>,
                                                          stop,       record_state, finalize};
ESPALIER_NCCL_EXPORT const InterfaceV2 ncclProfiler_v2 = {"espalier", init_v1,      start<DescriptorV2>,
                                                          stop,       record_state, finalize};
ESPALIER_NCCL_EXPORT const InterfaceV3 ncclProfiler_v3 = {"espalier", init_v1,      start<DescriptorV3>,
                                                          stop,       record_state, finalize};
ESPALIER_NCCL_EXPORT const InterfaceV4 ncclProfiler_v4 = {"espalier", init_v4,      start<DescriptorV4>,
                                                          stop,       record_state, finalize};
ESPALIER_NCCL_EXPORT const InterfaceV5 ncclProfiler_v5 = {"espalier", init_v5,      start<DescriptorV5>,
                                                          stop,       record_state, finalize};

}  // namespace espalier::nccl_plugins::profiler
