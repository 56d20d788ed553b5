#pragma once

// Tested by: tests/unit/topology/import/nvml_test.cpp

#include <array>
#include <string>

#include "base/result.h"

namespace espalier {

using NvmlStatus = int;
using NvmlDevice = void*;

/// nvmlPciInfo_t.
struct NvmlPciInfo {
  std::array<char, 16> legacy_bus;
  unsigned domain, bus, device, device_id, subsystem_id;
  std::array<char, 32> bus_id;
};

/// nvmlFieldValue_t.
struct NvmlField {
  unsigned field = 0;
  unsigned scope = 0;
  long long timestamp = 0;
  long long latency = 0;
  int type = 0;
  NvmlStatus status = 0;
  union {
    double real;
    unsigned number;
    unsigned long long large;
  } value{};
};

/// A row for each function of NVIDIA's management library that is called, as the NVML API Reference declares them, with
/// plain types: our name, the library's, the parameters. All return an NvmlStatus.
#define ESPALIER_NVML_FUNCTIONS(ROW)                                                                             \
  ROW(init, "nvmlInit_v2", ())                                                                                   \
  ROW(shutdown, "nvmlShutdown", ())                                                                              \
  ROW(count, "nvmlDeviceGetCount_v2", (unsigned* count))                                                         \
  ROW(device, "nvmlDeviceGetHandleByIndex_v2", (unsigned index, NvmlDevice* device))                             \
  ROW(pci, "nvmlDeviceGetPciInfo_v3", (NvmlDevice device, NvmlPciInfo * info))                                   \
  ROW(pcie_generation, "nvmlDeviceGetMaxPcieLinkGeneration", (NvmlDevice device, unsigned* generation))          \
  ROW(pcie_width, "nvmlDeviceGetMaxPcieLinkWidth", (NvmlDevice device, unsigned* width))                         \
  ROW(common_ancestor, "nvmlDeviceGetTopologyCommonAncestor", (NvmlDevice one, NvmlDevice other, int* level))    \
  ROW(link_state, "nvmlDeviceGetNvLinkState", (NvmlDevice device, unsigned link, int* is_on))                    \
  ROW(link_remote, "nvmlDeviceGetNvLinkRemotePciInfo_v2", (NvmlDevice device, unsigned link, NvmlPciInfo* info)) \
  ROW(link_remote_type, "nvmlDeviceGetNvLinkRemoteDeviceType", (NvmlDevice device, unsigned link, int* type))    \
  ROW(fields, "nvmlDeviceGetFieldValues", (NvmlDevice device, int count, NvmlField* fields))

inline constexpr NvmlStatus nvml_success = 0;
inline constexpr int nvml_on = 1;
inline constexpr unsigned nvml_most_links = 18;
inline constexpr int nvml_remote_gpu = 0;              ///< nvmlIntNvLinkDeviceType_t.
inline constexpr int nvml_remote_switch = 2;           ///< NVML_NVLINK_DEVICE_TYPE_SWITCH.
inline constexpr unsigned nvml_field_link_speed = 96;  ///< NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON.

/// NVIDIA's management library, loaded when it is asked for: this program is the same with and without it.
class NvmlLibrary {
 public:
  /// Loads and starts it. Errors: unavailable, with the loader's or the library's reason.
  static Result<NvmlLibrary> load(const std::string& name);
  NvmlLibrary(NvmlLibrary&& other) noexcept;
  NvmlLibrary& operator=(NvmlLibrary&&) = delete;
  ~NvmlLibrary();

#define ESPALIER_ROW(name, symbol, parameters) NvmlStatus(*name) parameters = nullptr;
  ESPALIER_NVML_FUNCTIONS(ESPALIER_ROW)
#undef ESPALIER_ROW

 private:
  NvmlLibrary() = default;
  void* library_ = nullptr;
};

}  // namespace espalier
