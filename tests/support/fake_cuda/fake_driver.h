#pragma once

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "engine/cuda/driver/driver_api.h"
#include "engine/cuda/kernels/host_kernels.h"
#include "engine/cuda/kernels/kernel_names.h"

/// What the fake driver's functions share: streams, events, graphs and kernels of a process.
namespace espalier::test {

using engine::PatternCall;
using engine::cuda::DeviceAddress;
using engine::cuda::DivideCall;
using engine::cuda::DriverHandle;
using engine::cuda::DriverStatus;
using engine::cuda::KernelCall;
using engine::cuda::KernelKind;
using engine::cuda::ReduceCall;
using engine::cuda::status_not_ready;
using engine::cuda::status_success;

inline constexpr DriverStatus invalid_value = 1;
inline constexpr DriverStatus out_of_memory = 2;
inline constexpr DriverStatus not_initialized = 3;
inline constexpr DriverStatus no_binary = 209;
inline constexpr DriverStatus peer_access_unsupported = 217;
inline constexpr DriverStatus not_found = 500;
inline constexpr DriverStatus illegal_address = 700;
inline constexpr DriverStatus host_memory_already_registered = 712;
inline constexpr DriverStatus cooperative_launch_too_large = 720;
inline constexpr DriverStatus not_supported = 801;
inline constexpr DriverStatus stream_capture_unsupported = 900;
inline constexpr DriverStatus stream_capture_unjoined = 904;
inline constexpr std::uint32_t fat_binary_magic = 0xBA55ED50;
inline constexpr int blocks_per_fake_multiprocessor = 2;

struct FakeKernel {
  KernelKind kind{};
  ElementType type{};
  ReduceOperation operation{};
};

struct FakeStream;
struct FakeGraph;

/// Whether the work before a record of an event is done.
using Token = std::shared_ptr<bool>;

struct FakeEvent {
  Token token;
  FakeStream* stream = nullptr;
  FakeGraph* graph = nullptr;  ///< That the last record was captured for, as this of its tokens.
  std::size_t captured = 0;
};

/// True once it is done; asked again and again until then.
using Work = std::function<bool()>;
/// Makes work of a launch, whose events are these.
using WorkMaker = std::function<Work(const std::vector<Token>&)>;

struct FakeStream {
  std::deque<Work> work;
  FakeGraph* captured_by = nullptr;
  bool is_advancing = false;
};

struct FakeGraph {
  struct Node {
    FakeStream* stream = nullptr;
    WorkMaker make;
  };
  std::vector<Node> nodes;
  std::size_t tokens = 0;
  std::vector<FakeStream*> streams;       ///< The first began the capture.
  std::map<FakeStream*, bool> is_joined;  ///< Whether the first waits for all that the stream was given.
};

/// Threads that run the blocks of a launch.
struct RunningKernel {
  ~RunningKernel() {
    for (std::thread& thread : threads) {
      if (thread.joinable()) thread.join();
    }
  }
  std::vector<std::thread> threads;
  std::atomic<std::size_t> ended = 0;
};

/// Of a GPU: pages of a file, which may be exported.
struct FakeMemory {
  std::size_t bytes = 0;
  int file = -1;
};

/// Of another process: the file there that it was opened from.
struct OpenedMemory {
  std::string path;
  std::uint64_t file_number = 0;
};

struct FakeDriver {
  std::recursive_mutex mutex;
  bool is_initialized = false;
  int gpus = 0;
  int multiprocessors = 0;
  bool has_peers = true;
  bool has_cooperative = true;
  bool has_ipc = true;
  bool hangs = false;
  int ptx_version = 0;
  std::size_t memory = 0;
  std::string fails_in;
  int fails_at = 0;
  DriverStatus fails_with = 0;
  std::map<std::string, int> calls;
  DriverStatus lost = status_success;
  std::size_t used = 0;
  bool has_dma_bufs = true;
  std::map<DeviceAddress, FakeMemory> memories;
  std::map<DeviceAddress, OpenedMemory> opened;
  std::map<DeviceAddress, std::size_t> reachable;  ///< Bytes that kernels may touch, by their first.

