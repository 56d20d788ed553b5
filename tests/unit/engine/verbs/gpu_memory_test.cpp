// Device memory that cards reach: as a dma-buf, and by its address. This machine's driver (rdma_rxe) takes neither, so
// the two functions of libibverbs that ask it stand here: they give it the pages behind a LateDevice's addresses. All
// else is real: keys, queue pairs, packets. A processor that touches such an address ends the test.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>

#include "engine/communicator/make_transports.h"
#include "tests/support/device_case.h"
#include "tests/support/engine_cases.h"
#include "tests/support/late_device.h"
#include "tests/support/local_ranks.h"

// The functions behind these macros.
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

extern "C" ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* domain, std::uint64_t offset, std::size_t length, std::uint64_t address,
                                     int descriptor, int access) {
  const int kind = fcntl(descriptor, F_GET_SEALS);  // That it is of memfd_create, as a LateDevice's are.
  if (kind < 0) {
    using Function = decltype(&ibv_reg_dmabuf_mr);
    return reinterpret_cast<Function>(dlsym(RTLD_NEXT, "ibv_reg_dmabuf_mr"))(domain, offset, length, address,
                                                                             descriptor, access);
  }
  void* const pages =
      mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, static_cast<std::int64_t>(offset));
  if (pages == MAP_FAILED) return nullptr;
  ibv_mr* const region = ibv_reg_mr_iova(domain, pages, length, address, access);
  munmap(pages, length);  // The driver holds them.
  return region;
}

extern "C" ibv_mr* ibv_reg_mr(ibv_pd* domain, void* address, std::size_t length, int access) {
  if (std::byte* const within = espalier::test::CardMemories::all().find(address); within != nullptr) {
    return ibv_reg_mr_iova(domain, within, length, reinterpret_cast<std::uint64_t>(address), access);
  }
  using Function = decltype(&ibv_reg_mr);
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, "ibv_reg_mr"))(domain, address, length, access);
}

namespace espalier::engine {
namespace {

using test::CardAccess;

std::vector<CardAccess> card_access_here() {
  return has_verbs() ? std::vector{CardAccess::dma_buf, CardAccess::address} : std::vector<CardAccess>{};
}

/// Bytes that the devices of two ranks copied in a broadcast, and the most copies that one had at a time.
struct Copies {
  std::atomic<std::size_t> bytes = 0;
  std::atomic<std::size_t> most = 0;
};

constexpr std::size_t broadcast_count = std::size_t{64} << 10U;  // Of 4 bytes, in four chunks.

void run_with(CardAccess cards, Copies& copies, const std::function<void(Communicator&)>& body) {
  test::PlannedSource source{"flat", Bytes{std::int64_t{64} << 10U}};
  JobOptions options;
  options.transport = TransportChoice::verbs;
  options.timeout = std::chrono::milliseconds(20000);
  options.make_device = [&copies, cards] {
    return std::make_unique<test::LateDevice>(
        test::LateDeviceOptions{.copied = &copies.bytes, .max_copies = &copies.most, .cards = cards});
  };
  run_ranks(2, source.source(), std::move(options), body);
}

class GpuMemory : public ::testing::TestWithParam<CardAccess> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GpuMemory);

TEST_P(GpuMemory, IsReachedWithoutCopies) {
  const auto broadcast = [](Communicator& world) {
    test::run_device_case(
        world, {CollectiveKind::broadcast, ElementType::int32, ReduceOperation::sum, 2, 0, broadcast_count, 5});
  };
  Copies staged;
  run_with(CardAccess::none, staged, broadcast);
  Copies direct;
  run_with(GetParam(), direct, broadcast);
  // To pinned memory at the sender, and from it at the receiver.
  EXPECT_EQ(staged.bytes - direct.bytes, 2 * broadcast_count * sizeof(std::int32_t));
  EXPECT_GE(staged.most, 2U) << "one chunk is copied while the one before it is sent";
}

TEST_P(GpuMemory, CarriesEveryCollective) {
  Copies copies;
  run_with(GetParam(), copies, [](Communicator& world) {
    for (const CollectiveKind kind : all_collective_kinds) {
      for (const std::size_t count : {std::size_t{1}, std::size_t{5000}, std::size_t{33333}}) {
        test::run_device_case(world, {kind, ElementType::int32, ReduceOperation::sum, 2, 0, count, count});
        if (::testing::Test::HasFailure()) return world.abort("a test failed");
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, GpuMemory, ::testing::ValuesIn(card_access_here()), [](const auto& access) {
  return access.param == CardAccess::dma_buf ? "verbsDmaBuf" : "verbsAddress";
});

}  // namespace
}  // namespace espalier::engine
