#include "engine/cuda/device/gpu_path.h"

#include <fmt/format.h>

namespace espalier::engine::cuda {

Result<PathChoice> choose_path(const std::vector<std::unique_ptr<CudaDevice>>& gpus, std::optional<GpuPath> asked_for) {
  if (asked_for) return PathChoice{*asked_for, "as asked for"};
  for (const auto& gpu : gpus) {
    const auto cooperative = gpu->has_cooperative_launch();
    if (!cooperative) return tl::unexpected(cooperative.error());
    if (!*cooperative) {
      return PathChoice{GpuPath::copies,
                        fmt::format("GPU {} ({}) has no cooperative launches", gpu->ordinal(), gpu->model())};
    }
    for (const auto& peer : gpus) {
      const auto can = gpu->can_reach(*peer);
      if (!can) return tl::unexpected(can.error());
      if (*can) continue;
      return PathChoice{GpuPath::copies,
                        fmt::format("GPU {} cannot reach the memory of GPU {}", gpu->ordinal(), peer->ordinal())};
    }
  }
  return PathChoice{GpuPath::kernels, "all GPUs reach each other's memory"};
}

}  // namespace espalier::engine::cuda
