#include "engine/cuda/driver/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace espalier::engine::cuda {
namespace {

/// cuda.h's CUresult, in the order of its numbers.
enum KnownStatus : DriverStatus {
  out_of_memory = 2,
  deinitialized = 4,
  insufficient_driver = 35,
  device_unavailable = 46,
  no_device = 100,
  no_binary_for_gpu = 209,
  ecc_uncorrectable = 214,
  invalid_ptx = 218,
  nvlink_uncorrectable = 220,
  unsupported_ptx_version = 222,
  illegal_address = 700,
  launch_timeout = 702,
  asserted = 710,
  hardware_stack_error = 714,
  launch_failed = 719,
  system_not_ready = 802,
  system_driver_mismatch = 803,
  compat_not_supported_on_device = 804,
  unknown = 999,
};

std::string help_for(DriverStatus status) {
  if (status == no_device)
    return "nvidia-smi lists the GPUs; CUDA_VISIBLE_DEVICES, and what a container is given, hide some";
  switch (kind_of(status)) {
    case StatusKind::memory: return "free memory of the GPU (nvidia-smi shows who has it), or use smaller buffers";
    case StatusKind::sticky: return "this process can use the GPU no more: start it anew";
    case StatusKind::lost: return "the GPU is lost: see nvidia-smi and the kernel's log for its Xid, then reset it";
    case StatusKind::mismatched: return "install a driver for CUDA 12.8 or newer, and one that knows this GPU";
    case StatusKind::plain: return {};
  }
  return {};
}

}  // namespace

StatusKind kind_of(DriverStatus status) {
  switch (status) {
    case out_of_memory: return StatusKind::memory;
    case deinitialized:
    case illegal_address:
    case launch_timeout:
    case asserted:
    case unknown: return StatusKind::sticky;
    case device_unavailable:
    case ecc_uncorrectable:
    case nvlink_uncorrectable: return StatusKind::lost;
    case insufficient_driver:
    case no_binary_for_gpu:
    case invalid_ptx:
    case unsupported_ptx_version:
    case system_not_ready:
    case system_driver_mismatch:
    case compat_not_supported_on_device: return StatusKind::mismatched;
    default: break;
  }
  // Errors of a kernel: stack, instruction, alignment, address space, program counter, launch.
  return status >= hardware_stack_error && status <= launch_failed ? StatusKind::sticky : StatusKind::plain;
}

Result<std::shared_ptr<const Driver>> Driver::load(const std::string& library) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = dlerror();
    return fail(ErrorCode::unavailable,
                fmt::format("no CUDA driver: {}", why != nullptr ? why : library + " cannot be loaded"),
                "GPUs need NVIDIA's driver on this machine (in a container, its libraries: --gpus all)");
  }
  std::shared_ptr<Driver> driver(new Driver());
  if (auto found = driver->find_functions(handle, library); !found) return tl::unexpected(found.error());
  const DriverApi& api = driver->api_;
  if (auto done = driver->check(api.init(0), "initialise the CUDA driver"); !done) return tl::unexpected(done.error());
  if (auto done = driver->check(api.driver_version(&driver->version_), "read the driver's version"); !done) {
    return tl::unexpected(done.error());
  }
  if (auto done = driver->check(api.device_count(&driver->device_count_), "count the GPUs"); !done) {
    return tl::unexpected(done.error());
  }
  return driver;
}

// NOLINTNEXTLINE(readability-function-size): a macro's rows
Result<void> Driver::find_functions(void* library, const std::string& name) {
  const auto find = [&]<class Function>(Function& function, const char* symbol) -> Result<void> {
    function = reinterpret_cast<Function>(dlsym(library, symbol));
    if (function != nullptr) return {};
    return fail(ErrorCode::unavailable, fmt::format("the CUDA driver {} has no {}", name, symbol),
                "install a driver for CUDA 12.8 or newer");
  };
#define ESPALIER_ROW(member, symbol, parameters) \
  if (auto found = find(api_.member, symbol); !found) return found;
  ESPALIER_DRIVER_FUNCTIONS(ESPALIER_ROW)
#undef ESPALIER_ROW
  return {};
}

Error Driver::describe(DriverStatus status, std::string_view action) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (api_.error_name(status, &name) != status_success || name == nullptr) name = "CUDA_ERROR";
  if (api_.error_text(status, &text) != status_success || text == nullptr) text = "a status that it does not describe";
  return {ErrorCode::unavailable, fmt::format("cannot {}: {} ({}, {})", action, name, status, text), help_for(status)};
}

}  // namespace espalier::engine::cuda
