#include "report/results_page.h"

#include <fmt/format.h>

#include "report/html_text.h"
#include "report/page_parts.h"
#include "report/timeline_svg.h"

namespace espalier::report {
namespace {

using Parts = std::vector<std::pair<std::string, std::string>>;

Parts parts_of(const ResultsPage& page) {
  Parts parts;
  if (!page.bandwidths.empty()) parts.emplace_back("bandwidth", "Bandwidth");
  if (page.timeline) parts.emplace_back("timeline", "Timeline");
  if (!page.compared.empty() || !page.overlay.empty()) parts.emplace_back("measured", "Compared");
  if (!page.documents.empty()) parts.emplace_back("documents", "Documents");
  parts.emplace_back("assumptions", "Files");
  return parts;
}

std::string bandwidth_part(const ResultsPage& page) {
  std::string text;
  for (const BandwidthCurves& curves : page.bandwidths) {
    if (page.bandwidths.size() > 1) text += fmt::format("<h3>{}</h3>\n", in_html(curves.title));
    text += bandwidth_chart(curves);
  }
  return text + tables_html(page.times);
}

std::string timeline_part(const ResultsPage& page) {
  return fmt::format("<p>{}. Ranks, then links; the critical path, found from the spans alone, is outlined.</p>\n",
                     in_html(page.timeline->title)) +
         timeline_html({{"send", "send"},
                        {"recv", "receive"},
                        {"reduce", "reduce"},
                        {"wire", "on the link"},
                        {"critical", "critical path"}});
}

std::string compared_part(const ResultsPage& page) {
  std::string text = tables_html(page.compared);
  if (page.overlay.empty()) return text;
  return text + fmt::format(
                    "<div class=\"drawing paper\" tabindex=\"0\" role=\"group\" aria-label=\"Two timelines over each "
                    "other\">{}</div>\n",
                    page.overlay);
}

}  // namespace

std::string results_page(const ResultsPage& page) {
  const Parts parts = parts_of(page);
  std::string text = page_head(page.title, parts) + "<section id=\"verdict\"><h2>Verdict</h2>\n" +
                     sentence_list(page.verdict, "verdict") + sentence_list(page.missing, "notes") + "</section>\n";
  for (const auto& [id, name] : parts) {
    text += fmt::format("<section id=\"{}\"><h2>{}</h2>\n", id, name);
    if (id == "bandwidth") text += bandwidth_part(page);
    if (id == "timeline") text += timeline_part(page);
    if (id == "measured") text += compared_part(page);
    if (id == "documents") text += tables_html(page.documents);
    if (id == "assumptions") text += tables_html(page.files);
    text += "</section>\n";
  }
  return text + page_foot(page.maker, page.timeline ? timeline_data(*page.timeline) : std::string());
}

std::vector<Picture> pictures_of(const ResultsPage& page) {
  std::vector<Picture> pictures;
  for (std::size_t i = 0; i < page.bandwidths.size(); ++i) {
    std::string svg = bandwidth_picture(page.bandwidths[i]);
    if (svg.empty()) continue;
    pictures.push_back({i == 0 ? "bandwidth" : fmt::format("bandwidth-{}", i + 1), std::move(svg)});
  }
  if (page.timeline) pictures.push_back({"timeline", timeline_svg(*page.timeline)});
  if (!page.overlay.empty()) pictures.push_back({"compared", page.overlay});
  return pictures;
}

}  // namespace espalier::report
