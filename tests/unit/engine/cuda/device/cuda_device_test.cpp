// A GPU as a device: the suite of all devices on the fake driver, and what goes wrong.
#include "engine/cuda/device/cuda_device.h"

#include <gtest/gtest.h>

#include "tests/support/device_conformance.h"
#include "tests/support/fake_gpus.h"

namespace espalier::engine::cuda {

INSTANTIATE_TEST_SUITE_P(Cuda, DeviceConformance,
                         ::testing::Values(DeviceCase{"cuda", [] { return std::move(*test::FakeGpus().open(1)); }}),
                         [](const auto& device) { return std::string(device.param.name); });
namespace {

TEST(CudaDevice, NeedsKernels) {
  const test::FakeGpus gpus;
  const auto opened = CudaDevice::open(*gpus.driver(), 0, {});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().message, "this espalier was built without its CUDA kernels");
}

TEST(CudaDevice, RefusesAGpuThatIsNotThere) {
  const test::FakeGpus gpus;
  const auto opened = gpus.open(2);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().message, "there is no GPU 2: the driver sees 2");
}

TEST(CudaDevice, SaysThatItsMemoryIsUsedUp) {
  const test::FakeGpus gpus("FAKE_CUDA_MEMORY", "8192");
  const auto device = gpus.open(0);
  ASSERT_TRUE(device) << device.error().message;
  const auto memory = (*device)->allocate(8192, MemorySpace::device);
  ASSERT_TRUE(memory) << memory.error().message;
  const auto more = (*device)->allocate(1, MemorySpace::device);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, ErrorCode::unavailable);
  EXPECT_EQ(more.error().message,
            "cannot allocate 1 bytes on GPU 0: CUDA_ERROR_OUT_OF_MEMORY (2, as the fake driver has it)");
  (*device)->release(*memory, 8192);
  const auto again = (*device)->allocate(8192, MemorySpace::device);  // Nothing was lost.
  ASSERT_TRUE(again) << again.error().message;
  (*device)->release(*again, 8192);
}

TEST(CudaDevice, FailsItsQueueForGoodAfterAStickyError) {
  const test::FakeGpus gpus("FAKE_CUDA_FAIL", "cuMemcpyAsync:2:700");
  const auto device = gpus.open(0);
  ASSERT_TRUE(device) << device.error().message;
  const auto queue = (*device)->make_queue();
  ASSERT_TRUE(queue) << queue.error().message;
  std::array<std::byte, 8> from{};
  std::array<std::byte, 8> to{};
  (*queue)->copy(to.data(), from.data(), 8);
  EXPECT_FALSE((*queue)->has_failed());
  (*queue)->copy(to.data(), from.data(), 8);
  ASSERT_TRUE((*queue)->has_failed());
  EXPECT_EQ((*queue)->error().message, "cannot copy: CUDA_ERROR_ILLEGAL_ADDRESS (700, as the fake driver has it)");
  EXPECT_EQ((*queue)->error().help, "this process can use the GPU no more: start it anew");
  for (int looks = 0; looks < 100; ++looks) EXPECT_FALSE((*queue)->is_done((*queue)->mark()));
  const auto memory = (*device)->allocate(64, MemorySpace::device);
  EXPECT_FALSE(memory);
  (*queue)->drain();
  EXPECT_TRUE((*queue)->is_done((*queue)->mark()));
}

TEST(CudaDevice, RefusesMoreSourcesThanAKernelTakes) {
  const test::FakeGpus gpus;
  const auto device = gpus.open(0);
  const auto queue = (*device)->make_queue();
  std::array<float, 4> data{};
  const std::array<void*, 1> targets = {data.data()};
  const std::vector<const void*> sources(65, data.data());
  (*queue)->reduce(ElementType::float32, ReduceOperation::sum, targets, data.data(), sources, 4);
  ASSERT_TRUE((*queue)->has_failed());
  EXPECT_EQ((*queue)->error().message, "a reduction of 65 sources: a kernel takes 64");
}

}  // namespace
}  // namespace espalier::engine::cuda
