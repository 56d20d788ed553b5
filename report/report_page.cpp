#include <fmt/format.h>

#include "base/counted.h"
#include "base/format_units.h"
#include "report/bandwidth_chart.h"
#include "report/html_text.h"
#include "report/machine_picture.h"
#include "report/page/page_files.h"
#include "report/plan_report.h"
#include "report/timeline_data.h"
#include "report/verdict.h"
#include "sim/core/utilisation.h"

namespace espalier::report {
namespace {

constexpr std::size_t most_busy_links = 64;

std::string title_of(const PlanReport& report) {
  return fmt::format("{} on {}, {}", to_string(report.collective.kind), report.topology->name(),
                     counted(report.collective.rank_count, "rank"));
}

std::string microseconds(double seconds) { return fmt::format("{:.2f}", seconds * 1e6); }

void add_list(std::string& page, const std::vector<std::string>& sentences, std::string_view name) {
  if (sentences.empty()) return;
  page += fmt::format("<ul class=\"{}\">\n", name);
  for (const std::string& sentence : sentences) page += fmt::format("<li>{}</li>\n", in_html(sentence));
  page += "</ul>\n";
}

void add_tables(std::string& page, const std::vector<ReportTable>& tables) {
  for (const ReportTable& table : tables) page += html_table(table);
}

ReportTable times_table(const PlanReport& report) {
  ReportTable table{
      "times",
      "Predicted times and bus bandwidths",
      {{"size (B)", true}, {"algorithm"}, {"by"}, {"time (us)", true}, {"busbw (GB/s)", true}, {"of bound (%)", true}},
      {}};
  for (const Curve& curve : report.predicted) {
    for (const CurvePoint& point : curve.points) {
      const double least = to_double(report.bound.time_per_byte) * static_cast<double>(point.size.count);
      table.rows.push_back(
          {std::to_string(point.size.count), curve.name, point.by, microseconds(point.seconds),
           fmt::format("{:.2f}", bus_bandwidth(report.collective, point.size, point.seconds) / 1e9),
           least > 0 && point.seconds > 0 ? fmt::format("{:.1f}", 100 * least / point.seconds) : std::string("-")});
    }
  }
  return table;
}

ReportTable busy_table(const CloseRun& run, const Topology& topology) {
  ReportTable table{"links",
                    "Busiest links of the run, parallel ones together",
                    {{"link"}, {"links", true}, {"busy (%)", true}, {"bytes", true}},
                    {}};
  for (const sim::LinkShare& link : sim::busiest_links(run.report, topology, most_busy_links)) {
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
  const auto drawing = machine_picture(report);
  if (!drawing) {
    page += fmt::format("<p>{}.</p>\n", in_html(drawing.error().message));
  } else {
    if (!report.bound.cut.empty()) page += "<p>Outlined nodes are on one side of the cut that proves the bound.</p>\n";
    if (report.run) {
      page += fmt::format(
          "<p class=\"control\" hidden><label for=\"slice\">Load of links, {} at {}, at</label> <input type=\"range\" "
          "id=\"slice\" min=\"0\" max=\"{}\" value=\"0\"> <output id=\"slice-text\" for=\"slice\">the whole "
          "run</output></p>\n",
          in_html(report.run->algorithm), size_text(report.run->report.size), load_slices);
    }
    page +=
        fmt::format("<div class=\"drawing\" tabindex=\"0\" role=\"group\" aria-label=\"Network\">{}</div>\n", *drawing);
  }
  if (report.run) page += html_table(busy_table(*report.run, *report.topology));
  page += "</section>\n";
}

void add_bandwidth(std::string& page, const PlanReport& report) {
  page += "<section id=\"bandwidth\"><h2>Bandwidth</h2>\n" + bandwidth_chart(report);
  std::vector<std::string> crossovers;
  for (const CrossoverAt& crossover : report.crossovers) {
    crossovers.push_back(
        fmt::format("{} is faster than {} from {} on.", crossover.to, crossover.from, size_text(crossover.size)));
  }
  add_list(page, crossovers, "notes");
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
    page +=
        "<p class=\"control\" hidden><button type=\"button\" data-zoom=\"2\">Zoom in</button> <button type=\"button\" "
        "data-zoom=\"0.5\">Zoom out</button> <button type=\"button\" data-zoom=\"0\">All</button> <span class=\"keys\">"
        "drag or arrow keys to pan, + and - or Ctrl with the wheel to zoom</span></p>\n"
        "<ul class=\"legend\"><li class=\"phase send\">send</li><li class=\"phase recv\">receive</li><li class=\"phase "
        "reduce\">reduce</li><li class=\"phase wire\">on the link</li><li class=\"phase critical\">critical "
        "path</li></ul>\n"
        "<div class=\"lanes\" tabindex=\"0\" role=\"application\" aria-label=\"Timeline of ranks and links; the tables "
        "say what it shows\" hidden><canvas></canvas><div class=\"spacer\"></div></div>\n"
        "<p id=\"span-text\" class=\"span\" role=\"status\"></p>\n"
        "<noscript><p>The timeline is drawn by a script; the tables are complete without it.</p></noscript>\n";
  }
  page += html_table(path_table(run, *report.topology)) + "</section>\n";
}

void add_measured(std::string& page, const PlanReport& report) {
  if (!report.measured) return;
  page += "<section id=\"measured\"><h2>Measured</h2>\n";
  add_tables(page, report.measured->tables);
  if (!report.measured->overlay.empty()) {
    page += fmt::format(
        "<div class=\"drawing paper\" tabindex=\"0\" role=\"group\" aria-label=\"Simulated over measured\">"
        "{}</div>\n",
        report.measured->overlay);
  }
  page += "</section>\n";
}

void add_head(std::string& page, const PlanReport& report) {
  const std::string title = in_html(title_of(report));
  page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'unsafe-inline'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<style>\n{}</style></head>\n<body>\n"
      "<header><h1>{}</h1>\n<nav aria-label=\"Parts\"><a href=\"#machine\">Machine</a> <a "
      "href=\"#bandwidth\">Bandwidth</a>{}{} <a href=\"#assumptions\">Assumptions</a></nav></header>\n<main>\n",
      title, page_style(), title, report.run ? " <a href=\"#timeline\">Timeline</a>" : "",
      report.measured ? " <a href=\"#measured\">Measured</a>" : "");
}

}  // namespace

std::string report_page(const PlanReport& report) {
  std::string page;
  add_head(page, report);
  page += "<section id=\"verdict\"><h2>Verdict</h2>\n";
  add_list(page, verdict_of(report), "verdict");
  add_list(page, report.warnings, "warnings");
  page += "</section>\n";
  add_machine(page, report);
  add_bandwidth(page, report);
  add_timeline(page, report);
  add_measured(page, report);
  page += "<section id=\"assumptions\"><h2>Assumptions</h2>\n";
  add_tables(page, report.assumptions);
  page += fmt::format("</section>\n</main>\n<footer>{}</footer>\n", in_html(report.maker));
  if (report.run && report.run->report.timeline) {
    page += fmt::format("<script type=\"application/json\" id=\"data\">{}</script>\n",
                        timeline_data(*report.run, *report.topology));
  }
  return page + fmt::format("<script>\n{}</script>\n</body></html>\n", page_script());
}

}  // namespace espalier::report
