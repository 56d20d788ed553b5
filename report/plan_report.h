#pragma once

// Tested by: tests/unit/report/report_page_test.cpp

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "schedule/bound.h"
#include "schedule/collective.h"
#include "sim/core/utilisation.h"
#include "sim/simulate.h"
#include "topology/topology.h"

namespace espalier::report {

/// One time of a curve.
struct CurvePoint {
  Bytes size;
  double seconds = 0;
  std::string by;  ///< What ran, where that differs by size; may be empty.
};

/// The times of one algorithm over message sizes.
struct Curve {
  std::string name;
  std::vector<CurvePoint> points;  ///< By size.
  double bound = 0;      ///< Of its own machine: the rate that it cannot exceed, in bytes per second; 0 where unknown.
  std::string bound_of;  ///< Whose bound that is, where the curves of a chart have several.
};

/// The algorithm that is fastest at one size.
struct FastestAt {
  Bytes size;
  std::string name;
  double seconds = 0;
  std::vector<sim::LinkShare> busiest = {};  ///< Of that run; may be empty.
};

/// From `size` on `to` is faster than `from`.
struct CrossoverAt {
  std::string from;
  std::string to;
  Bytes size;
};

/// A cell's text is what the page shows; rows are as wide as `columns`.
struct ReportTable {
  struct Column {
    std::string title;  ///< With its unit: "time (us)".
    bool is_number = false;
  };
  std::string name;  ///< Of the file that it is downloaded as.
  std::string caption;
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
};

/// One simulated execution, looked at closely.
struct CloseRun {
  std::string algorithm;
  sim::Report report;  ///< With timeline and critical path.
};

/// What was measured beside the predictions.
struct Measured {
  std::vector<Curve> curves;
  std::vector<std::string> findings;  ///< Sentences.
  std::vector<ReportTable> tables;    ///< Errors by size, by link.
  std::string overlay;                ///< An SVG of simulated over measured spans; empty without a timeline.
  /// The machine with the parts that may be at fault as slow as they may be, for its picture; null where none is.
  std::shared_ptr<const Topology> suspected = {};
};

/// Everything that a page shows of one collective on one machine.
struct PlanReport {
  const Topology* topology = nullptr;
  Collective collective;
  std::int64_t element_size = 4;  ///< Bytes per element.
  Bound bound;
  std::string cut;  ///< The bound's cut in words: "all but {gpu0}"; empty without one.
  std::vector<Curve> predicted;
  std::vector<FastestAt> fastest;  ///< By size.
  std::vector<CrossoverAt> crossovers;
  std::vector<std::string> doubts;  ///< Sentences: where measurements lay beside such predictions.
  std::optional<CloseRun> run;
  std::optional<Measured> measured;
  std::vector<ReportTable> assumptions;
  std::vector<std::string> warnings;
  std::string maker;  ///< What made the report: the command and its version.
};

/// The report as one HTML page that needs nothing else: no network, no other file. The same report gives the same
/// bytes. Requires: a topology, and curves of the collective on it.
/// Cost: O(what is in it); at most `max_page_spans` spans of the timeline are in the page, of the longer ones a part
/// of the chunks.
std::string report_page(const PlanReport& report);

/// The most spans of a timeline that a page holds.
inline constexpr std::size_t max_page_spans = 200'000;

}  // namespace espalier::report
