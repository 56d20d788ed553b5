// A host that loads the tuner as NCCL does.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "nccl_plugins/tuner/interface.h"

namespace espalier::nccl_plugins::tuner {
namespace {

constexpr std::size_t algorithms = 7, protocols = 3;
using Costs = std::array<std::array<float, protocols>, algorithms>;

std::string& tuner_log() {
  static std::string text;
  return text;
}
void log_tuner(LogLevel /*level*/, unsigned long /*subsystem*/, const char* /*file*/, int /*line*/, const char* format,
               ...) {
  std::array<char, 512> line = {};
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line.data(), line.size(), format, arguments);
  va_end(arguments);
  tuner_log() += std::string(line.data()) + "\n";
}

class TunerTest : public testing::Test {
 protected:
  void SetUp() override {
    library_ = dlopen(ESPALIER_NCCL_TUNER, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
    setenv("ESPALIER_TUNER_MACHINE", ESPALIER_SOURCE_DIR "/configs/dgx-h100.yaml", 1);
    setenv("ESPALIER_CONFIGS", ESPALIER_SOURCE_DIR "/configs", 1);
    unsetenv("ESPALIER_TUNER_PROFILE");
    tuner_log().clear();
  }
  void TearDown() override { dlclose(library_); }
  template <class Version>
  const Version& version(const char* symbol) {
    const void* const found = dlsym(library_, symbol);
    EXPECT_NE(found, nullptr) << symbol;
    return *static_cast<const Version*>(found);
  }
  void* library_ = nullptr;
};

/// NCCL's own times: only rings and trees may be taken.
Costs rings_and_trees() {
  Costs costs;
  for (auto& row : costs) row.fill(ignored_cost);
  costs[0].fill(50);
  costs[1].fill(60);
  return costs;
}

/// What the table says after the tuner: the place of its only zero.
std::pair<std::size_t, std::size_t> chosen(const Costs& costs) {
  for (std::size_t algorithm = 0; algorithm < algorithms; ++algorithm) {
    for (std::size_t protocol = 0; protocol < protocols; ++protocol) {
      if (costs[algorithm][protocol] == 0) return {algorithm, protocol};
    }
  }
  return {algorithms, protocols};
}

void* begin(const InterfaceV5& plugin, std::size_t ranks = 8, std::size_t nodes = 1) {
  void* context = nullptr;
  EXPECT_EQ(plugin.init(&context, 1, ranks, nodes, log_tuner, nullptr, nullptr), NcclResult::success);
  EXPECT_NE(context, nullptr);
  return context;
}

Costs ask(const InterfaceV5& plugin, void* context, std::size_t bytes, Function function = Function::all_reduce) {
  Costs costs = rings_and_trees();
  int channels = 0;
  EXPECT_EQ(plugin.choose(context, function, bytes, 1, reinterpret_cast<float**>(costs.data()), algorithms, protocols,
                          0, &channels),
            NcclResult::success);
  EXPECT_EQ(channels, 0);  // NCCL's own.
  return costs;
}

TEST_F(TunerTest, TakesLowLatencyForSmallAndSimpleForLargeMessages) {
  const auto& plugin = version<InterfaceV5>("ncclTunerPlugin_v5");
  void* const context = begin(plugin);
  EXPECT_EQ(chosen(ask(plugin, context, 1 << 10)).second, 0U);
  // A ring of 8 on one machine carries most with the whole of the bytes as payload.
  EXPECT_EQ(chosen(ask(plugin, context, 1 << 30)), (std::pair<std::size_t, std::size_t>{1, 2}));
  EXPECT_NE(tuner_log().find("all_reduce of 1073741824 bytes by nccl/ring/simple"), std::string::npos) << tuner_log();
  plugin.destroy(context);
}

TEST_F(TunerTest, VersionsAgree) {
  const auto& v5 = version<InterfaceV5>("ncclTunerPlugin_v5");
  const auto& v4 = version<InterfaceV4>("ncclTunerPlugin_v4");
  const auto& v3 = version<InterfaceV3>("ncclTunerPlugin_v3");
  const auto& v2 = version<InterfaceV2>("ncclTunerPlugin_v2");
  void *of5 = begin(v5), *of4 = nullptr, *of3 = nullptr, *of2 = nullptr;
  ASSERT_EQ(v4.init(8, 1, log_tuner, &of4), NcclResult::success);
  ASSERT_EQ(v3.init(8, 1, log_tuner, &of3), NcclResult::success);
  ASSERT_EQ(v2.init(8, 1, log_tuner, &of2), NcclResult::success);
  for (const std::size_t bytes : {std::size_t{4096}, std::size_t{1} << 24U}) {
    const auto expected = chosen(ask(v5, of5, bytes));
    Costs costs = rings_and_trees();
    int channels = 0, algorithm = -1, protocol = -1;
    v4.choose(of4, Function::all_reduce, bytes, 1, reinterpret_cast<float**>(costs.data()), algorithms, protocols, 0,
              &channels);
    EXPECT_EQ(chosen(costs), expected);
    costs = rings_and_trees();
    v3.choose(of3, Function::all_reduce, bytes, 1, reinterpret_cast<float**>(costs.data()), algorithms, protocols,
              &channels);
    EXPECT_EQ(chosen(costs), expected);
    v2.choose(of2, Function::all_reduce, bytes, 0, 0, 1, &algorithm, &protocol, &channels);
    EXPECT_EQ(std::pair(static_cast<std::size_t>(algorithm), static_cast<std::size_t>(protocol)), expected);
  }
  v5.destroy(of5);
  v4.destroy(of4);
  v3.destroy(of3);
  v2.destroy(of2);
}

TEST_F(TunerTest, LeavesNcclToItselfWhereItKnowsNothing) {
  const auto& plugin = version<InterfaceV5>("ncclTunerPlugin_v5");
  const std::pair<std::size_t, std::size_t> none{algorithms, protocols};
  void* context = begin(plugin, 4, 1);
  EXPECT_EQ(chosen(ask(plugin, context, 1 << 20)), none);
  EXPECT_NE(tuner_log().find("has 8 ranks on 1 machines, the communicator 4 on 1"), std::string::npos) << tuner_log();
  plugin.destroy(context);

  context = begin(plugin);
  EXPECT_EQ(chosen(ask(plugin, context, 1 << 20, static_cast<Function>(6))), none);  // Send
  Costs nothing;
  for (auto& row : nothing) row.fill(ignored_cost);
  int channels = 0;
  plugin.choose(context, Function::all_reduce, 1 << 20, 1, reinterpret_cast<float**>(nothing.data()), algorithms,
                protocols, 0, &channels);
  EXPECT_EQ(chosen(nothing), none);
  plugin.destroy(context);

  for (const auto& [machine, why] :
       {std::pair{"", "names no machine file"}, {"/missing/box.yaml", "/missing/box.yaml"}}) {
    setenv("ESPALIER_TUNER_MACHINE", machine, 1);
    tuner_log().clear();
    context = begin(plugin);
    EXPECT_EQ(chosen(ask(plugin, context, 1 << 20)), none);
    EXPECT_NE(tuner_log().find(why), std::string::npos) << tuner_log();
    plugin.destroy(context);
  }
  EXPECT_EQ(dlsym(library_, "ncclTunerPlugin_v1"), nullptr);
  EXPECT_EQ(dlsym(library_, "ncclTunerPlugin_v6"), nullptr);
}

TEST_F(TunerTest, CommunicatorsOfSeveralThreadsChooseAlike) {
  const auto& plugin = version<InterfaceV5>("ncclTunerPlugin_v5");
  std::vector<std::pair<std::size_t, std::size_t>> found(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < found.size(); ++i) {
    threads.emplace_back([&, i] {
      void* context = nullptr;
      plugin.init(&context, i, 8, 1, nullptr, nullptr, nullptr);
      found[i] = chosen(ask(plugin, context, 1 << 22));
      plugin.destroy(context);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& each : found) EXPECT_EQ(each, found.front());
}

}  // namespace
}  // namespace espalier::nccl_plugins::tuner
