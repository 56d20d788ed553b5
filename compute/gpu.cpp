#include "compute/gpu.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/suggest.h"

namespace espalier::compute {
namespace {

constexpr double T = 1e12;
constexpr double GB = 1e9;
constexpr double GiB = 1073741824.0;

// Rates of attention. H100, third: measured with cuDNN 9.19, second: with FlashAttention 2 (PyTorch 2.11). A100,
// second: T. Dao, "FlashAttention-2", ICLR 2024, figures 4 to 6 (about 190 TFLOP/s forward, 165 backward at sequences
// of 8 Ki); first: the same figures' FlashAttention 1. Others: the same parts of their peak.
constexpr AttentionRates hopper_first{345 * T, 145 * T, 0.8, 1.0, 0.55};
constexpr AttentionRates hopper_second{373 * T, 305 * T, 0.857, 0.92, 0.55};
constexpr AttentionRates hopper_third{712 * T, 576 * T, 0.72, 0.73, 0.55};
constexpr AttentionRates ampere_first{123 * T, 96 * T, 0.9, 1.0, 0.55};
constexpr AttentionRates ampere_second{200 * T, 170 * T, 0.9, 0.92, 0.55};
constexpr AttentionRates volta{40 * T, 30 * T, 0.9, 1.0, 0.55};
constexpr AttentionRates blackwell{1150 * T, 930 * T, 0.72, 0.73, 0.55};
constexpr AttentionRates cdna3{400 * T, 320 * T, 0.8, 0.92, 0.55};
constexpr AttentionRates ada{100 * T, 80 * T, 0.9, 0.92, 0.55};

// Datasheets: NVIDIA V100 (2020), A100 (2021; 40 GB: 1,555 GB/s, 80 GB: 2,039 GB/s), H100 (2023, SXM), H200 (2024), DGX
// B200 and GB200 NVL72 (2024; a GPU's share), B300 and GB300 NVL72 (2025), L40S (2023), RTX PRO 6000 Blackwell Server
// Edition (2025); AMD Instinct MI250X (a die), MI300X, MI325X. Multiprocessors: the generations' white papers.
constexpr std::array all = {
    Gpu{"v100", "NVIDIA V100 SXM, 32 GB", 125 * T, 0, 15.7 * T, 15.7 * T, 900 * GB, 32 * GiB, 0.9, 80, 0.763, 2.3e-6,
        0.85, volta, volta, volta, 0, false},
    Gpu{"a100-40gb", "NVIDIA A100 SXM, 40 GB", 312 * T, 0, 156 * T, 19.5 * T, 1555 * GB, 40 * GiB, 0.85, 108, 0.84,
        9e-6, 0.84, ampere_first, ampere_second, ampere_second},
    Gpu{"a100-80gb", "NVIDIA A100 SXM, 80 GB", 312 * T, 0, 156 * T, 19.5 * T, 2039 * GB, 80 * GiB, 0.85, 108, 0.84,
        9e-6, 0.84, ampere_first, ampere_second, ampere_second},
    Gpu{"h100-pcie", "NVIDIA H100 PCIe, 80 GB", 756 * T, 1513 * T, 378 * T, 51 * T, 2039 * GB, 80 * GiB, 0.89, 114,
        0.752, 2.3e-6, 0.6, hopper_first, hopper_second, hopper_third},
    Gpu{"h100-sxm", "NVIDIA H100 SXM, 80 GB", 989.4 * T, 1978.9 * T, 494.7 * T, 66.9 * T, 3352 * GB, 80 * GiB, 0.89,
        132, 0.752, 2.3e-6, 0.712, hopper_first, hopper_second, hopper_third},
    Gpu{"h200", "NVIDIA H200 SXM, 141 GB", 989.4 * T, 1978.9 * T, 494.7 * T, 66.9 * T, 4800 * GB, 141 * GB, 0.89, 132,
        0.752, 2.3e-6, 0.712, hopper_first, hopper_second, hopper_third},
    Gpu{"gh200", "NVIDIA GH200, 96 GB", 989.4 * T, 1978.9 * T, 494.7 * T, 66.9 * T, 4000 * GB, 96 * GB, 0.89, 132,
        0.752, 2.3e-6, 0.712, hopper_first, hopper_second, hopper_third},
    Gpu{"b200", "NVIDIA B200 SXM, 180 GB", 2250 * T, 4500 * T, 1100 * T, 75 * T, 7700 * GB, 180 * GB, 0.89, 148, 0.752,
        2.3e-6, 0.70, blackwell, blackwell, blackwell, 9000 * T},
    Gpu{"gb200", "NVIDIA GB200, 186 GB", 2500 * T, 5000 * T, 1250 * T, 80 * T, 8000 * GB, 186 * GB, 0.89, 152, 0.752,
        2.3e-6, 0.70, blackwell, blackwell, blackwell, 10000 * T},
    Gpu{"b300", "NVIDIA B300 SXM, 270 GB", 2250 * T, 4500 * T, 1100 * T, 75 * T, 7700 * GB, 270 * GB, 0.89, 148, 0.752,
        2.3e-6, 0.70, blackwell, blackwell, blackwell, 13500 * T},
    Gpu{"gb300", "NVIDIA GB300, 279 GB", 2500 * T, 5000 * T, 1250 * T, 80 * T, 8000 * GB, 279 * GB, 0.89, 152, 0.752,
        2.3e-6, 0.70, blackwell, blackwell, blackwell, 15000 * T},
    Gpu{"l40s", "NVIDIA L40S, 48 GB", 362 * T, 733 * T, 183 * T, 91.6 * T, 864 * GB, 48 * GB, 0.9, 142, 0.8, 2.3e-6,
        0.6, ada, ada, ada},
    Gpu{"rtx-pro-6000", "NVIDIA RTX PRO 6000 Blackwell, 96 GB", 503 * T, 1007 * T, 251 * T, 126 * T, 1597 * GB, 96 * GB,
        0.9, 188, 0.8, 2.3e-6, 0.7, ada, ada, ada, 2000 * T},
    Gpu{"mi250x", "AMD Instinct MI250X, a die of two, 64 GB", 191.5 * T, 0, 47.9 * T, 47.9 * T, 1638 * GB, 64 * GiB,
        0.8, 110, 0.7, 2.3e-6, 0.6, volta, ada, ada},
    Gpu{"mi300x", "AMD Instinct MI300X, 192 GB", 1307.4 * T, 2614.9 * T, 653.7 * T, 163.4 * T, 5300 * GB, 192 * GB, 0.8,
        304, 0.6, 2.3e-6, 0.48, cdna3, cdna3, cdna3},
    Gpu{"mi325x", "AMD Instinct MI325X, 256 GB", 1307.4 * T, 2614.9 * T, 653.7 * T, 163.4 * T, 6000 * GB, 256 * GB, 0.8,
        304, 0.6, 2.3e-6, 0.5, cdna3, cdna3, cdna3},
};

constexpr std::array<std::pair<std::string_view, Precision>, 7> precisions = {{{"fp8", Precision::fp8},
                                                                               {"bf16", Precision::bf16},
                                                                               {"fp16", Precision::fp16},
                                                                               {"tf32", Precision::tf32},
                                                                               {"fp32", Precision::fp32},
                                                                               {"fp4", Precision::fp4},
                                                                               {"mxfp8", Precision::fp8}}};

}  // namespace

Result<Precision> parse_precision(std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& [known, precision] : precisions) {
    if (known == name) return precision;
    names.push_back(known);
  }
  return fail(ErrorCode::invalid_input, fmt::format("there is no precision '{}'", name.substr(0, 60)),
              suggest(name, names));
}

