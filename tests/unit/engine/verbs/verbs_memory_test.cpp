#include <gtest/gtest.h>
#include <sys/mman.h>

#include <chrono>
#include <cstdint>

#include "engine/communicator/make_transports.h"
#include "tests/support/engine_cases.h"
#include "tests/support/local_ranks.h"

namespace espalier::engine {
namespace {

/// Only where there is a device: scripts/verbs-vm boots a machine with one.
std::vector<TransportChoice> verbs_if_here() {
  return has_verbs() ? std::vector{TransportChoice::verbs} : std::vector<TransportChoice>{};
}

class RegisteredMemory : public ::testing::TestWithParam<TransportChoice> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RegisteredMemory);

/// Numbers of 4 bytes; large enough to be written directly.
constexpr std::size_t gathered_shard = std::size_t{40} << 10U;
constexpr std::size_t gathering_ranks = 3;
constexpr std::size_t gathered_bytes = gathering_ranks * gathered_shard * sizeof(std::uint32_t);

/// Fresh pages at an address, or anywhere; what was there before is gone.
std::uint32_t* map_pages(void* at) {
  void* const mapped = mmap(at, gathered_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | (at == nullptr ? 0 : MAP_FIXED), -1, 0);
  EXPECT_NE(mapped, MAP_FAILED);
  return static_cast<std::uint32_t*>(mapped);
}

std::uint32_t gathered_number(std::size_t at, std::uint32_t round) {
  return static_cast<std::uint32_t>(at * 7 + round);
}

/// Every number from the rank that has it, and nothing else.
void gather_numbers(Communicator& communicator, std::uint32_t* data, std::uint32_t round) {
  std::uint32_t* const own = data + communicator.rank() * gathered_shard;
  for (std::size_t i = 0; i < gathering_ranks * gathered_shard; ++i) data[i] = UINT32_MAX;
  const std::size_t first = communicator.rank() * gathered_shard;
  for (std::size_t i = 0; i < gathered_shard; ++i) own[i] = gathered_number(first + i, round);
  const auto done = communicator.all_gather(own, data, gathered_shard, ElementType::uint32);
  ASSERT_TRUE(done) << done.error().message;
  for (std::size_t i = 0; i < gathering_ranks * gathered_shard; ++i) {
    ASSERT_EQ(data[i], gathered_number(i, round)) << i << " in round " << round;
  }
}

/// A device keeps the pages of a registration: who wrote or read through one that is stale would miss the new pages.
TEST_P(RegisteredMemory, AMappingAtTheSameAddressIsReachedAnew) {
  test::PlannedSource source{"ring", Bytes{std::int64_t{64} << 10U}};
  JobOptions options;
  options.transport = GetParam();
  options.timeout = std::chrono::milliseconds(20000);
  run_ranks(gathering_ranks, source.source(), std::move(options), [](Communicator& communicator) {
    std::uint32_t* const data = map_pages(nullptr);
    for (std::uint32_t round = 0; round < 9; round += 3) {
      ASSERT_TRUE(communicator.register_buffer(data, gathered_bytes));
      gather_numbers(communicator, data, round);
      ASSERT_TRUE(communicator.deregister_buffer(data));
      map_pages(data);
      gather_numbers(communicator, data, round + 1);  // Not registered.
      map_pages(data);
      ASSERT_TRUE(communicator.register_buffer(data, gathered_bytes));
      gather_numbers(communicator, data, round + 2);
      ASSERT_TRUE(communicator.deregister_buffer(data));
    }
    munmap(data, gathered_bytes);
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, RegisteredMemory, ::testing::ValuesIn(verbs_if_here()),
                         [](const auto& transport) { return std::string(to_string(transport.param)); });

}  // namespace
}  // namespace espalier::engine
