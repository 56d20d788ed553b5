#include "report/job_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "report/html_text.h"
#include "report/page_parts.h"
#include "topology/draw/topology_svg.h"

namespace espalier::report {
namespace {

constexpr double min_names = 100, bars_length = 680, bars_right = 30, bar_height = 14, row_height = 20;

struct BarPart {
  std::string_view look, name;
  double RankBar::*part;
};
constexpr std::array<BarPart, 3> bar_parts = {{{"c0", "computing", &RankBar::compute},
                                               {"c1", "exposed communication", &RankBar::exposed},
                                               {"c3", "waiting for others", &RankBar::waiting}}};

double bars_left_of(const JobPage& job) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(job.ranks.size(), max_rank_bars); ++i) names.push_back(job.ranks[i].name);
  return names_width(names, min_names);
}

double bars_width_of(const JobPage& job) { return bars_left_of(job) + bars_length + bars_right; }

/// A bar per rank, and how high they are together.
std::pair<std::string, double> draw_bars(const JobPage& job) {
  std::string text;
  double y = 0;
  const double bars_left = bars_left_of(job);
  for (std::size_t i = 0; i < std::min(job.ranks.size(), max_rank_bars); ++i, y += row_height) {
    const RankBar& bar = job.ranks[i];
    text += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", bars_left - 8, y + 11,
                        in_html(shown_name(bar.name)));
    double x = bars_left;
    for (const BarPart& part : bar_parts) {
      const double length = bar.*part.part * bars_length;
      if (length <= 0) continue;
      text += fmt::format(
          "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\"><title>{}: {} {:.1f} "
          "%</title></rect>\n",
          part.look, x, y, length, bar_height, in_html(bar.name), part.name, 100 * bar.*part.part);
      x += length;
    }
  }
  if (job.ranks.size() > max_rank_bars) {
    text += fmt::format("<text x=\"{}\" y=\"{:.1f}\">{} more are in the table</text>\n", bars_left, y + 11,
                        job.ranks.size() - max_rank_bars);
    y += row_height;
  }
  double x = bars_left;
  for (const BarPart& part : bar_parts) {
    text += fmt::format(
        "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"22\" height=\"10\"/><text x=\"{:.1f}\" "
        "y=\"{:.1f}\">{}</text>\n",
        part.look, x, y + 8, x + 28, y + 17, part.name);
    x += 200;
  }
  return {std::move(text), y + 24};
}

ReportTable ranks_table(const JobPage& job) {
  ReportTable table{"ranks",
                    "Where the time of ranks went",
                    {{"rank"}, {"compute (%)", true}, {"exposed (%)", true}, {"waiting (%)", true}, {"idle (%)", true}},
                    {}};
  const auto percent = [](double part) { return fmt::format("{:.1f}", 100 * part); };
  for (const RankBar& bar : job.ranks) {
    table.rows.push_back(
        {bar.name, percent(bar.compute), percent(bar.exposed), percent(bar.waiting), percent(bar.idle)});
  }
  return table;
}

std::string task_data(const JobPage& job) {
  nlohmann::ordered_json data;
  data["ranks"] = job.lanes;
  data["links"] = nlohmann::ordered_json::array();
  data["labels"] = job.labels;
  data["looks"] = {{"computes", "c0", 0, 1}, {"takes part", "c1", 0.2, 0.8}, {"waits", "c3", 0.4, 0.6}};
  data["path"] = nlohmann::ordered_json::array();
  data["every"] = job.every;
  add_span_columns(data, job.tasks, job.elapsed);
  return in_script(data);
}

}  // namespace

std::string job_page(const JobPage& job) {
  std::vector<std::pair<std::string, std::string>> parts = {
      {"machine", "Machine"}, {"ranks", "Ranks"}, {"calls", "Calls"}};
  if (!job.tasks.empty()) parts.emplace_back("timeline", "Timeline");
  parts.emplace_back("assumptions", "Assumptions");
  std::string page = page_head(job.title, parts);
  page += "<section id=\"verdict\"><h2>Verdict</h2>\n" + sentence_list(job.verdict, "verdict") +
          sentence_list(job.warnings, "warnings") + "</section>\n<section id=\"machine\"><h2>Machine</h2>\n";
  page += fmt::format("<div class=\"drawing\" tabindex=\"0\" role=\"group\" aria-label=\"Network\">{}</div>\n",
                      topology_svg(*job.topology, {job.loads, {}}));
  const auto [bars, height] = draw_bars(job);
  page +=
      tables_html(job.links) + "</section>\n<section id=\"ranks\"><h2>Ranks</h2>\n" +
      fmt::format(
          "<svg class=\"chart bars\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Where the time of ranks went; the "
          "table below has the numbers\">\n{}</svg>\n",
          bars_width_of(job), height, bars) +
      html_table(ranks_table(job)) + "</section>\n<section id=\"calls\"><h2>Calls</h2>\n" + tables_html(job.calls) +
      "</section>\n";
  if (!job.tasks.empty()) {
    page += "<section id=\"timeline\"><h2>Timeline</h2>\n<p>What each stream of each rank did.</p>\n" +
            timeline_html({{"t0", "computes"}, {"t1", "takes part in a call"}, {"t2", "waits"}}) + "</section>\n";
  }
  page += "<section id=\"assumptions\"><h2>Assumptions</h2>\n" + tables_html(job.assumptions) + "</section>\n";
  return page + page_foot(job.maker, job.tasks.empty() ? std::string() : task_data(job));
}

std::vector<Picture> pictures_of(const JobPage& job) {
  const auto [bars, height] = draw_bars(job);
  std::string ranks = begin_picture(bars_width_of(job), height + 50, job.title);
  ranks +=
      fmt::format("<text class=\"head\" x=\"8\" y=\"24\">{}</text>\n<g transform=\"translate(0 40)\">\n{}</g></svg>\n",
                  in_html(job.title), bars);
  return {{"machine", topology_svg(*job.topology, {job.loads, {}})}, {"ranks", std::move(ranks)}};
}

}  // namespace espalier::report
