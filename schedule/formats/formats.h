#pragma once

// Tested by: tests/unit/schedule/formats/formats_test.cpp

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier {

/// A form in which other tools know schedules (docs/formats.md).
struct ScheduleFormat {
  std::string_view name;  ///< For --as.
  std::string_view what;
  bool needs_size = false;  ///< It has bytes where a schedule has shares.
  bool is_read = false;     ///< import_schedule reads it, too.
  bool is_many = false;     ///< Several files, which need a name.
};
std::span<const ScheduleFormat> schedule_formats();

struct ExportOptions {
  Bytes size;                     ///< Of the message, where the format has bytes.
  std::int64_t element_size = 4;  ///< In bytes.
  std::string dialect = "msccl";  ///< Of MSCCL XML: msccl, rccl or astra.
  std::string name;               ///< What the files will be called, where one names the others.
};

/// A file of an export: `suffix` goes behind the name that the user gave; it is empty where there is one file.
struct ExportedFile {
  std::string suffix;
  std::string bytes;
  std::vector<std::string> lost = {};  ///< Of the first file: what the format cannot say of this schedule, in words.
};

/// The schedule in another form. Requires: a schedule that passes `verify` on the topology.
/// Errors: invalid_input for an unknown format, dialect or size; unsupported for what the format cannot say, naming it.
Result<std::vector<ExportedFile>> export_schedule(const Schedule& schedule, const Topology& topology,
                                                  std::string_view format, const ExportOptions& options);

/// A form in which schedules of other tools are read.
enum class ScheduleForm : std::uint8_t { msccl, mscclpp, nccl_graph, nccl_log };

/// "msccl", "mscclpp", "nccl-graph", "nccl-log".
std::string_view to_string(ScheduleForm source);
std::span<const ScheduleForm> schedule_forms();

/// Which of them the text looks like; nothing where it is none.
std::optional<ScheduleForm> recognise_schedule(std::string_view text);

/// Whether it has NCCL's rings, which are of no one collective.
inline bool has_rings(ScheduleForm source) {
  return source == ScheduleForm::nccl_graph || source == ScheduleForm::nccl_log;
}

/// A schedule of another tool, MSCCL XML or a plan of MSCCL++ (JSON), on a topology with as many ranks; transfers take
/// the fastest routes. What it means is for `verify` to say. `file` stands for the text in messages. Without a `source`
/// a text that begins with '{' is of MSCCL++. Requires: a source without rings. Errors: invalid_input with its place;
/// unsupported for what a schedule cannot say, naming the step; infeasible where it gets stuck, or ranks do not reach
/// each other.
Result<Schedule> import_schedule(std::string_view text, const std::string& file, const Topology& topology,
                                 std::optional<ScheduleForm> source = std::nullopt);

/// The rings that NCCL found on a machine (NCCL graph XML, or the log of NCCL_DEBUG=INFO) as a schedule of an
/// all_gather, reduce_scatter or all_reduce: every ring carries the same share, and passes every rank. GPUs in the
/// order of their numbers, and the ranks of a log, are the topology's ranks. Without a `source` it is seen from the
/// text. Requires: a source with rings. Errors: as import_schedule.
Result<Schedule> import_nccl_rings(std::string_view text, const std::string& file, const Topology& topology,
                                   CollectiveKind kind, std::optional<ScheduleForm> source = std::nullopt);

/// What a log of NCCL does not have of its rings, in words; empty where it has all, or does not say how many there are.
std::string missing_nccl_rings(std::string_view text, const std::string& file, const Topology& topology);

}  // namespace espalier
