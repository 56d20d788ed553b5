#pragma once

// Tested by: tests/unit/topology/import/formats/amd_smi_json_test.cpp

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "topology/import/draft.h"

namespace espalier {

constexpr std::size_t max_amd_gpus = 256;

/// What rocm-smi and amd-smi say of each pair of GPUs, a row per GPU; tables that were not printed are empty.
struct AmdTables {
  using Cells = std::vector<std::vector<std::string>>;
  Cells types;  ///< XGMI, PCIE or, of a GPU and itself, another word.
  Cells hops, weights;
  std::map<std::int64_t, std::int64_t> numa_nodes;  ///< By GPU.
  std::vector<std::string> buses;                   ///< Of each GPU (normal_bus in pci.h); none: they are not known.

  /// Whether there are types, and the tables are squares of one size.
  [[nodiscard]] bool are_whole() const;
};

/// A machine of them. The model of the GPUs may stand anywhere in `text`. Requires: are_whole().
Draft draft_of(const AmdTables& tables, std::string_view text, const std::string& file);

/// Whether a text has what `amd-smi topology --json` prints, and what it has.
bool is_amd_smi_json(std::string_view text);
Result<Draft> read_amd_smi_json(std::string_view text, const std::string& file);

}  // namespace espalier
