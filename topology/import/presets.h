#pragma once

// Tested by: tests/unit/topology/import/import_test.cpp

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"
#include "topology/import/draft.h"

namespace espalier {

/// The rates of a kind of machine, per direction, as its data sheets have them (docs/formats.md says which). Zero:
/// machines of the kind have no such link.
struct Preset {
  std::string_view name;
  Bandwidth nvlink;             ///< One NVLink.
  Bandwidth xgmi;               ///< One xGMI link.
  Bandwidth c2c;                ///< The whole of a GPU's NVLink-C2C.
  Bandwidth pcie;               ///< Sixteen lanes.
  Bandwidth net;                ///< One NIC.
  std::string_view generation;  ///< Of its GPUs: a name that `find_generation` knows.
};

/// What the generation of a machine's GPUs tells beside rates.
struct GpuGeneration {
  std::string_view name;         ///< What its models' names hold, such as "H100".
  std::string_view code;         ///< Compute capability ("90") or architecture ("gfx942").
  std::string_view profile;      ///< The shipped profile of what NCCL or RCCL adds there; empty: none is shipped.
  bool switches_add = false;     ///< Its NVSwitches copy and add (NVLink SHARP).
  std::int64_t domain_gpus = 0;  ///< GPUs that a rack's NVSwitches join over its machines; 0: machines stand alone.
  std::int64_t nvlinks = 0;      ///< That a GPU has at most; 0: not known.
};

/// By compute capability, architecture, PCI vendor and device ("10de:2330"), or the name of a model ("NVIDIA H100 80GB
/// HBM3"); null when it is not known.
const GpuGeneration* find_generation(std::string_view text);

/// The model by what `gpu:` of a machine calls it (compute/gpu.h), by PCI vendor and device, the name of a model
/// ("NVIDIA H100 80GB HBM3") or of a preset; empty where that does not tell it, such as its memory.
std::string_view find_gpu_model(std::string_view text);

/// GPUs of an NVLink domain over several machines: NVL72.
inline constexpr std::int64_t usual_domain_gpus = 72;

std::span<const Preset> presets();
/// Errors: invalid_input with all names.
Result<const Preset*> find_preset(std::string_view name);

/// The rate that the preset gives links of the medium; zero when it gives none.
Bandwidth preset_rate(const Preset& preset, Medium medium);

/// Rate of one NVLink of a GPU of the compute capability ("80"), and of one xGMI link of one of that architecture
/// ("gfx942"); zero when it is not known.
Bandwidth nvlink_rate_of(std::string_view compute_capability);
Bandwidth nvlink_rate_of(const GpuGeneration& generation);
Bandwidth xgmi_rate_of(std::string_view architecture);

/// What is assumed of a link that neither a file nor a preset says more of.
Bandwidth assumed_rate(Medium medium);
/// `through_switch`: one end of it is a switch.
Picoseconds assumed_latency(Medium medium, bool through_switch);

}  // namespace espalier
