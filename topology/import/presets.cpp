#include "topology/import/presets.h"

#include <array>

#include "base/suggest.h"

namespace espalier {
namespace {

constexpr Bandwidth mega(std::int64_t megabytes) { return {megabytes * 1'000'000}; }

// NVLink, PCIe and NIC rates: data sheets of the machines, as cited in configs/. c2c: "NVIDIA Grace Hopper Superchip
// Architecture" white paper, 900 GB/s both ways.
constexpr Bandwidth none{};
constexpr std::array preset_table = {
    Preset{"v100-sxm", mega(25'000), none, none, mega(15'750), mega(12'500), "V100"},
    Preset{"a100-sxm", mega(25'000), none, none, mega(31'500), mega(25'000), "A100"},
    Preset{"h100-sxm", mega(25'000), none, none, mega(63'000), mega(50'000), "H100"},
    Preset{"h200-sxm", mega(25'000), none, none, mega(63'000), mega(50'000), "H200"},
    Preset{"b200-sxm", mega(50'000), none, none, mega(63'000), mega(50'000), "B200"},
    Preset{"b300-sxm", mega(50'000), none, none, mega(121'000), mega(100'000), "B300"},
    Preset{"gb200", mega(50'000), none, mega(450'000), mega(63'000), mega(50'000), "GB200"},
    Preset{"gb300", mega(50'000), none, mega(450'000), mega(121'000), mega(100'000), "GB300"},
    Preset{"l40s", none, none, none, mega(31'500), mega(50'000), "L40S"},
    Preset{"rtx-pro-6000", none, none, none, mega(63'000), mega(50'000), "RTX PRO 6000"},
    Preset{"mi250", none, mega(50'000), none, mega(31'500), mega(25'000), "MI250"},
    Preset{"mi300x", none, mega(64'000), none, mega(63'000), mega(50'000), "MI300X"},
    Preset{"mi350x", none, mega(76'800), none, mega(63'000), mega(50'000), "MI350X"},
};

// The profile of a generation is that of the shipped machines of it (configs/). NVSwitches copy and add from their
// third generation on, that of H100 ("NVIDIA H100 Tensor Core GPU Architecture" white paper). Numbers of NVLinks: the
// same and those of V100, A100 and A40.
constexpr std::array generations = {
    GpuGeneration{.name = "V100", .code = "70", .profile = "nccl-volta", .nvlinks = 6},
    GpuGeneration{.name = "A100", .code = "80", .profile = "nccl-ampere", .nvlinks = 12},
    GpuGeneration{.name = "A800", .code = "80", .profile = "nccl-ampere", .nvlinks = 8},
    GpuGeneration{.name = "A40", .code = "86", .profile = "nccl-ampere", .nvlinks = 4},
    GpuGeneration{.name = "A6000", .code = "86", .profile = "nccl-ampere", .nvlinks = 4},
    GpuGeneration{.name = "RTX 3090", .code = "86", .profile = "nccl-ampere", .nvlinks = 4},
    GpuGeneration{"RTX 4090", "89", "nccl-ampere"},
    GpuGeneration{"L40S", "89", "nccl-pcie"},
    GpuGeneration{"RTX PRO 6000", "120", "nccl-pcie"},
    GpuGeneration{"GH200", "90", "nccl-hopper", true},
    GpuGeneration{"H100", "90", "nccl-hopper", true},
    GpuGeneration{"H200", "90", "nccl-hopper", true},
    GpuGeneration{"H800", "90", "nccl-hopper", true},
    GpuGeneration{"H20", "90", "nccl-hopper", true},
    GpuGeneration{"GB200", "", "nccl-blackwell", true, usual_domain_gpus},
    GpuGeneration{"GB300", "", "nccl-blackwell", true, usual_domain_gpus},
    GpuGeneration{"B200", "100", "nccl-blackwell", true},
    GpuGeneration{"B300", "103", "nccl-blackwell", true},
    GpuGeneration{"MI250", "gfx90a", ""},
    GpuGeneration{"MI300X", "gfx942", "rccl-mi300x"},
    GpuGeneration{"MI325X", "gfx942", "rccl-mi300x"},
    GpuGeneration{"MI350X", "gfx950", "rccl-mi300x"},
    GpuGeneration{"MI355X", "gfx950", "rccl-mi300x"},
};

struct PciModel {
  std::string_view id;  ///< Vendor and device.
  std::string_view generation;
};
// pci.ids.
constexpr std::array pci_models = {
    PciModel{"10de:1db1", "V100"},         PciModel{"10de:1db5", "V100"},   PciModel{"10de:1db8", "V100"},
    PciModel{"10de:20b0", "A100"},         PciModel{"10de:20b2", "A100"},   PciModel{"10de:20b5", "A100"},
    PciModel{"10de:2684", "RTX 4090"},     PciModel{"10de:2330", "H100"},   PciModel{"10de:2331", "H100"},
    PciModel{"10de:2335", "H200"},         PciModel{"10de:2901", "B200"},   PciModel{"10de:3182", "B300"},
    PciModel{"10de:2941", "GB200"},        PciModel{"10de:31c2", "GB300"},  PciModel{"10de:26b9", "L40S"},
    PciModel{"10de:2bb5", "RTX PRO 6000"}, PciModel{"1002:740c", "MI250"},  PciModel{"1002:74a1", "MI300X"},
    PciModel{"1002:74a5", "MI300X"},       PciModel{"1002:75a0", "MI350X"}, PciModel{"1002:75a3", "MI355X"},
};

struct GpuModel {
  std::string_view sign;  ///< PCI vendor and device, a preset, or what a model's name begins with behind the maker.
  std::string_view gpu;   ///< Of compute/gpu.h.
};
// pci.ids, and the names that the drivers print.
constexpr std::array gpu_models = {
    GpuModel{"10de:1db5", "v100"},
    GpuModel{"10de:1db8", "v100"},
    GpuModel{"10de:20b0", "a100-40gb"},
    GpuModel{"10de:20b2", "a100-80gb"},
    GpuModel{"10de:2330", "h100-sxm"},
    GpuModel{"10de:2331", "h100-pcie"},
    GpuModel{"10de:2335", "h200"},
    GpuModel{"10de:2901", "b200"},
    GpuModel{"10de:3182", "b300"},
    GpuModel{"10de:2941", "gb200"},
    GpuModel{"10de:31c2", "gb300"},
    GpuModel{"10de:26b9", "l40s"},
    GpuModel{"10de:2bb5", "rtx-pro-6000"},
    GpuModel{"1002:74a1", "mi300x"},
    GpuModel{"1002:74a5", "mi325x"},
    GpuModel{"v100-sxm", "v100"},
    GpuModel{"h100-sxm", "h100-sxm"},
    GpuModel{"h200-sxm", "h200"},
    GpuModel{"b200-sxm", "b200"},
    GpuModel{"b300-sxm", "b300"},
    GpuModel{"gb200", "gb200"},
    GpuModel{"gb300", "gb300"},
    GpuModel{"l40s", "l40s"},
    GpuModel{"rtx-pro-6000", "rtx-pro-6000"},
    GpuModel{"mi300x", "mi300x"},
    GpuModel{"V100-SXM2-32GB", "v100"},
    GpuModel{"V100-SXM3-32GB", "v100"},
    GpuModel{"A100-SXM4-40GB", "a100-40gb"},
    GpuModel{"A100-SXM4-80GB", "a100-80gb"},
    GpuModel{"A100-SXM-80GB", "a100-80gb"},
    GpuModel{"H100 80GB HBM3", "h100-sxm"},
    GpuModel{"H100 PCIe", "h100-pcie"},
    GpuModel{"H200", "h200"},
    GpuModel{"GH200 480GB", "gh200"},
    GpuModel{"B200", "b200"},
    GpuModel{"B300", "b300"},
    GpuModel{"GB200", "gb200"},
    GpuModel{"GB300", "gb300"},
    GpuModel{"L40S", "l40s"},
    GpuModel{"RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000"},
    GpuModel{"MI300X", "mi300x"},
    GpuModel{"MI325X", "mi325x"},
};

struct RateOf {
  std::string_view what;
  Bandwidth rate;
};

// One link, per direction: white papers of P100 (20 GB/s), V100, A100, H100 (25 GB/s) and Blackwell (50 GB/s); "NVIDIA
// RTX A6000" data sheet (112.5 GB/s both ways over four links).
constexpr std::array nvlink_rates = {
    RateOf{"60", mega(20'000)},     RateOf{"70", mega(25'000)},    RateOf{"80", mega(25'000)},
    RateOf{"86", {14'062'500'000}}, RateOf{"90", mega(25'000)},    RateOf{"100", mega(50'000)},
    RateOf{"103", mega(50'000)},    RateOf{"GB200", mega(50'000)}, RateOf{"GB300", mega(50'000)},
};
// Data sheets of MI50/MI100 (92 GB/s both ways), MI250 (100), MI300X (128), MI350X and MI355X (153.6).
constexpr std::array xgmi_rates = {
    RateOf{"gfx906", mega(46'000)}, RateOf{"gfx908", mega(46'000)}, RateOf{"gfx90a", mega(50'000)},
    RateOf{"gfx942", mega(64'000)}, RateOf{"gfx950", mega(76'800)},
};

Bandwidth find_rate(std::span<const RateOf> rates, std::string_view what) {
  for (const RateOf& rate : rates) {
    if (rate.what == what) return rate.rate;
  }
  return none;
}

}  // namespace

std::span<const Preset> presets() { return preset_table; }

Result<const Preset*> find_preset(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Preset& preset : preset_table) {
    if (preset.name == name) return &preset;
    names.push_back(preset.name);
  }
  std::string all;
  for (const std::string_view known : names) all += (all.empty() ? "" : ", ") + std::string(known);
  return fail(ErrorCode::invalid_input, "there is no preset '" + std::string(name.substr(0, 60)) + "'",
              "presets are " + all);
}

const GpuGeneration* find_generation(std::string_view text) {
  for (const PciModel& model : pci_models) {
    if (text == model.id) text = model.generation;
  }
  for (const GpuGeneration& each : generations) {
    if ((!text.empty() && text == each.code) || text.find(each.name) != std::string_view::npos) return &each;
  }
  return nullptr;
}

std::string_view find_gpu_model(std::string_view text) {
  for (const std::string_view maker : {"NVIDIA ", "Tesla ", "AMD Instinct "}) {
    if (text.starts_with(maker)) text.remove_prefix(maker.size());
  }
  for (const GpuModel& each : gpu_models) {
    const bool is_it =
        text.starts_with(each.sign) && (text.size() == each.sign.size() || text[each.sign.size()] == ' ');
    if (is_it) return each.gpu;
  }
  return {};
}

Bandwidth preset_rate(const Preset& preset, Medium medium) {
  switch (medium) {
    case Medium::nvlink: return preset.nvlink;
    case Medium::xgmi: return preset.xgmi;
    case Medium::c2c: return preset.c2c;
    case Medium::pcie: return preset.pcie;
    case Medium::net: return preset.net;
    case Medium::smp: break;
  }
  return none;
}

Bandwidth nvlink_rate_of(std::string_view compute_capability) { return find_rate(nvlink_rates, compute_capability); }
Bandwidth nvlink_rate_of(const GpuGeneration& generation) {
  return find_rate(nvlink_rates, generation.code.empty() ? generation.name : generation.code);
}
Bandwidth xgmi_rate_of(std::string_view architecture) { return find_rate(xgmi_rates, architecture); }

Bandwidth assumed_rate(Medium medium) {
  switch (medium) {
    case Medium::nvlink: return mega(25'000);
    case Medium::xgmi: return mega(50'000);
    case Medium::c2c: return mega(450'000);
    case Medium::pcie: return mega(15'750);
    case Medium::smp: return mega(20'000);
    case Medium::net: break;
  }
  return mega(12'500);
}

Picoseconds assumed_latency(Medium medium, bool through_switch) {
  switch (medium) {
    case Medium::nvlink: return {through_switch ? 350'000 : 700'000};
    case Medium::xgmi: return {800'000};
    case Medium::c2c: return {350'000};
    case Medium::pcie: return {250'000};
    case Medium::smp: return {300'000};
    case Medium::net: break;
  }
  return {600'000};
}

}  // namespace espalier
