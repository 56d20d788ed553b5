// A host that loads the profiler as NCCL does: dlopen, then the newest version that the library has.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "nccl_plugins/profiler/interface.h"
#include "schedule/timeline/chrome_trace.h"

namespace espalier::nccl_plugins::profiler {
namespace {

constexpr int api_event = 1 << 9;  // Of version 5; not wanted.

std::string& log_text() {
  static std::string text;
  return text;
}

void log_line(LogLevel /*level*/, unsigned long /*subsystem*/, const char* /*file*/, int /*line*/, const char* format,
              ...) {
  std::array<char, 512> line = {};
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line.data(), line.size(), format, arguments);
  va_end(arguments);
  log_text() += std::string(line.data()) + "\n";
}

class ProfilerTest : public testing::Test {
 protected:
  void SetUp() override {
    library_ = dlopen(ESPALIER_NCCL_PROFILER, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
    folder_ = std::filesystem::temp_directory_path() / ("espalier-profiler-" + std::to_string(getpid()));
    std::filesystem::create_directory(folder_);
    setenv("ESPALIER_PROFILER_FILE", (folder_ / "run").c_str(), 1);
    unsetenv("ESPALIER_PROFILER_MAX_EVENTS");
    unsetenv("ESPALIER_PROFILER_CALL");
    log_text().clear();
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    dlclose(library_);
  }
  template <class Version>
  const Version& version(const char* symbol) {
    const void* const found = dlsym(library_, symbol);
    EXPECT_NE(found, nullptr) << symbol;
    return *static_cast<const Version*>(found);
  }
  [[nodiscard]] Timeline read(const std::string& tail) const {
    const auto path = folder_ / ("run." + tail);
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    const auto timeline = read_chrome_trace(text.str(), path.string());
    EXPECT_TRUE(timeline) << timeline.error().message;
    return timeline ? *timeline : Timeline{};
  }

  void* library_ = nullptr;
  std::filesystem::path folder_;
};

/// How a rank's communicator begins in each version.
template <class Version>
void* begin(const Version& plugin, int rank, std::uint64_t communicator = 0xAB) {
  void* context = nullptr;
  int mask = 0;
  NcclResult result = NcclResult::internal_error;
  if constexpr (std::is_same_v<decltype(plugin.init), InitV1>) {
    result = plugin.init(&context, &mask);
  } else if constexpr (std::is_same_v<decltype(plugin.init), InitV4>) {
    result = plugin.init(&context, &mask, "comm", communicator, 1, 2, rank, log_line);
  } else {
    result = plugin.init(&context, communicator, &mask, "comm", 1, 2, rank, log_line);
  }
  EXPECT_EQ(result, NcclResult::success);
  EXPECT_EQ(mask, 2 | 4 | 8 | 16 | 64);
  return context;
}

template <class OfDescriptor>
OfDescriptor all_reduce(int rank) {
  OfDescriptor descriptor{};
  descriptor.type = collective_event;
  descriptor.rank = rank;
  auto& call = descriptor.collective;
  call.sequence = 3;
  call.count = 1 << 20;
  if constexpr (std::is_same_v<OfDescriptor, DescriptorV1>) {
    call.communicator = 0xAB;
    call.function = 4;
    call.type = 7;
    call.algorithm = 1;
    call.protocol = 2;
  } else {
    call.function = "AllReduce";
    call.type = "ncclFloat32";
    call.algorithm = "RING";
    call.protocol = "SIMPLE";
    if constexpr (requires { call.communicator; }) call.communicator = 0xAB;
  }
  return descriptor;
}

/// One all_reduce of a rank, with two steps to the other and two from it on each of two channels.
template <class OfDescriptor, class Version>
void run_call(const Version& plugin, void* context, int rank) {
  void *call = nullptr, *unknown = &call;
  OfDescriptor group{};
  group.type = static_cast<decltype(group.type)>(1);
  ASSERT_EQ(plugin.start(context, &unknown, &group), NcclResult::success);
  EXPECT_EQ(unknown, nullptr);
  auto descriptor = all_reduce<OfDescriptor>(rank);
  ASSERT_EQ(plugin.start(context, &call, &descriptor), NcclResult::success);
  ASSERT_NE(call, nullptr);
  plugin.stop(call);  // NCCL ends the call when it is enqueued; its parts come later.
  for (std::uint8_t channel = 0; channel < 2; ++channel) {
    OfDescriptor kernel{};
    kernel.type = kernel_channel_event;
    kernel.parent = call;
    kernel.kernel_channel.channel = channel;
    void* kernel_event = nullptr;
    plugin.start(context, &kernel_event, &kernel);
    for (const int is_send : {1, 0}) {
      OfDescriptor operation{};
      operation.type = proxy_operation_event;
      operation.parent = call;
      operation.rank = rank;
      operation.proxy_operation = {getpid(), channel, 1 - rank, 2, 1 << 17, is_send};
      void* operation_event = nullptr;
      plugin.start(context, &operation_event, &operation);
      for (int step = 0; step < 2; ++step) {
        OfDescriptor part{};
        part.type = proxy_step_event;
        part.parent = operation_event;
        part.proxy_step.step = step;
        void* event = nullptr;
        plugin.start(context, &event, &part);
        for (const int state : is_send != 0 ? std::array{8, 20, 9} : std::array{10, 11, 12}) {
          plugin.record_state(event, state, nullptr);
        }
        plugin.stop(event);
      }
      plugin.stop(operation_event);
    }
    plugin.stop(kernel_event);
  }
}

template <class OfDescriptor, class Version>
void check_version(const Version& plugin, const std::function<Timeline(const std::string&)>& read) {
  std::array<Timeline, 2> of_rank;
  for (int rank = 0; rank < 2; ++rank) {
    void* const context = begin(plugin, rank);
    run_call<OfDescriptor>(plugin, context, rank);
    EXPECT_EQ(plugin.finalize(context), NcclResult::success);
    of_rank[static_cast<std::size_t>(rank)] = read("ab.rank" + std::to_string(rank) + ".json");
  }
  std::array<std::set<std::uint32_t>, 2> sent, received;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const Timeline& timeline = of_rank[rank];
    EXPECT_EQ(timeline.title, "all_reduce, nccl, 4 MiB on NCCL");
    EXPECT_EQ(timeline.rank_names.size(), 2U);
    EXPECT_EQ(timeline.spans.size(), 10U);  // Two kernels, four sends, four receives.
    for (const Span& span : timeline.spans) {
      EXPECT_EQ(span.lane, rank);
      if (span.phase == Phase::send) sent[rank].insert(span.transfer.value());
      if (span.phase == Phase::recv) received[rank].insert(span.transfer.value());
    }
    EXPECT_EQ(sent[rank].size(), 2U);  // One for each channel.
  }
  EXPECT_EQ(sent[0], received[1]);  // Both ranks name a transfer alike.
  EXPECT_EQ(sent[1], received[0]);
}

TEST_F(ProfilerTest, EveryVersionWritesOneTimeline) {
  const auto read_file = [this](const std::string& tail) { return read(tail); };
  check_version<DescriptorV1>(version<InterfaceV1>("ncclProfiler_v1"), read_file);
  check_version<DescriptorV2>(version<InterfaceV2>("ncclProfiler_v2"), read_file);
  check_version<DescriptorV3>(version<InterfaceV3>("ncclProfiler_v3"), read_file);
  check_version<DescriptorV4>(version<InterfaceV4>("ncclProfiler_v4"), read_file);
  check_version<DescriptorV5>(version<InterfaceV5>("ncclProfiler_v5"), read_file);
}

TEST_F(ProfilerTest, OtherVersionsAreNotThere) {
  for (const char* symbol : {"ncclProfiler_v0", "ncclProfiler_v6", "ncclProfiler_v7"}) {
    EXPECT_EQ(dlsym(library_, symbol), nullptr) << symbol;
  }
}

TEST_F(ProfilerTest, TwoCommunicatorsAtOnceHaveAFileEach) {
  const auto& plugin = version<InterfaceV5>("ncclProfiler_v5");
  constexpr int calls = 200;
  std::vector<std::thread> threads;
  for (int communicator = 1; communicator <= 2; ++communicator) {
    threads.emplace_back([&, communicator] {
      void* const context = begin(plugin, 0, static_cast<std::uint64_t>(communicator));
      std::vector<std::thread> workers;  // Proxies are threads beside the one that calls.
      for (int worker = 0; worker < 2; ++worker) {
        workers.emplace_back([&] {
          for (int i = 0; i < calls; ++i) run_call<DescriptorV5>(plugin, context, 0);
        });
      }
      for (std::thread& worker : workers) worker.join();
      plugin.finalize(context);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(read("1.rank0.json").spans.size(), 2U * calls * 10U);
  EXPECT_EQ(read("2.rank0.json").spans.size(), 2U * calls * 10U);
}

TEST_F(ProfilerTest, WaitingIsNoPartOfASend) {
  const auto& plugin = version<InterfaceV5>("ncclProfiler_v5");
  void* const context = begin(plugin, 0);
  auto descriptor = all_reduce<DescriptorV5>(0);
  void *call = nullptr, *operation_event = nullptr, *event = nullptr;
  plugin.start(context, &call, &descriptor);
  DescriptorV5 operation{};
  operation.type = proxy_operation_event;
  operation.parent = call;
  operation.proxy_operation = {getpid(), 0, 1, 1, 1 << 17, 1};
  plugin.start(context, &operation_event, &operation);
  DescriptorV5 step{};
  step.type = proxy_step_event;
  step.parent = operation_event;
  plugin.start(context, &event, &step);
  plugin.record_state(event, send_waits_for_gpu, nullptr);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  plugin.record_state(event, send_waits_for_wire, nullptr);
  plugin.stop(event);
  plugin.finalize(context);
  const Timeline timeline = read("ab.rank0.json");
  ASSERT_EQ(timeline.spans.size(), 1U);
  EXPECT_LT((timeline.spans[0].end - timeline.spans[0].begin).seconds(), 0.02);
}

TEST_F(ProfilerTest, OneCallMayBeKeptAlone) {
  setenv("ESPALIER_PROFILER_CALL", "2", 1);
  const auto& plugin = version<InterfaceV5>("ncclProfiler_v5");
  void* const context = begin(plugin, 0);
  for (int i = 0; i < 5; ++i) {
    auto descriptor = all_reduce<DescriptorV5>(0);
    void* call = nullptr;
    plugin.start(context, &call, &descriptor);
    EXPECT_EQ(call != nullptr, i == 2);
    plugin.stop(call);
  }
  plugin.finalize(context);
  EXPECT_EQ(read("ab.rank0.json").spans.size(), 1U);
}

TEST_F(ProfilerTest, WhatHasNoParentHereIsLeftOut) {
  const auto& plugin = version<InterfaceV5>("ncclProfiler_v5");
  void* const context = begin(plugin, 0);
  auto descriptor = all_reduce<DescriptorV5>(0);
  void* call = nullptr;
  plugin.start(context, &call, &descriptor);
  DescriptorV5 foreign{};
  foreign.type = proxy_operation_event;
  foreign.parent = reinterpret_cast<void*>(0x1000);  // Of another process: not to be followed.
  foreign.proxy_operation = {getpid() + 1, 0, 1, 1, 4096, 1};
  void* event = &call;
  plugin.start(reinterpret_cast<void*>(0x1000), &event, &foreign);
  EXPECT_EQ(event, nullptr);
  for (const std::uint64_t type : {proxy_step_event, kernel_channel_event, proxy_operation_event}) {
    DescriptorV5 orphan{};
    orphan.type = type;
    plugin.start(context, &event, &orphan);
    EXPECT_EQ(event, nullptr);
  }
  DescriptorV5 other{};
  other.type = api_event;
  plugin.start(context, &event, &other);
  EXPECT_EQ(event, nullptr);
  EXPECT_EQ(plugin.stop(nullptr), NcclResult::success);
  EXPECT_EQ(plugin.record_state(nullptr, 9, nullptr), NcclResult::success);
  EXPECT_EQ(plugin.finalize(nullptr), NcclResult::success);
  plugin.finalize(context);
}

TEST_F(ProfilerTest, AMissingFolderIsLogged) {
  setenv("ESPALIER_PROFILER_FILE", (folder_ / "missing" / "run").c_str(), 1);
  const auto& plugin = version<InterfaceV5>("ncclProfiler_v5");
  EXPECT_EQ(plugin.finalize(begin(plugin, 0)), NcclResult::success);
  EXPECT_NE(log_text().find("no timeline: "), std::string::npos) << log_text();
  EXPECT_NE(log_text().find("No such file or directory"), std::string::npos) << log_text();
}

TEST_F(ProfilerTest, EventsThatDoNotFitAreCounted) {
  setenv("ESPALIER_PROFILER_MAX_EVENTS", "10", 1);
  const auto& plugin = version<InterfaceV5>("ncclProfiler_v5");
  void* const context = begin(plugin, 0);
  for (int i = 0; i < 3; ++i) {
    auto descriptor = all_reduce<DescriptorV5>(0);
    void* call = nullptr;
    for (int j = 0; j < 5; ++j) {
      plugin.start(context, &call, &descriptor);
      plugin.stop(call);
    }
  }
  plugin.finalize(context);
  EXPECT_NE(log_text().find("5 events were left out"), std::string::npos) << log_text();
}

TEST_F(ProfilerTest, AMillionEventsAllocateNothing) {
  constexpr int events = 1'000'000;
  setenv("ESPALIER_PROFILER_MAX_EVENTS", "1048576", 1);
  const auto& plugin = version<InterfaceV5>("ncclProfiler_v5");
  void* const context = begin(plugin, 0);
  auto descriptor = all_reduce<DescriptorV5>(0);
  void *call = nullptr, *operation_event = nullptr;
  plugin.start(context, &call, &descriptor);
  DescriptorV5 operation{};
  operation.type = proxy_operation_event;
  operation.parent = call;
  operation.proxy_operation = {getpid(), 0, 1, events, 4096, 1};
  plugin.start(context, &operation_event, &operation);
  DescriptorV5 step{};
  step.type = proxy_step_event;
  step.parent = operation_event;
  const auto before = mallinfo2();
  for (int i = 0; i < events; ++i) {
    void* event = nullptr;
    plugin.start(context, &event, &step);
    plugin.stop(event);
  }
  const auto after = mallinfo2();
  EXPECT_EQ(after.uordblks + after.hblkhd, before.uordblks + before.hblkhd);
  setenv("ESPALIER_PROFILER_FILE", "/nowhere/run", 1);
  plugin.finalize(context);
}

}  // namespace
}  // namespace espalier::nccl_plugins::profiler
