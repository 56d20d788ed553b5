#pragma once

// Tested by: tests/unit/topology/import/formats/gpu_names_test.cpp

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "topology/import/draft.h"

namespace espalier {

/// What a text calls its GPUs, by number, where reports name them beside what they say of their links:
///   GPU 0: NVIDIA H100 80GB HBM3 (UUID: ...)            nvidia-smi -L, reports of PyTorch
///   GPU 0,1,2,3: NVIDIA GB200                           reports of inference servers
///   |   0  NVIDIA A100-SXM4-80GB    On | 00000000:07:00.0 Off |   nvidia-smi
///   #  Rank  0 Group 0 Pid 7 on node1 device  0 [0x07] NVIDIA H100 80GB HBM3   nccl-tests
///   Device: 0, NVIDIA GeForce RTX 4090, pciBusID: 1     p2pBandwidthLatencyTest
/// A GPU that has two names has none. Cost: linear in the text.
std::map<std::int64_t, std::string> gpu_names_in(std::string_view text);

/// The model of AMD's GPUs that a text names before its architecture, "AMD Instinct MI300X (gfx942:sramecc+)"; empty
/// where none is named, or several. Cost: linear in the text.
std::string amd_gpu_in(std::string_view text);

/// Gives the GPUs of a draft that are called "gpu0" and so on these names, where they have none, and their links the
/// rate of their generation.
void name_gpus(Draft& draft, const std::map<std::int64_t, std::string>& names);

}  // namespace espalier
