#pragma once

// Tested by: tests/unit/nccl_plugins/profiler/profiler_test.cpp

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "nccl_plugins/nccl_types.h"

/// NCCL's profiler interfaces 1 to 5, as they lie in memory.
/// Source: github.com/NVIDIA/nccl, plugins/profiler/example/nccl/profiler_v1.h to profiler_v5.h.
namespace espalier::nccl_plugins::profiler {

/// What an event is of: a bit each, also of the mask that says which events are wanted.
enum EventType : std::uint32_t {
  collective_event = 1U << 1U,
  message_event = 1U << 2U,  // between two ranks
  proxy_operation_event = 1U << 3U,
  proxy_step_event = 1U << 4U,
  kernel_channel_event = 1U << 6U,
};

/// Where a proxy step is.
enum StepState : int {
  send_waits_for_gpu = 8,
  send_waits_for_wire = 9,
  receive_waits = 10,
  receive_flushes = 11,
  receive_waits_for_gpu = 12,
  send_waits_for_peer = 20,
};

struct ProxyOperation {
  pid_t process;
  std::uint8_t channel;
  int peer;
  int steps;
  int chunk_bytes;
  int is_send;
};
struct ProxyStep {
  int step;
};
struct KernelChannel {
  std::uint8_t channel;
  std::uint64_t gpu_timer;  // from version 4 on
};

struct CollectiveV1 {
  const char* name;
  std::uint64_t communicator;
  std::uint64_t sequence;
  std::uint8_t function;
  const void* send;
  void* receive;
  std::size_t count;
  int root;
  std::uint8_t type;
  std::uint32_t operation;
  std::size_t traffic_bytes;
  std::uint8_t max_channels, warps, algorithm, protocol;
  int is_collnet, is_nvls;
};
struct MessageV1 {
  const char* name;
  std::uint64_t communicator;
  std::uint8_t function;
  void* buffer;
  std::uint8_t type;
  std::size_t count;
  int peer;
};
struct CollectiveV2 {
  const char* name;
  std::uint64_t communicator;
  std::uint64_t sequence;
  const char* function;
  const void* send;
  void* receive;
  std::size_t count;
  int root;
  const char* type;
  std::size_t traffic_bytes;
  std::uint8_t max_channels, warps;
  const char *algorithm, *protocol;
};
struct CollectiveV3 {
  const char* name;
  std::uint64_t communicator;
  std::uint64_t sequence;
  const char* function;
  const void* send;
  void* receive;
  std::size_t count;
  int root;
  const char* type;
  std::uint8_t max_channels, warps;
  const char *algorithm, *protocol;
};
struct MessageV2 {
  const char* name;
  std::uint64_t communicator;
  const char* function;
  void* buffer;
  const char* type;
  std::size_t count;
  int peer;
};
struct CollectiveV4 {
  std::uint64_t sequence;
  const char* function;
  const void* send;
  void* receive;
  std::size_t count;
  int root;
  const char* type;
  std::uint8_t channels, warps;
  const char *algorithm, *protocol;
};
struct MessageV4 {
  const char* function;
  void* buffer;
  const char* type;
  std::size_t count;
  int peer;
  std::uint8_t channels;
};
/// Version 5 has a pointer behind each, which nothing here reads.
using CollectiveV5 = CollectiveV4;
using MessageV5 = MessageV4;

template <class Type, class Collective, class Message>
struct Descriptor {
  Type type;
  void* parent;
  int rank;
  union {
    Collective collective;
    Message message;
    ProxyOperation proxy_operation;
    ProxyStep proxy_step;
    KernelChannel kernel_channel;
  };
};
using DescriptorV1 = Descriptor<std::uint8_t, CollectiveV1, MessageV1>;
using DescriptorV2 = Descriptor<std::uint8_t, CollectiveV2, MessageV2>;
using DescriptorV3 = Descriptor<std::uint8_t, CollectiveV3, MessageV2>;
using DescriptorV4 = Descriptor<std::uint8_t, CollectiveV4, MessageV4>;
using DescriptorV5 = Descriptor<std::uint64_t, CollectiveV5, MessageV5>;

/// The functions of a version; those that begin a communicator differ.
template <class Init, class OfDescriptor>
struct Interface {
  const char* name;
  Init init;
  NcclResult (*start)(void* context, void** event, OfDescriptor* descriptor);
  NcclResult (*stop)(void* event);
  NcclResult (*record_state)(void* event, int state, void* arguments);
  NcclResult (*finalize)(void* context);
};
using InitV1 = NcclResult (*)(void** context, int* mask);
using InitV4 = NcclResult (*)(void** context, int* mask, const char* name, std::uint64_t communicator, int nodes,
                              int ranks, int rank, Logger logger);
using InitV5 = NcclResult (*)(void** context, std::uint64_t communicator, int* mask, const char* name, int nodes,
                              int ranks, int rank, Logger logger);
using InterfaceV1 = Interface<InitV1, DescriptorV1>;
using InterfaceV2 = Interface<InitV1, DescriptorV2>;
using InterfaceV3 = Interface<InitV1, DescriptorV3>;
using InterfaceV4 = Interface<InitV4, DescriptorV4>;
using InterfaceV5 = Interface<InitV5, DescriptorV5>;

}  // namespace espalier::nccl_plugins::profiler
