#include "topology/import/nvml/record_nvml.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "topology/import/nvml/nvml_library.h"
#include "topology/import/pci.h"

namespace espalier {
namespace {

/// nvmlGpuTopologyLevel_t, as the reader of these lines names them.
std::string_view level_name(int level) {
  switch (level) {
    case 0: return "board";
    case 10: return "switch";
    case 20: return "switches";
    case 30: return "bridge";
    case 40: return "node";
    default: return "system";
  }
}

tl::unexpected<Error> failed(std::string_view what, NvmlStatus status) {
  return fail(ErrorCode::unavailable, fmt::format("NVML cannot {}: it gives {}", what, status),
              "see whether nvidia-smi works");
}

std::string gpu_line(const NvmlLibrary& nvml, unsigned number, NvmlDevice gpu, const NvmlPciInfo& place) {
  std::string line = fmt::format("gpu {} bus={}", number, normal_bus(place.bus_id.data()));
  unsigned generation = 0;
  unsigned width = 0;
  if (nvml.pcie_generation(gpu, &generation) == nvml_success && nvml.pcie_width(gpu, &width) == nvml_success) {
    line += fmt::format(" generation={} width={}", generation, width);
  }
  return line + "\n";
}

/// Links that the GPU does not have are no lines; those that are down have no rate.
std::string link_lines(const NvmlLibrary& nvml, unsigned number, NvmlDevice gpu) {
  std::string lines;
  NvmlField speed{.field = nvml_field_link_speed};
  const bool knows_speed = nvml.fields(gpu, 1, &speed) == nvml_success && speed.status == nvml_success;
  for (unsigned link = 0; link < nvml_most_links; ++link) {
    int state = 0;
    if (nvml.link_state(gpu, link, &state) != nvml_success) continue;
    std::string line = fmt::format("nvlink {} link={}", number, link);
    if (state != nvml_on) {
      lines += line + " state=down\n";
      continue;
    }
    int type = -1;
    if (nvml.link_remote_type(gpu, link, &type) == nvml_success) {
      line += type == nvml_remote_gpu ? " to=gpu" : type == nvml_remote_switch ? " to=switch" : " to=other";
    }
    NvmlPciInfo remote{};
    if (nvml.link_remote(gpu, link, &remote) == nvml_success && remote.bus_id[0] != '\0') {
      line += " bus=" + normal_bus(remote.bus_id.data());
    }
    if (knows_speed && speed.value.number > 0) line += fmt::format(" rate={}", speed.value.number);
    lines += line + "\n";
  }
  return lines;
}

}  // namespace

Result<std::string> record_nvml(const std::string& library) {
  const auto nvml = NvmlLibrary::load(library);
  if (!nvml) return tl::unexpected(nvml.error());
  unsigned count = 0;
  if (const auto status = nvml->count(&count); status != nvml_success) return failed("count the GPUs", status);
  std::string text = "nvml 1\n";
  std::vector<NvmlDevice> gpus(count);
  for (unsigned i = 0; i < count; ++i) {
    NvmlPciInfo place{};
    auto status = nvml->device(i, &gpus[i]);
    if (status == nvml_success) status = nvml->pci(gpus[i], &place);
    if (status != nvml_success) return failed(fmt::format("find GPU {}", i), status);
    text += gpu_line(*nvml, i, gpus[i], place);
    text += link_lines(*nvml, i, gpus[i]);
  }
  for (unsigned i = 0; i < count; ++i) {
    for (unsigned j = i + 1; j < count; ++j) {
      int level = 0;
      if (nvml->common_ancestor(gpus[i], gpus[j], &level) != nvml_success) continue;
      text += fmt::format("path {} {} level={}\n", i, j, level_name(level));
    }
  }
  return text;
}

}  // namespace espalier
