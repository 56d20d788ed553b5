#include "report/results_page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>

#include "report/document_tables.h"
#include "report/timeline_svg.h"

namespace espalier::report {
namespace {

using Row = std::vector<std::string>;

std::string error_of(std::string_view text) {
  const auto document = read_document(text, "a.json");
  return document ? "" : document.error().message;
}

TEST(Documents, SayWhereTheyAreNone) {
  EXPECT_EQ(error_of("{\n \"schema\": }"), "a.json:2:12: this is no JSON");
  EXPECT_EQ(error_of(""), "a.json:1:1: this is no JSON");
  EXPECT_EQ(error_of("[1]"), "a.json:1:1: the document does not say \"schema\": \"espalier/...\"");
  EXPECT_EQ(error_of("{\"schema\": \"other/1\"}"),
            "a.json:1:1: the document does not say \"schema\": \"espalier/...\"");
  EXPECT_EQ(error_of("{\"schema\": \"espalier/x/1\", \"a\": 1e999}"), "a.json:1:1: a number is out of range");
  EXPECT_EQ(error_of("{\"schema\": \"espalier/x/1\", \"a\": " + std::string(40, '[') + std::string(40, ']') + "}"),
            "a.json:1:1: more than 32 values inside each other");
}

TEST(Documents, BecomeTables) {
  const auto document = read_document(
      R"({"schema": "espalier/x/1", "name": "dgx", "none": null, "cut": ["a", "b"], "bound": {"busbw": 1.5e9},
          "rows": [{"size": 8, "to": {"time": 2e-6}}, {"size": 16, "by": "ring", "lists": [[1], [2]]}]})",
      "a.json");
  ASSERT_TRUE(document) << document.error().message;
  const std::vector<ReportTable> tables = tables_of(*document, "a.json");
  ASSERT_EQ(tables.size(), 2U);
  EXPECT_EQ(tables[0].caption, "a.json: espalier/x/1");
  EXPECT_EQ(tables[0].rows,
            (std::vector<Row>{{"name", "dgx"}, {"none", "-"}, {"cut", "a, b"}, {"bound.busbw", "1.5e+09"}}));
  Row titles;
  for (const ReportTable::Column& column : tables[1].columns) titles.push_back(column.title);
  EXPECT_EQ(titles, (Row{"size", "to.time", "by", "lists"}));
  EXPECT_EQ(tables[1].rows, (std::vector<Row>{{"8", "2e-06", "", ""}, {"16", "", "ring", "2 entries"}}));
  EXPECT_TRUE(tables[1].columns[0].is_number);
  EXPECT_FALSE(tables[1].columns[2].is_number);
}

TEST(ResultsPage, ShowsWhatThereIs) {
  Timeline timeline{"all_reduce, ring, 1 KiB on box", "run", {"a", "b"}, {}, {}};
  timeline.spans = {{0, TransferId(0), 0, Phase::send, {0}, {500}}, {1, TransferId(0), 0, Phase::recv, {100}, {1000}}};
  ResultsPage page;
  page.title = "a <b>";
  page.verdict = {"It took 1 ns."};
  page.missing = {"No network."};
  page.files = {{"files", "Files", {{"file"}}, {{"a.json"}}}};
  EXPECT_EQ(results_page(page).find("id=\"timeline\""), std::string::npos);
  EXPECT_TRUE(pictures_of(page).empty());

  page.timeline = DrawnTimeline{"a run", &timeline, {{{0}, {500}, false, 0, TransferId(0), 0}}};
  BandwidthCurves curves;
  curves.title = "all_reduce";
  curves.measure = "algorithm bandwidth";
  curves.measured = {{"a.json", {{{1000}, 1e-6, ""}}}};
  page.bandwidths = {curves, curves};
  const std::string html = results_page(page);
  EXPECT_EQ(html.find("<b>"), std::string::npos);
  EXPECT_LT(html.find("It took"), html.find("No network"));
  EXPECT_NE(html.find("id=\"timeline\""), std::string::npos);
  EXPECT_NE(html.find("algorithm bandwidth (GB/s)"), std::string::npos);
  EXPECT_EQ(html.find("id=\"slice\""), std::string::npos);  // There are no loads to slide through.
  std::vector<std::string> names;
  for (const Picture& picture : pictures_of(page)) {
    names.push_back(picture.name);
    EXPECT_TRUE(pugi::xml_document().load_string(picture.svg.c_str())) << picture.name;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"bandwidth", "bandwidth-2", "timeline"}));
}

TEST(TimelineSvg, OutlinesStepsThatFollowEachOtherAsOne) {
  Timeline timeline{"t", "run", {"a"}, {"l"}, {}};
  DrawnTimeline drawn{"t", &timeline, {}};
  for (std::int64_t i = 0; i < 4; ++i) {
    timeline.spans.push_back({0, TransferId(static_cast<std::size_t>(i)), 0, Phase::wire, {100 * i}, {100 * i + 100}});
    if (i != 2) drawn.path.push_back({{100 * i}, {100 * i + 100}, true, 0, TransferId(static_cast<std::size_t>(i)), 0});
  }
  // The first two steps are one outline, the last one is another.
  const std::string svg = timeline_svg(drawn);
  const std::size_t outline = svg.find("class=\"outline\" d=\"");
  ASSERT_NE(outline, std::string::npos);
  const std::string path = svg.substr(outline, svg.find("/>", outline) - outline);
  EXPECT_EQ(std::ranges::count(path, 'M'), 2);
}

}  // namespace
}  // namespace espalier::report
