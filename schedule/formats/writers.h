#pragma once

// Tested by: tests/unit/schedule/formats/formats_test.cpp

#include <string>

#include "base/result.h"
#include "schedule/formats/formats.h"

namespace espalier {

// One writer per format; see export_schedule.
Result<std::string> write_schedule_csv(const Schedule& schedule, const Topology& topology);
Result<std::string> write_schedule_dot(const Schedule& schedule, const Topology& topology);
/// The network with the links' parts of the time that the fullest one takes.
std::string write_schedule_svg(const Schedule& schedule, const Topology& topology);
Result<ExportedFile> write_goal(const Schedule& schedule, const Topology& topology, const ExportOptions& options);
/// Errors: unsupported where the plan is not made of rings over the ranks of one host.
Result<ExportedFile> write_nccl_graph(const Schedule& schedule, const Topology& topology);
Result<ExportedFile> write_msccl(const Schedule& schedule, const Topology& topology, const ExportOptions& options);
Result<ExportedFile> write_mscclpp(const Schedule& schedule, const Topology& topology);
/// A file per rank.
Result<std::vector<ExportedFile>> write_chakra(const Schedule& schedule, const Topology& topology,
                                               const ExportOptions& options);
/// The same, and a system file of ASTRA-sim that names them. Errors: unsupported for collectives that it does not have.
Result<std::vector<ExportedFile>> write_astra_sim(const Schedule& schedule, const Topology& topology,
                                                  const ExportOptions& options);

/// A plan of MSCCL++; see import_schedule.
Result<Schedule> import_mscclpp(std::string_view text, const std::string& file, const Topology& topology);

/// Errors: unsupported for relays, which forms of other tools do not have.
Result<void> refuse_relays(const Schedule& schedule, const Topology& topology, std::string_view format);
/// Errors: unsupported for plans that send an input after it was added to.
Result<void> refuse_inputs(const Schedule& schedule, std::string_view format);

}  // namespace espalier
