#pragma once

#include <string>

#include "base/result.h"
#include "schedule/formats/formats.h"

namespace espalier {

// One writer per format; see export_schedule.
Result<std::string> write_schedule_csv(const Schedule& schedule, const Topology& topology);
Result<std::string> write_schedule_dot(const Schedule& schedule, const Topology& topology);
Result<std::string> write_goal(const Schedule& schedule, const Topology& topology, const ExportOptions& options);
/// Errors: unsupported where the plan is not made of rings over the ranks of one host.
Result<std::string> write_nccl_graph(const Schedule& schedule, const Topology& topology);
Result<std::string> write_msccl(const Schedule& schedule, const Topology& topology, const ExportOptions& options);
/// A file per rank.
Result<std::vector<ExportedFile>> write_chakra(const Schedule& schedule, const Topology& topology,
                                               const ExportOptions& options);

/// Errors: unsupported for relays, which forms of other tools do not have.
Result<void> refuse_relays(const Schedule& schedule, const Topology& topology, std::string_view format);

}  // namespace espalier