std::string_view name_of(Precision precision) { return precisions[static_cast<std::size_t>(precision)].first; }

double bytes_of(Precision precision) {
  switch (precision) {
    case Precision::fp4: return 0.5;
    case Precision::fp8: return 1;
    case Precision::bf16:
    case Precision::fp16: return 2;
    case Precision::tf32:
    case Precision::fp32: return 4;
  }
  return 2;
}

bool Gpu::has(Precision precision) const {
  switch (precision) {
    case Precision::fp4: return fp4 > 0;
    case Precision::fp8: return fp8 > 0;
    case Precision::bf16: return has_bf16;
    case Precision::tf32: return tf32 > fp32;
    case Precision::fp16:
    case Precision::fp32: return true;
  }
  return true;
}

double Gpu::peak(Precision precision) const {
  switch (precision) {
    case Precision::fp4: return fp4 > 0 ? fp4 : peak(Precision::fp8);
    case Precision::fp8: return fp8 > 0 ? fp8 : bf16;
    case Precision::bf16:
    case Precision::fp16: return bf16;
    case Precision::tf32: return tf32;
    case Precision::fp32: return fp32;
  }
  return bf16;
}

std::span<const Gpu> gpus() { return all; }

Result<const Gpu*> find_gpu(std::string_view name) {
  const auto* const found = std::ranges::find(all, name, &Gpu::name);
  if (found != all.end()) return found;
  std::vector<std::string_view> names;
  for (const Gpu& gpu : all) names.push_back(gpu.name);
  std::vector<std::string_view> longer;
  std::ranges::copy_if(names, std::back_inserter(longer),
                       [&](std::string_view each) { return each.starts_with(name); });
  if (!name.empty() && !longer.empty()) {
    return fail(ErrorCode::invalid_input, fmt::format("there is no GPU '{}'", name.substr(0, 60)),
                fmt::format("did you mean {}?", fmt::join(longer, " or ")));
  }
  return fail(ErrorCode::invalid_input, fmt::format("there is no GPU '{}'", name.substr(0, 60)), suggest(name, names));
}

}  // namespace espalier::compute
