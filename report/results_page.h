#pragma once

// Tested by: tests/unit/report/results_page_test.cpp

#include <optional>
#include <string>
#include <vector>

#include "report/bandwidth_chart.h"
#include "report/svg_picture.h"
#include "report/timeline_data.h"

namespace espalier::report {

/// Everything that a page shows of files with results, without the machine they are of.
struct ResultsPage {
  std::string title;
  std::vector<std::string> verdict;
  std::vector<std::string> missing;  ///< What these files cannot show, and what would.
  std::vector<BandwidthCurves> bandwidths;
  std::vector<ReportTable> times;
  std::optional<DrawnTimeline> timeline;
  std::string overlay;                 ///< An SVG of two timelines over each other; may be empty.
  std::vector<ReportTable> compared;   ///< Errors by size, link and rank.
  std::vector<ReportTable> documents;  ///< What the documents say beside times.
  std::vector<ReportTable> files;      ///< Which they are.
  std::string maker;
};

/// As report_page, of results.
std::string results_page(const ResultsPage& page);

/// "bandwidth" ("bandwidth-2", ... of further collectives), "timeline" and "compared", each by itself.
std::vector<Picture> pictures_of(const ResultsPage& page);

}  // namespace espalier::report
