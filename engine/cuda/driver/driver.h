#pragma once

// Tested by: tests/unit/engine/cuda/driver/driver_test.cpp

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/cuda/driver/driver_api.h"

namespace espalier::engine::cuda {

/// NVIDIA's driver library, loaded when it is asked for: this program is the same with and without it. Used by any
/// thread.
class Driver {
 public:
  /// Loads the library and initialises it. It stays loaded until the process ends.
  /// Errors: unavailable, with the loader's or the driver's reason.
  static Result<std::shared_ptr<const Driver>> load(const std::string& library = "libcuda.so.1");

  [[nodiscard]] const DriverApi& api() const { return api_; }
  /// 1000 x major + 10 x minor of the CUDA version that it supports.
  [[nodiscard]] int version() const { return version_; }
  [[nodiscard]] int device_count() const { return device_count_; }

  /// What a status says: "cannot ACTION: NAME (TEXT)", and what to do about it.
  [[nodiscard]] Error describe(DriverStatus status, std::string_view action) const;
  /// Errors: as `describe`.
  [[nodiscard]] Result<void> check(DriverStatus status, std::string_view action) const {
    if (status == status_success) return {};
    return tl::unexpected(describe(status, action));
  }

 private:
  Driver() = default;
  Result<void> find_functions(void* library, const std::string& name);

  DriverApi api_;
  int version_ = 0;
  int device_count_ = 0;
};

/// What a status means for who goes on.
enum class StatusKind {
  plain,       ///< This call failed; others may not.
  memory,      ///< Not enough.
  sticky,      ///< The context is lost: all calls fail from now on, until the process ends.
  lost,        ///< The GPU itself is gone or broken.
  mismatched,  ///< Driver, GPU and kernels do not fit each other.
};

StatusKind kind_of(DriverStatus status);

}  // namespace espalier::engine::cuda
