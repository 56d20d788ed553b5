#include <fmt/format.h>

#include "base/counted.h"
#include "base/format_units.h"
#include "report/bandwidth_chart.h"
#include "report/html_text.h"
#include "report/machine_picture.h"
#include "report/page_parts.h"
#include "report/plan_report.h"
#include "report/timeline_data.h"
#include "report/traffic_map.h"
#include "report/verdict.h"
#include "schedule/parts.h"
#include "sim/core/utilisation.h"

namespace espalier::report {
namespace {

constexpr std::size_t max_busy_links = 64;

std::string title_of(const PlanReport& report) {
  return fmt::format("{} on {}, {}", to_string(report.collective.kind), report.topology->name(),
                     counted(report.collective.rank_count, "rank"));
}

std::string microseconds(double seconds) { return fmt::format("{:.2f}", seconds * 1e6); }

ReportTable times_table(const PlanReport& report) {
  ReportTable table{
      "times",
      "Predicted times and bus bandwidths",
      {{"size (B)", true}, {"algorithm"}, {"by"}, {"time (us)", true}, {"busbw (GB/s)", true}, {"of bound (%)", true}},
      {}};
  for (const Curve& curve : report.predicted) {
    for (const CurvePoint& point : curve.points) {
      const double part =
          part_of_bound(report.bound.time_per_byte, report.collective, point.size, report.element_size, point.seconds);
      table.rows.push_back(
          {std::to_string(point.size.count), curve.name, point.by, microseconds(point.seconds),
           fmt::format("{:.2f}", bus_bandwidth(report.collective, point.size, point.seconds) / 1e9),
           report.bound.time_per_byte > 0 && point.seconds > 0 ? fmt::format("{:.1f}", 100 * part) : std::string("-")});
    }
  }
  return table;
}

ReportTable busy_table(const CloseRun& run, const Topology& topology) {
  ReportTable table{"links",
                    "Busiest links of the run, parallel ones together",
                    {{"link"}, {"links", true}, {"busy (%)", true}, {"bytes", true}},
                    {}};
  for (const sim::LinkShare& link : sim::busiest_links(run.report, topology, max_busy_links)) {
    table.rows.push_back({link.name, std::to_string(link.links), fmt::format("{:.1f}", 100 * link.share),
                          std::to_string(link.use.bytes)});
  }
  return table;
}

ReportTable path_table(const CloseRun& run, const Topology& topology) {
  ReportTable table{"critical-path",
                    "What the last byte waited for",
                    {{"what"}, {"steps", true}, {"time (us)", true}, {"of it queued (us)", true}},
                    {}};
  for (const sim::CriticalShare& share : sim::summarize_critical_path(run.report, topology)) {
    table.rows.push_back({share.what, std::to_string(share.steps), microseconds(share.time.seconds()),
                          microseconds(share.queued.seconds())});
  }
  return table;
}

void add_machine(std::string& page, const PlanReport& report) {
  page += "<section id=\"machine\"><h2>Machine</h2>\n";
  if (!report.bound.cut.empty()) page += "<p>Outlined nodes are on one side of the cut that proves the bound.</p>\n";
  if (report.run) {
    page += fmt::format(
        "<p class=\"control\" hidden><label for=\"slice\">Load of links, {} at {}, at</label> <input type=\"range\" "
        "id=\"slice\" min=\"0\" max=\"{}\" value=\"0\"> <output id=\"slice-text\" for=\"slice\">the whole "
        "run</output></p>\n",
        in_html(report.run->algorithm), size_text(report.run->report.size), load_slices);
  }
  page += fmt::format("<div class=\"drawing\" tabindex=\"0\" role=\"group\" aria-label=\"Network\">{}</div>\n",
                      machine_picture(report));
  if (report.run) page += html_table(busy_table(*report.run, *report.topology));
  page += "</section>\n";
}

void add_traffic(std::string& page, const PlanReport& report) {
  if (!report.collective.has_matrix()) return;
  page +=
      "<section id=\"traffic\"><h2>Traffic</h2>\n<p>What each rank (rows) sends to each (columns), the darker the "
      "more.</p>\n";
  page += fmt::format("<div class=\"drawing\" tabindex=\"0\" role=\"group\" aria-label=\"Traffic\">{}</div>\n",
                      traffic_map(report));
  page += html_table(traffic_table(report)) + "</section>\n";
}

void add_bandwidth(std::string& page, const PlanReport& report) {
  page += "<section id=\"bandwidth\"><h2>Bandwidth</h2>\n" + bandwidth_chart(curves_of(report));
  std::vector<std::string> crossovers;
  for (const CrossoverAt& crossover : report.crossovers) {
    crossovers.push_back(
        fmt::format("{} is faster than {} from {} on.", crossover.to, crossover.from, size_text(crossover.size)));
  }
  page += sentence_list(crossovers, "notes");
  page += html_table(times_table(report)) + "</section>\n";
}

void add_timeline(std::string& page, const PlanReport& report) {
  if (!report.run) return;
  const CloseRun& run = *report.run;
  page += fmt::format(
      "<section id=\"timeline\"><h2>Timeline</h2>\n<p>{} of {} by {}, simulated: {}. Ranks, then links; the critical "
      "path is outlined.</p>\n",
      to_string(report.collective.kind), size_text(run.report.size), in_html(run.algorithm),
      format_duration(run.report.elapsed));
  if (run.report.timeline) {
    page += timeline_html({{"send", "send"},
                           {"recv", "receive"},
                           {"reduce", "reduce"},
                           {"wire", "on the link"},
                           {"critical", "critical path"}});
  }
  page += html_table(path_table(run, *report.topology)) + "</section>\n";
}

void add_measured(std::string& page, const PlanReport& report) {
  if (!report.measured) return;
  page += "<section id=\"measured\"><h2>Measured</h2>\n";
  page += tables_html(report.measured->tables);
  if (!report.measured->overlay.empty()) {
    page += fmt::format(
        "<div class=\"drawing paper\" tabindex=\"0\" role=\"group\" aria-label=\"Simulated over measured\">"
        "{}</div>\n",
        report.measured->overlay);
  }
  page += "</section>\n";
}

std::vector<std::pair<std::string, std::string>> parts_of(const PlanReport& report) {
  std::vector<std::pair<std::string, std::string>> parts = {{"machine", "Machine"}};
  if (report.collective.has_matrix()) parts.emplace_back("traffic", "Traffic");
  parts.emplace_back("bandwidth", "Bandwidth");
  if (report.run) parts.emplace_back("timeline", "Timeline");
  if (report.measured) parts.emplace_back("measured", "Measured");
  parts.emplace_back("assumptions", "Assumptions");
  return parts;
}

}  // namespace

std::string report_page(const PlanReport& report) {
  std::string page = page_head(title_of(report), parts_of(report));
  page += "<section id=\"verdict\"><h2>Verdict</h2>\n" + sentence_list(verdict_of(report), "verdict") +
          sentence_list(report.warnings, "warnings") + "</section>\n";
  add_machine(page, report);
  add_traffic(page, report);
  add_bandwidth(page, report);
  add_timeline(page, report);
  add_measured(page, report);
  page += "<section id=\"assumptions\"><h2>Assumptions</h2>\n" + tables_html(report.assumptions) + "</section>\n";
  const bool has_timeline = report.run && report.run->report.timeline;
  return page + page_foot(report.maker, has_timeline ? timeline_data(*report.run, *report.topology) : std::string());
}

}  // namespace espalier::report
