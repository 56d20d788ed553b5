#pragma once

// Tested by: tests/unit/topology/import/import_test.cpp

#include "topology/import/draft.h"
#include "topology/import/import.h"
#include "topology/import/presets.h"

namespace espalier {

/// Takes away PCIe switches that lead nowhere, and joins the two links of one that only hands on.
void simplify_pcie(Draft& draft);

struct FinishOptions {
  const Preset* preset = nullptr;  ///< Gives values that the draft lacks; may be null.
  std::string name;                ///< Of the topology.
  bool in_network = false;         ///< Switches that can copy and add do.
};

/// The generation of the preset (may be null), or the one that all GPUs with a known model are of; null when it is not
/// known.
const GpuGeneration* generation_of(const Draft& draft, const Preset* preset);
/// The model of the preset's GPUs (may be null), or the one that all GPUs are of; empty where it is not known.
std::string_view gpu_model_of(const Draft& draft, const Preset* preset);

/// The topology of a draft: values that it lacks come from the preset, or are assumed; GPUs come first, in the order of
/// their numbers. Errors: infeasible when ranks are missing or do not reach each other.
Result<ImportedTopology> finish_import(const Draft& draft, const FinishOptions& options);

}  // namespace espalier
