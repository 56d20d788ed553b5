#include "topology/import/nvml/nvml_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <utility>

namespace espalier {
namespace {

constexpr const char* get_driver = "NVIDIA's driver has it (in a container: --gpus all)";

}  // namespace

Result<NvmlLibrary> NvmlLibrary::load(const std::string& name) {
  NvmlLibrary loaded;
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = dlerror();
    return fail(ErrorCode::unavailable, fmt::format("no NVML: {}", why != nullptr ? why : name), get_driver);
  }
  const char* missing = nullptr;
#define ESPALIER_ROW(member, symbol, parameters)                                     \
  loaded.member = reinterpret_cast<decltype(loaded.member)>(dlsym(library, symbol)); \
  if (loaded.member == nullptr && missing == nullptr) missing = symbol;
  ESPALIER_NVML_FUNCTIONS(ESPALIER_ROW)
#undef ESPALIER_ROW
  if (missing != nullptr) {
    dlclose(library);
    return fail(ErrorCode::unavailable, fmt::format("the NVML {} has no {}", name, missing),
                "install a newer driver of NVIDIA's");
  }
  if (const NvmlStatus status = loaded.init(); status != nvml_success) {
    dlclose(library);
    return fail(ErrorCode::unavailable, fmt::format("NVML does not start: nvmlInit gives {}", status),
                "see whether nvidia-smi works");
  }
  loaded.library_ = library;
  return loaded;
}

NvmlLibrary::NvmlLibrary(NvmlLibrary&& other) noexcept {
#define ESPALIER_ROW(member, symbol, parameters) member = other.member;
  ESPALIER_NVML_FUNCTIONS(ESPALIER_ROW)
#undef ESPALIER_ROW
  library_ = std::exchange(other.library_, nullptr);
}

NvmlLibrary::~NvmlLibrary() {
  if (library_ == nullptr) return;
  shutdown();
  dlclose(library_);
}

}  // namespace espalier
