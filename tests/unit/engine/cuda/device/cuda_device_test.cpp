// A GPU as a device: the suite of all devices on the fake driver, and what goes wrong.
#include "engine/cuda/device/cuda_device.h"

#include <gtest/gtest.h>
#include <unistd.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "engine/cuda/device/cuda_queue.h"
#include "tests/support/device_conformance.h"
#include "tests/support/fake_gpus.h"

namespace espalier::engine::cuda {

INSTANTIATE_TEST_SUITE_P(Cuda, DeviceConformance,
                         ::testing::Values(DeviceCase{"cuda",
                                                      []() -> std::unique_ptr<Device> {
                                                        auto opened = test::FakeGpus().open(1);
                                                        EXPECT_TRUE(opened) << opened.error().message;
                                                        return opened ? std::move(*opened) : nullptr;
                                                      }}),
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

TEST(CudaDevice, GivesItsMemoryToNetworkCards) {
  const test::FakeGpus gpus;
  const auto device = gpus.open(0);
  const auto memory = (*device)->allocate(5000, MemorySpace::device);
  ASSERT_TRUE(memory) << memory.error().message;
  const auto exported = (*device)->export_memory(*memory, 5000);
  ASSERT_TRUE(exported) << exported.error().message;
  EXPECT_EQ(exported->offset, 0);
  const auto queue = (*device)->make_queue();
  const std::array<std::byte, 2> sent = {std::byte{7}, std::byte{9}};
  (*queue)->copy(*memory + 4998, sent.data(), 2);
  while (!(*queue)->is_done((*queue)->mark())) {
  }
  std::array<std::byte, 2> read{};
  ASSERT_EQ(pread(exported->descriptor.get(), read.data(), 2, 4998), 2);  // The same bytes by another way.
  EXPECT_EQ(read, sent);
  (*device)->release(*memory, 5000);
}

TEST(CudaDevice, SaysWhyCardsDoNotReachItsMemory) {
  const test::FakeGpus without("FAKE_CUDA_DMA_BUFS", "0");
  const auto device = without.open(0);
  const auto memory = (*device)->allocate(4096, MemorySpace::device);
  const auto exported = (*device)->export_memory(*memory, 4096);
  ASSERT_FALSE(exported);
  EXPECT_EQ(exported.error().code, ErrorCode::unsupported);
  EXPECT_NE(exported.error().message.find("gives no dma-buf"), std::string::npos) << exported.error().message;
  EXPECT_EQ(exported.error().help, "that takes the open kernel modules of NVIDIA's driver");
  const auto foreign = (*device)->export_memory(*memory + 64, 64);
  ASSERT_FALSE(foreign);
  EXPECT_NE(foreign.error().message.find("cannot prepare memory for network cards"), std::string::npos);
  (*device)->release(*memory, 4096);
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
  (*queue)->drain(DeviceQueue::patience);
  EXPECT_TRUE((*queue)->is_done((*queue)->mark()));
}

/// While one is there, what this thread allocates may be left behind.
struct MayKeep {
#ifdef __SANITIZE_ADDRESS__
  MayKeep() { __lsan_disable(); }
  ~MayKeep() { __lsan_enable(); }
#endif
};

TEST(CudaDevice, KeepsWhatAKernelThatDoesNotEndMayUse) {
  [[maybe_unused]] const MayKeep what_it_may_still_write;
  const test::FakeGpus gpus("FAKE_CUDA_HANG", "1");
  const auto device = gpus.open(0);
  ASSERT_TRUE(device) << device.error().message;
  const auto memory = (*device)->allocate(4096, MemorySpace::device);
  ASSERT_TRUE(memory);
  const auto kernel = (*device)->find_kernel(KernelKind::run, ElementType::float32, ReduceOperation::sum);
  ASSERT_TRUE(kernel);
  const auto begin = std::chrono::steady_clock::now();
  for (int queues = 0; queues < 2; ++queues) {
    const auto queue = (*device)->make_queue();
    ASSERT_TRUE(queue) << queue.error().message;
    auto& stream = static_cast<CudaQueue&>(**queue);
    stream.launch_together(*kernel, 1, {}, stream);
    stream.drain(std::chrono::milliseconds(50));
    ASSERT_TRUE(stream.has_failed());
    EXPECT_EQ(stream.error().message, "cannot finish work on a stream: GPU 0 does not end it within 50 ms");
    EXPECT_FALSE(stream.is_done(stream.mark()));
    EXPECT_TRUE((*device)->is_lost());
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  (*device)->release(*memory, 4096);
  (*memory)[4095] = std::byte{1};  // Still there.
}

/// Work that was given, and not begun, when the driver fails to say how far it is.
TEST(CudaDevice, WorkIsNotDoneBecauseNobodySaysWhetherItIs) {
  for (const char* const function : {"cuEventQuery", "cuStreamQuery"}) {
    for (const int status : {1, 2, 999}) {
      const test::FakeGpus gpus("FAKE_CUDA_FAIL", (std::string(function) + ":1:" + std::to_string(status)).c_str());
      const auto device = gpus.open(0);
      ASSERT_TRUE(device) << device.error().message;
      const auto memory = (*device)->allocate(4096, MemorySpace::device);
      ASSERT_TRUE(memory);
      const auto queue = (*device)->make_queue();
      ASSERT_TRUE(queue);
      const std::array<std::byte, 4> from = {std::byte{7}, std::byte{7}, std::byte{7}, std::byte{7}};
      (*queue)->copy(*memory, from.data(), from.size());
      for (int looks = 0; looks < 10 && function[2] == 'E'; ++looks) {
        EXPECT_FALSE((*queue)->is_done((*queue)->mark())) << function << status;
      }
      (*queue)->drain(DeviceQueue::patience);
      EXPECT_TRUE((*queue)->has_failed()) << function << status;
      EXPECT_TRUE((*queue)->is_done((*queue)->mark())) << function << status;
      EXPECT_EQ((*memory)[3], std::byte{7}) << "it had not ended: " << function << status;
      EXPECT_FALSE((*device)->is_lost());
      (*device)->release(*memory, 4096);
    }
  }
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
