#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string>

#include "engine/cuda/device/cuda_device.h"
#include "engine/cuda/kernels/embedded_kernels.h"

namespace espalier::test {

/// Kernels as the fake driver takes them: the magic number of a fat binary.
inline constexpr std::array<unsigned char, 4> fake_image = {0x50, 0xED, 0x55, 0xBA};

/// The fake driver (tests/support/fake_cuda), under a setting of the environment that goes when this does. Without a
/// setting it is the real one where ESPALIER_TEST_DRIVER names it, libcuda.so.1, with its first GPU for any.
class FakeGpus {
 public:
  FakeGpus() : real_(std::getenv("ESPALIER_TEST_DRIVER")) {
    driver_ = engine::cuda::Driver::load(real_ != nullptr ? real_ : ESPALIER_FAKE_CUDA);
  }
  FakeGpus(const char* setting, const char* value) : setting_(setting) {
    setenv(setting, value, 1);
    driver_ = engine::cuda::Driver::load(ESPALIER_FAKE_CUDA);
  }
  ~FakeGpus() {
    if (!setting_.empty()) unsetenv(setting_.c_str());
  }
  FakeGpus(const FakeGpus&) = delete;
  FakeGpus& operator=(const FakeGpus&) = delete;

  [[nodiscard]] const Result<std::shared_ptr<const engine::cuda::Driver>>& driver() const { return driver_; }
  [[nodiscard]] Result<std::unique_ptr<engine::cuda::CudaDevice>> open(int ordinal) const {
    if (!driver_) return tl::unexpected(driver_.error());
    if (real_ != nullptr) return engine::cuda::CudaDevice::open(*driver_, 0, engine::cuda::embedded_kernels());
    return engine::cuda::CudaDevice::open(*driver_, ordinal, fake_image);
  }

 private:
  std::string setting_;
  const char* real_ = nullptr;
  Result<std::shared_ptr<const engine::cuda::Driver>> driver_ = fail(ErrorCode::unavailable, "not loaded");
};

}  // namespace espalier::test
