#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "cli/output/table.h"
#include "forecast/profiled_runs.h"
#include "planners/damage/degrade.h"

namespace espalier::cli {

/// Under a profile: what NCCL gives on the whole machine and on what each failure leaves.
struct NcclBeside {
  std::string profile;                             ///< "nccl-volta".
  std::optional<forecast::ProfiledSummary> whole;  ///< Absent where NCCL has nothing for the collective.
  std::vector<std::optional<forecast::ProfiledSummary>>
      damages;  ///< By damage, then absent as well; none without `whole`.
};

/// The failures, worst first.
Table degradation_table(const planners::Degradation& degradation, const std::optional<NcclBeside>& nccl);

/// The table of `topo degrade`, worst failure first, and what breaks the machine.
std::string degradation_text(const planners::Degradation& degradation, const Topology& topology, Bytes size,
                             const std::optional<NcclBeside>& nccl);

/// Schema espalier/degrade/1.
nlohmann::ordered_json degradation_json(const planners::Degradation& degradation, const Topology& topology, Bytes size,
                                        const std::optional<NcclBeside>& nccl);

}  // namespace espalier::cli
