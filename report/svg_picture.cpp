#include "report/svg_picture.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/bandwidth_chart.h"
#include "report/html_text.h"
#include "report/machine_picture.h"
#include "report/timeline_svg.h"
#include "report/traffic_map.h"

namespace espalier::report {
namespace {

// Plain colours: not every drawing program knows custom properties. Source: P. Tol, "Colour Schemes", SRON, 2021,
// "bright", darkened for thin lines.
constexpr std::string_view style =
    "<style>.picture text{font:12px sans-serif;fill:#33373b}.picture .head{font-size:16px}.picture .paper{fill:#fff}"
    ".picture .grid{stroke:#d7dade;fill:none}.picture .outline{stroke:#1c1e21;stroke-width:1.2;fill:none}"
    ".picture .bound{stroke:#1c1e21;stroke-width:1.5;stroke-dasharray:8 4;fill:none}"
    ".picture .crossover{stroke:#5b6168;stroke-dasharray:2 4;stroke-width:1.5;fill:none}"
    ".picture .curve{stroke-width:2}.picture path.curve{fill:none}.picture path.measured{stroke-dasharray:5 4}"
    ".picture .c0{stroke:#4477aa;fill:#4477aa}.picture .c1{stroke:#cc3f51;fill:#cc3f51}"
    ".picture .c2{stroke:#228833;fill:#228833}.picture .c3{stroke:#94811a;fill:#94811a}"
    ".picture .c4{stroke:#1c8db3;fill:#1c8db3}.picture .c5{stroke:#aa3377;fill:#aa3377}"
    ".picture path.curve{fill:none}.picture g.measured{fill:#fff}</style>\n";

}  // namespace

std::string begin_picture(double width, double height, std::string_view title) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"picture\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" role=\"img\" aria-label=\"{2}\">\n{3}<rect class=\"paper\" width=\"100%\" "
      "height=\"100%\"/>\n",
      width, height, in_html(title), style);
}

double names_width(const std::vector<std::string>& names, double least) {
  constexpr double letter_width = 7.2, room = 16;  // Of letters of 12 pixels, the wide ones too.
  double width = least;
  for (const std::string& name : names) {
    width = std::max(width, room + letter_width * static_cast<double>(shown_name(name).size()));
  }
  return width;
}

std::string shown_name(const std::string& name) {
  constexpr std::size_t longest = 48, half = longest / 2 - 1;
  if (name.size() <= longest) return name;
  const auto is_inside = [&](std::size_t at) { return (static_cast<unsigned char>(name[at]) & 0xC0U) == 0x80U; };
  std::size_t head = half, tail = name.size() - half;
  while (head > 0 && is_inside(head)) --head;  // A character of several bytes is not cut.
  while (tail < name.size() && is_inside(tail)) ++tail;
  return name.substr(0, head) + ".." + name.substr(tail);
}

std::vector<Picture> pictures_of(const PlanReport& report) {
  std::vector<Picture> pictures;
  pictures.push_back({"machine", machine_picture(report)});
  const auto add = [&](std::string name, std::string svg) {
    if (!svg.empty()) pictures.push_back({std::move(name), std::move(svg)});
  };
  add("traffic", traffic_map(report));
  add("bandwidth", bandwidth_picture(curves_of(report)));
  if (report.run && report.run->report.timeline) {
    add("timeline", timeline_svg(drawn_timeline(*report.run, *report.topology)));
  }
  if (report.measured) add("measured", report.measured->overlay);
  return pictures;
}

}  // namespace espalier::report