  [[nodiscard]] bool reaches(DeviceAddress address, std::size_t bytes) const {
    const auto after = reachable.upper_bound(address);
    return after != reachable.begin() && address + bytes <= std::prev(after)->first + std::prev(after)->second;
  }
  std::map<std::string, FakeKernel> kernels;
  FakeStream default_stream;
};

inline FakeDriver& fake() {
  static FakeDriver driver;
  return driver;
}

inline long number_from(const char* name, long otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::atol(text) : otherwise;
}

/// Of this thread: 0, global, until it is exchanged.
inline int& capture_mode() {
  static thread_local int mode = 0;
  return mode;
}

/// Captures that this thread has under way: it may not allocate then, unless its mode is relaxed.
inline int& captures() {
  static thread_local int count = 0;
  return count;
}
inline bool may_allocate() { return captures() == 0 || capture_mode() == engine::cuda::capture_mode_relaxed; }

inline bool is_sticky(DriverStatus status) { return status == 214 || (status >= 700 && status < 720); }

/// What a call returns before it does anything.
inline DriverStatus enter(const char* function) {
  FakeDriver& driver = fake();
  if (!driver.is_initialized) return not_initialized;
  if (driver.lost != status_success) return driver.lost;
  if (driver.fails_in == function && ++driver.calls[function] == driver.fails_at) {
    if (is_sticky(driver.fails_with)) driver.lost = driver.fails_with;
    return driver.fails_with;
  }
  return status_success;
}

inline FakeStream& stream_of(DriverHandle handle) {
  return handle == nullptr ? fake().default_stream : *static_cast<FakeStream*>(handle);
}

/// Does what can be done; whether that was all. Work that waits for another stream advances that one, which may come
/// back here: then this is further up already.
inline bool advance(FakeStream& stream) {
  if (stream.is_advancing) return false;
  stream.is_advancing = true;
  while (!stream.work.empty() && stream.work.front()()) stream.work.pop_front();
  stream.is_advancing = false;
  return stream.work.empty();
}

/// To a stream, or to what it is captured for.
inline void give(FakeStream& stream, WorkMaker make) {
  if (stream.captured_by == nullptr) {
    stream.work.push_back(make({}));
    return;
  }
  stream.captured_by->nodes.push_back({&stream, std::move(make)});
  stream.captured_by->is_joined[&stream] = false;
}

/// Work without events.
inline void give(FakeStream& stream, Work work) {
  give(stream, [work = std::move(work)](const std::vector<Token>&) { return work; });
}

/// No call that waits, or that the driver cannot capture.
inline bool is_capturing(DriverHandle stream) { return stream_of(stream).captured_by != nullptr; }

/// Blocks of the interpreter wait for each other, on other GPUs too: a thread each, while streams go on.
inline Work interpreter_work(const FakeKernel& kernel, std::uint32_t blocks, const KernelCall& call) {
  auto running = std::make_shared<RunningKernel>();
  return [=] {
    if (fake().hangs) return false;
    if (running->threads.empty()) {
      for (std::uint32_t block = 0; block < blocks; ++block) {
        running->threads.emplace_back([=, of = running.get()] {
          engine::cuda::run_block_on_host(kernel.type, kernel.operation, call, call.blocks[block]);
          of->ended.fetch_add(1, std::memory_order_release);
        });
      }
    }
    if (running->ended.load(std::memory_order_acquire) < running->threads.size()) return false;
    for (std::thread& thread : running->threads) thread.join();
    return true;
  };
}

template <class Call>
Call copy_parameter(const void* parameter) {
  Call call;
  std::memcpy(&call, parameter, sizeof(call));
  return call;
}

/// Whether the kernel reaches all of these; if not, the GPU is lost.
inline bool reaches_all(std::span<const unsigned char* const> places, std::size_t bytes) {
  const bool reaches = std::ranges::all_of(places, [&](const unsigned char* place) {
    return bytes == 0 || fake().reaches(reinterpret_cast<DeviceAddress>(place), bytes);
  });
  if (!reaches) fake().lost = illegal_address;
  return reaches;
}

inline Work kernel_work(const FakeKernel& kernel, std::uint32_t blocks, const void* parameter) {
  if (kernel.kind == KernelKind::run) return interpreter_work(kernel, blocks, copy_parameter<KernelCall>(parameter));
  if (kernel.kind == KernelKind::divide) {
    return [kernel, call = copy_parameter<DivideCall>(parameter)] {
      const unsigned char* const data = call.data;
      const std::size_t bytes = call.element_count * static_cast<std::size_t>(size_of(kernel.type));
      if (reaches_all(std::span(&data, 1), bytes)) engine::cuda::divide_on_host(kernel.type, call);
      return true;
    };
  }
  if (kernel.kind == KernelKind::pattern) {
    return [call = copy_parameter<PatternCall>(parameter)] {
      const std::size_t table = std::size_t{engine::pattern_table} * call.element_size;
      const unsigned char* const data = call.data;
      const auto* const differing = reinterpret_cast<const unsigned char*>(call.differing);
      if (reaches_all(std::span(&data, 1), call.range.length * call.element_size) &&
          reaches_all(std::span(&call.table, 1), table) &&
          reaches_all(std::span(&differing, 1), differing == nullptr ? 0 : sizeof(*call.differing))) {
        engine::cuda::run_pattern_on_host(call);
      }
      return true;
    };
  }
  return [kernel, call = copy_parameter<ReduceCall>(parameter)] {
    const std::size_t bytes = call.element_count * static_cast<std::size_t>(size_of(kernel.type));
    std::vector<const unsigned char*> places(call.sources, call.sources + call.source_count);
    places.insert(places.end(), call.targets, call.targets + call.target_count);
    places.push_back(call.first);
    if (reaches_all(places, bytes)) engine::cuda::reduce_on_host(kernel.type, kernel.operation, call);
    return true;
  };
}

/// The parameter is taken now, as the driver does; the kernel runs as often as what it is captured for.
inline void give_kernel(FakeStream& stream, const FakeKernel& kernel, std::uint32_t blocks, const void* parameter) {
  const std::size_t bytes = kernel.kind == KernelKind::run       ? sizeof(KernelCall)
                            : kernel.kind == KernelKind::reduce  ? sizeof(ReduceCall)
                            : kernel.kind == KernelKind::pattern ? sizeof(PatternCall)
                                                                 : sizeof(DivideCall);
  const auto* const from = static_cast<const unsigned char*>(parameter);
  const std::vector<unsigned char> kept(from, from + bytes);
  give(stream, [=](const std::vector<Token>&) { return kernel_work(kernel, blocks, kept.data()); });
}

inline std::size_t whole_pages(std::size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

inline DriverStatus give(DeviceAddress* address, std::size_t bytes) {
  void* const data = std::aligned_alloc(4096, whole_pages(bytes));
  if (data == nullptr) return out_of_memory;
  std::memset(data, 0xEE, bytes);  // As memory is: not zero.
  *address = reinterpret_cast<DeviceAddress>(data);
  return status_success;
}

}  // namespace espalier::test

#define ENTER(function)                     \
  const std::lock_guard lock(fake().mutex); \
  if (const DriverStatus status = enter(#function); status != status_success) return status
