// The driver is loaded when it is there, and its words are told when something fails.
#include "engine/cuda/driver/driver.h"

#include <gtest/gtest.h>

#include "tests/support/fake_gpus.h"

namespace espalier::engine::cuda {
namespace {

TEST(Driver, SaysThatThereIsNone) {
  const auto driver = Driver::load("libno-such-driver.so.1");
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().code, ErrorCode::unavailable);
  EXPECT_EQ(driver.error().message.rfind("no CUDA driver: libno-such-driver.so.1: cannot open shared object file", 0),
            0U)
      << driver.error().message;
}

TEST(Driver, RefusesALibraryThatIsNoDriver) {
  const auto driver = Driver::load("libm.so.6");
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().message, "the CUDA driver libm.so.6 has no cuInit");
}

TEST(Driver, CountsItsGpus) {
  const test::FakeGpus gpus("FAKE_CUDA_GPUS", "3");
  ASSERT_TRUE(gpus.driver()) << gpus.driver().error().message;
  EXPECT_EQ((*gpus.driver())->device_count(), 3);
  EXPECT_EQ((*gpus.driver())->version(), 13000);
}

TEST(Driver, SaysThatItHasNoGpus) {
  const test::FakeGpus gpus("FAKE_CUDA_GPUS", "0");
  ASSERT_FALSE(gpus.driver());
  EXPECT_EQ(gpus.driver().error().message,
            "cannot initialise the CUDA driver: CUDA_ERROR_NO_DEVICE (100, as the fake driver has it)");
  EXPECT_EQ(gpus.driver().error().help,
            "nvidia-smi lists the GPUs; CUDA_VISIBLE_DEVICES, and what a container is given, hide some");
}

TEST(Driver, TellsStatusesApart) {
  EXPECT_EQ(kind_of(2), StatusKind::memory);        // CUDA_ERROR_OUT_OF_MEMORY
  EXPECT_EQ(kind_of(100), StatusKind::plain);       // CUDA_ERROR_NO_DEVICE
  EXPECT_EQ(kind_of(700), StatusKind::sticky);      // CUDA_ERROR_ILLEGAL_ADDRESS
  EXPECT_EQ(kind_of(716), StatusKind::sticky);      // CUDA_ERROR_MISALIGNED_ADDRESS
  EXPECT_EQ(kind_of(719), StatusKind::sticky);      // CUDA_ERROR_LAUNCH_FAILED
  EXPECT_EQ(kind_of(720), StatusKind::plain);       // CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
  EXPECT_EQ(kind_of(214), StatusKind::lost);        // CUDA_ERROR_ECC_UNCORRECTABLE
  EXPECT_EQ(kind_of(222), StatusKind::mismatched);  // CUDA_ERROR_UNSUPPORTED_PTX_VERSION
}

}  // namespace
}  // namespace espalier::engine::cuda
