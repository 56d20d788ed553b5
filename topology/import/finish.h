#pragma once

#include "topology/import/draft.h"
#include "topology/import/import.h"
#include "topology/import/presets.h"

namespace espalier {

/// Takes away PCIe switches that lead nowhere, and joins the two links of one that only hands on.
void simplify_pcie(Draft& draft);

/// The topology of a draft: values that it lacks come from the preset (may be null), or are assumed; GPUs come first,
/// in the order of their numbers. Errors: infeasible when ranks are missing or do not reach each other.
Result<ImportedTopology> finish_import(const Draft& draft, const Preset* preset, const std::string& name);

}  // namespace espalier
