#pragma once

// Tested by: tests/unit/report/report_page_test.cpp

#include <string>
#include <vector>

#include "report/plan_report.h"
#include "report/span_columns.h"
#include "report/svg_picture.h"

namespace espalier::report {

/// Where the time of a rank, or of ranks whose times read the same, went: parts of the whole, which add up to one.
struct RankBar {
  std::string name;
  double compute = 0, exposed = 0, waiting = 0, idle = 0;
};

/// What the tasks of a job are, in the order of PageSpan::look.
enum class TaskLook : std::uint32_t { compute, call, wait };

/// Everything that a page shows of a job of many collectives.
struct JobPage {
  std::string title;
  std::vector<std::string> verdict, warnings;
  const Topology* topology = nullptr;
  std::vector<double> loads;  ///< By link, over the whole run.
  std::vector<RankBar> ranks;
  std::vector<ReportTable> calls;
  std::vector<ReportTable> links;
  Picoseconds elapsed;
  std::vector<std::string> lanes;   ///< Of tasks.
  std::vector<std::string> labels;  ///< What a span's label stands for.
  std::vector<PageSpan> tasks;      ///< In begin order.
  std::uint32_t every = 1;          ///< Of how many tasks one is there.
  std::vector<ReportTable> assumptions;
  std::string maker;
};

/// As report_page, of a job. Requires: a topology, and a load for each of its links.
std::string job_page(const JobPage& job);

/// "machine" and "ranks", each by itself.
std::vector<Picture> pictures_of(const JobPage& job);

/// Bars beyond so many are left out of the drawing, and it says so.
inline constexpr std::size_t max_rank_bars = 64;

}  // namespace espalier::report
