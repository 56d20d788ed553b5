#pragma once

// Tested by: tests/unit/diagnose/setting_test.cpp

#include <span>
#include <string>
#include <string_view>

#include "diagnose/fault.h"
#include "diagnose/question.h"
#include "topology/topology.h"

namespace espalier::diagnose {

/// Something about the software that makes all ranks run otherwise, whatever part of the machine is good or bad.
struct Setting {
  std::string_view name;    ///< "PXN off": the part of a fault of kind `setting`.
  std::string_view advice;  ///< What to look at.
};

/// Those of NCCL: GPUDirect, NVLS or PXN off; rings, trees or the Simple protocol alone.
std::span<const Setting> nccl_settings();

/// The machine as data moves on it under this setting. Without GPUDirect data goes from a GPU to its host's memory and
/// from there to the NIC: a NIC behind PCIe switches hangs on their processor, and the switches' ways up, which carry
/// both legs, have half of their rates for either; where no host is described, cables between GPU and NIC have. Without
/// NVLS switches between GPUs neither add nor copy.
/// Errors: infeasible where nothing of the machine changes, or invalid_input for names of none.
Result<Topology> with_setting(const Topology& machine, std::string_view name);

/// Whether a setting changes the machine, and not only what is asked.
bool is_of_machine(const Fault& fault);

/// What NCCL is asked to run under the settings among these faults. Questions of other algorithms stay.
Question with_settings(Question question, std::span<const Fault> faults);

}  // namespace espalier::diagnose
