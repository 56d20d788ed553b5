#pragma once

// Tested by: tests/unit/report/report_page_test.cpp

#include <cstdint>
#include <string>
#include <vector>

#include "report/plan_report.h"

namespace espalier::report {

/// So many parts of the run have loads of their own.
inline constexpr std::size_t load_slices = 60;

/// By slice and link (slice-major), the part of the slice that the link carried something, from 0 to 1. Requires: a run
/// with a timeline.
std::vector<double> loads_over_time(const Timeline& timeline, std::size_t link_count);

/// A step of a critical path, on a lane of a timeline.
struct PathStep {
  Picoseconds begin, end;
  bool is_on_link = false;
  std::uint32_t lane = 0;  ///< A link's, or a rank's or relay's.
  TransferId transfer;
  std::uint32_t chunk = 0;
};

/// A timeline as pages and pictures draw it.
struct DrawnTimeline {
  std::string title;
  const Timeline* timeline = nullptr;
  std::vector<PathStep> path;  ///< Those steps of the critical path that lie on lanes.
};

/// The timeline of a run. Requires: a run with a timeline, which outlives it.
DrawnTimeline drawn_timeline(const CloseRun& run, const Topology& topology);

/// What the page's script draws the timeline and the loads from, as a JSON object that may stand in a script element:
/// names of lanes; columns of spans as base64 of LEB128 numbers in begin order (begin less the one before, length, both
/// in units of `unit` ps; lane; phase; transfer; chunk); loads in per cent, a byte each; the critical path.
/// Past `max_page_spans` spans only some chunks are in it, and `every` says of how many one.
std::string timeline_data(const CloseRun& run, const Topology& topology);

/// The same without loads.
std::string timeline_data(const DrawnTimeline& drawn);

}  // namespace espalier::report
