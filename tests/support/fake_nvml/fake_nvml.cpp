// An NVML for tests: a libnvidia-ml.so.1 that describes the machine that FAKE_NVML names. "switched" (the default): two
// GPUs with 18 links each to NVSwitches, on two sockets. "direct": four GPUs with two links to each other one, one of
// which is down at GPU 3, and two below each PCIe switch. "old": as direct, but the rate of a link is not known.
// "none": no GPU. "broken": it does not start.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "topology/import/nvml/nvml_library.h"

namespace espalier::test {
namespace {

constexpr NvmlStatus invalid_argument = 2;
constexpr NvmlStatus not_supported = 3;
constexpr NvmlStatus driver_not_loaded = 9;

std::string machine() {
  const char* const name = std::getenv("FAKE_NVML");
  return name == nullptr ? "switched" : name;
}
bool is_switched() { return machine() == "switched"; }
unsigned gpus() { return machine() == "none" ? 0 : is_switched() ? 2 : 4; }

/// Handles are numbers from 1.
unsigned index_of(NvmlDevice device) { return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(device)) - 1; }

void place_at(unsigned bus, NvmlPciInfo* info) {
  *info = {};
  const std::string text =
      std::string("00000000:") + "0123456789ABCDEF"[bus / 16] + "0123456789ABCDEF"[bus % 16] + ":00.0";
  std::memcpy(info->bus_id.data(), text.c_str(), text.size());
}
unsigned bus_of(unsigned gpu) { return is_switched() ? (gpu == 0 ? 0x18 : 0x81) : 0x20 + gpu; }

/// The GPU that a link of a direct machine leads to: two links for each other GPU, in order.
unsigned peer_of(unsigned gpu, unsigned link) { return link / 2 < gpu ? link / 2 : link / 2 + 1; }

}  // namespace
}  // namespace espalier::test

using namespace espalier;        // NOLINT: what follows are the library's own names.
using namespace espalier::test;  // NOLINT

extern "C" {

NvmlStatus nvmlInit_v2() { return machine() == "broken" ? driver_not_loaded : nvml_success; }
NvmlStatus nvmlShutdown() { return nvml_success; }

NvmlStatus nvmlDeviceGetCount_v2(unsigned* count) {
  *count = gpus();
  return nvml_success;
}

NvmlStatus nvmlDeviceGetHandleByIndex_v2(unsigned index, NvmlDevice* device) {
  if (index >= gpus()) return invalid_argument;
  *device = reinterpret_cast<NvmlDevice>(static_cast<std::uintptr_t>(index + 1));
  return nvml_success;
}

NvmlStatus nvmlDeviceGetPciInfo_v3(NvmlDevice device, NvmlPciInfo* info) {
  place_at(bus_of(index_of(device)), info);
  return nvml_success;
}

NvmlStatus nvmlDeviceGetMaxPcieLinkGeneration(NvmlDevice, unsigned* generation) {
  *generation = is_switched() ? 5 : 3;
  return nvml_success;
}

NvmlStatus nvmlDeviceGetMaxPcieLinkWidth(NvmlDevice, unsigned* width) {
  *width = 16;
  return nvml_success;
}

NvmlStatus nvmlDeviceGetTopologyCommonAncestor(NvmlDevice one, NvmlDevice other, int* level) {
  *level = !is_switched() && index_of(one) / 2 == index_of(other) / 2 ? 10 : 50;
  return nvml_success;
}

NvmlStatus nvmlDeviceGetNvLinkState(NvmlDevice device, unsigned link, int* is_on) {
  if (link >= (is_switched() ? 18U : 6U)) return invalid_argument;
  *is_on = is_switched() || index_of(device) != 3 || link != 5 ? 1 : 0;
  return nvml_success;
}

NvmlStatus nvmlDeviceGetNvLinkRemotePciInfo_v2(NvmlDevice device, unsigned link, NvmlPciInfo* info) {
  place_at(is_switched() ? 0xC5 + link / 5 : bus_of(peer_of(index_of(device), link)), info);
  return nvml_success;
}

NvmlStatus nvmlDeviceGetNvLinkRemoteDeviceType(NvmlDevice, unsigned, int* type) {
  *type = is_switched() ? nvml_remote_switch : nvml_remote_gpu;
  return nvml_success;
}

NvmlStatus nvmlDeviceGetFieldValues(NvmlDevice, int count, NvmlField* fields) {
  for (int i = 0; i < count; ++i) {
    fields[i].status = fields[i].field == nvml_field_link_speed && machine() != "old" ? nvml_success : not_supported;
    fields[i].value.number = is_switched() ? 26562 : 25781;
  }
  return nvml_success;
}
}
