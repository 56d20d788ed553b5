#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <pugixml.hpp>

#include "planners/bounds/bound.h"
#include "planners/planner.h"
#include "report/bandwidth_chart.h"
#include "report/html_text.h"
#include "report/job_page.h"
#include "report/page/page_files.h"
#include "report/plan_report.h"
#include "report/png.h"
#include "report/svg_picture.h"
#include "report/timeline_data.h"
#include "report/verdict.h"
#include "topology/generate/generate.h"
#include "topology/topology_builder.h"

namespace espalier::report {
namespace {

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// Two ranks, a link each way of 1 GB/s and no latency; a broadcast of 1,000 bytes in chunks of 400 takes 1 us.
class ReportPage : public testing::Test {
 protected:
  ReportPage() : topology_(make()) {
    report_.topology = &topology_;
    report_.collective = *make_collective(CollectiveKind::broadcast, 2, std::nullopt);
    report_.bound = *planners::compute_bound(topology_, report_.collective);
    report_.cut = "{a}";
    const Schedule schedule = *planners::plan(topology_, report_.collective, *planners::find_planner("ring"));
    sim::Options options;
    options.size = {1000};
    options.chunk = {400};
    options.record_timeline = options.record_critical_path = true;
    report_.run = CloseRun{"ring", *sim::simulate_unverified(schedule, topology_, options)};
    report_.predicted = {{"ring", {{{1000}, 1e-6, ""}, {{4000}, 4e-6, "both"}}}};
    report_.fastest = {{{1000}, "ring", 1e-6}, {{4000}, "ring", 4e-6}};
  }

  static Topology make() {
    TopologyBuilder builder;
    const NodeId a = builder.rank("a"), b = builder.rank("b");
    builder.cable(a, b, {{1'000'000'000}, {0}, "wire"});
    return *std::move(builder).build("pair");
  }

  Topology topology_;
  PlanReport report_;
};

TEST_F(ReportPage, LoadsNothing) {
  std::string page = report_page(report_);
  EXPECT_EQ(page, report_page(report_));
  // Whatever a part of the page asked for, the browser would not load it.
  EXPECT_EQ(count(page, "content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\""), 1U);
  const std::string_view script = page_script();
  EXPECT_EQ(count(page, script), 1U);
  for (const char* const loader : {"fetch(", "XMLHttpRequest", "import(", "sendBeacon", "WebSocket"}) {
    EXPECT_EQ(script.find(loader), std::string_view::npos) << loader;
  }
  page.erase(page.find(script), script.size());
  EXPECT_EQ(page.find("src="), std::string::npos);
  EXPECT_EQ(page.find("@import"), std::string::npos);
  EXPECT_EQ(page.find("url("), std::string::npos);
  EXPECT_EQ(count(page, "http"), count(page, "http://www.w3.org/2000/svg") + count(page, "http-equiv"));
}

TEST_F(ReportPage, HasTheVerdictFirst) {
  // 1,000 bytes in 1 us are 1 GB/s, all that the link gives.
  const std::vector<std::string> verdict = verdict_of(report_);
  ASSERT_FALSE(verdict.empty());
  EXPECT_EQ(verdict.front(),
            "broadcast on pair is predicted to reach a bus bandwidth of 1.00 GB/s, with ring at 1000 B: 100.0 % of the "
            "1.00 GB/s that no schedule can exceed.");
  const std::string page = report_page(report_);
  EXPECT_LT(page.find(verdict.front()), page.find("id=\"machine\""));
}

TEST_F(ReportPage, TheVerdictsBusiestLinksAreOfTheSizeThatItSpeaksOf) {
  // The best of the sizes is 4,000 B, whatever size the run in the page has.
  report_.fastest = {{{1000}, "ring", 2e-6, {{LinkId(0), "a>b", 1, {}, 0.5}}},
                     {{4000}, "ring", 4e-6, {{LinkId(0), "a>b", 1, {}, 0.97}}}};
  const std::vector<std::string> verdict = verdict_of(report_);
  EXPECT_NE(verdict.front().find("with ring at 4000 B"), std::string::npos);
  EXPECT_NE(std::ranges::find(verdict, "Busiest links of ring at 4000 B: a>b 97 %."), verdict.end());
}

TEST_F(ReportPage, EscapesWhatFilesSay) {
  report_.warnings = {"<script>alert('1')</script>"};
  report_.predicted.front().name = "a\"b<c";
  const std::string page = report_page(report_);
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;alert(&#39;1&#39;)"), std::string::npos);
  EXPECT_EQ(page.find("b<c"), std::string::npos);
  EXPECT_EQ(in_html(std::string_view("a\0b\x7f", 4)), "ab");
}

TEST_F(ReportPage, ANameInTheDataDoesNotEndItsElement) {
  report_.run->report.timeline->rank_names[0] = "</script><b>";
  const std::string data = timeline_data(*report_.run, topology_);
  EXPECT_EQ(data.find('<'), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(data)["ranks"][0], "</script><b>");
}

TEST_F(ReportPage, TheChartHasAPointForEveryTime) {
  const std::string chart = bandwidth_chart(curves_of(report_));
  EXPECT_EQ(count(chart, "<title>ring at 1000 B: 1.00 GB/s, 1.00 us, 100.0 % of the bound</title>"), 2U);
  EXPECT_EQ(count(chart, "<title>ring by both at 4000 B: 1.00 GB/s, 4.00 us, 100.0 % of the bound</title>"), 2U);
  EXPECT_EQ(count(chart, "bound 1.00 GB/s"), 2U);  // In the drawing, and for the script.
  EXPECT_EQ(count(chart, "part of the bound (%)"), 1U);
  report_.bound.time_per_byte = 0;  // Then there is nothing to be a part of.
  EXPECT_EQ(count(bandwidth_chart(curves_of(report_)), "<title>ring at 1000 B: 1.00 GB/s, 1.00 us</title>"), 1U);
  report_.predicted.clear();
  EXPECT_EQ(bandwidth_chart(curves_of(report_)), "");
}

TEST_F(ReportPage, TheChartHasTheNumbersForTheScript) {
  report_.crossovers = {{"tree", "</script>", {2000}}};
  const std::string chart = bandwidth_chart(curves_of(report_));
  const std::string begin = "<script type=\"application/json\">", end = "</script></div>\n";
  const std::size_t at = chart.find(begin);
  ASSERT_NE(at, std::string::npos);
  ASSERT_TRUE(chart.ends_with(end));
  const std::string json = chart.substr(at + begin.size(), chart.size() - end.size() - at - begin.size());
  EXPECT_EQ(json.find('<'), std::string::npos);
  const auto data = nlohmann::json::parse(json);
  // 1,000 bytes in 1 us are 10^9 bytes per second, which is the bound.
  EXPECT_DOUBLE_EQ(data["curves"][0]["bound"].get<double>(), 1e9);
  ASSERT_EQ(data["bounds"].size(), 1U);
  EXPECT_DOUBLE_EQ(data["bounds"][0]["rate"].get<double>(), 1e9);
  EXPECT_EQ(data["bounds"][0]["text"], "bound 1.00 GB/s");
  EXPECT_EQ(data["measure"], "bus bandwidth");
  ASSERT_EQ(data["curves"].size(), 1U);
  EXPECT_EQ(data["curves"][0]["name"], "ring");
  auto points = data["curves"][0]["points"];
  ASSERT_EQ(points.size(), 2U);
  for (auto& point : points) {
    EXPECT_NEAR(point.at(4).get<double>(), 100, 1e-9);  // Per cent of the bound.
    point.erase(4);
  }
  EXPECT_EQ(points, nlohmann::json::parse(R"([[1000, 1e-6, 1e9, ""], [4000, 4e-6, 1e9, "both"]])"));
  EXPECT_EQ(data["crossovers"], nlohmann::json::parse(R"([{"from": "tree", "to": "</script>", "size": 2000}])"));
  // A curve, an entry of the legend.
  EXPECT_EQ(count(chart, "<li>"), 1U);
}

TEST_F(ReportPage, PicturesStandByThemselves) {
  const auto pictures = pictures_of(report_);
  std::vector<std::string> names;
  for (const Picture& picture : pictures) {
    names.push_back(picture.name);
    EXPECT_TRUE(picture.svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"")) << picture.name;
    EXPECT_EQ(picture.svg.find("var(--"), std::string::npos) << picture.name;
    EXPECT_NE(picture.svg.find("<style>"), std::string::npos) << picture.name;
    EXPECT_TRUE(pugi::xml_document().load_string(picture.svg.c_str())) << picture.name;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"machine", "bandwidth", "timeline"}));
  // A lane for each rank, and for the one link that is at work.
  const std::string& timeline = pictures.back().svg;
  EXPECT_EQ(count(timeline, ">a&gt;b</text>"), 1U);
  EXPECT_EQ(count(timeline, "critical path"), 1U);
}

TEST_F(ReportPage, WhatTheScriptShowsOfTheBoundCountsWholeElements) {
  // Three elements of 4 bytes on two ranks are two and one; the bound holds for one on each, 8 of 12 bytes.
  BandwidthCurves curves = curves_of(report_);
  curves.collective = *make_collective(CollectiveKind::all_gather, 2, std::nullopt);
  curves.predicted[0].points = {{{12}, 20e-9, ""}};
  const std::string chart = bandwidth_chart(curves);
  const auto begin = chart.find("\"points\":[[12,");
  ASSERT_NE(begin, std::string::npos);
  const double shown = curves.part_of_bound(curves.predicted[0], curves.predicted[0].points[0]);
  EXPECT_NEAR(shown, curves.rate(curves.predicted[0].points[0]) * 8 / 12 / curves.predicted[0].bound, 1e-12);
  const auto point = nlohmann::json::parse(chart.substr(begin + 10, chart.find(']', begin) - begin - 9));
  EXPECT_DOUBLE_EQ(point.at(4).get<double>(), 100 * shown);
}

TEST_F(ReportPage, NamesOfLanesHaveRoom) {
  const std::string name(40, 'w');
  report_.run->report.timeline->rank_names[0] = name;
  const std::string timeline = pictures_of(report_).back().svg;
  const std::size_t at = timeline.find(">" + name + "</text>");
  ASSERT_NE(at, std::string::npos);
  const std::size_t x = timeline.rfind("<text x=\"", at) + 9;
  EXPECT_GT(std::stod(timeline.substr(x)), 7.0 * 40);  // It ends there.
}

TEST_F(ReportPage, PngByLibrsvg) {
  const auto png = png_of_svg(bandwidth_picture(curves_of(report_)));
  if (!png && png.error().code == ErrorCode::unavailable) GTEST_SKIP() << png.error().message;
  ASSERT_TRUE(png) << png.error().message;
  // Source: PNG (ISO/IEC 15948), 5.2 and 11.2.2: signature, then width and height; two pixels per unit of 860.
  EXPECT_TRUE(png->starts_with("\x89PNG\r\n"));
  const auto byte = [&](std::size_t at) { return static_cast<unsigned>(static_cast<unsigned char>((*png)[at])); };
  EXPECT_EQ(byte(18) << 8U | byte(19), 1720U);
  EXPECT_EQ(png_of_svg("<svg/>").error().message, "the SVG states no width and height");
  EXPECT_EQ(png_of_svg("<svg width=\"9\" height=\"9\">").error().message, "librsvg does not read the SVG");
  EXPECT_EQ(png_of_svg("<svg width=\"99999\" height=\"99999\">").error().code, ErrorCode::too_large);
}

TEST_F(ReportPage, OfAJob) {
  JobPage job;
  job.title = "step <on> pair";
  job.verdict = {"It takes 2 us."};
  job.topology = &topology_;
  job.loads = {0.5, 0};
  // Half computing, a quarter exposed: of the 680 units that a bar may have, 340 and 170.
  job.ranks = {{"a", 0.5, 0.25, 0, 0.25}, {"b", 0, 0, 1, 0}};
  job.elapsed = {2'000'000};
  job.lanes = {"a", "b"};
  job.labels = {"forward", "sum"};
  job.tasks = {{{0}, {1'000'000}, 0, 0, 0, 0}, {{500'000}, {2'000'000}, 1, 1, 1, 0}};
  const std::string page = job_page(job);
  EXPECT_EQ(page.find("<on>"), std::string::npos);
  EXPECT_EQ(count(page, "width=\"340.0\""), 1U);
  EXPECT_EQ(count(page, "width=\"170.0\""), 1U);
  EXPECT_EQ(count(page, "a: exposed communication 25.0 %"), 1U);
  EXPECT_NE(page.find("\"labels\":[\"forward\",\"sum\"]"), std::string::npos);
  EXPECT_NE(page.find("\"count\":2"), std::string::npos);
  EXPECT_LT(page.find("It takes 2 us."), page.find("id=\"machine\""));
  for (const Picture& picture : pictures_of(job)) {
    EXPECT_TRUE(pugi::xml_document().load_string(picture.svg.c_str())) << picture.name;
  }
}

/// Reads back base64 (RFC 4648).
std::string decoded(const std::string& text) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t group = 0;
  int bits = 0;
  for (const char letter : text) {
    if (letter == '=') break;
    group = (group << 6U) | static_cast<std::uint32_t>(letters.find(letter));
    if ((bits += 6) >= 8) bytes += static_cast<char>((group >> static_cast<unsigned>(bits -= 8)) & 0xffU);
  }
  return bytes;
}

std::vector<std::uint64_t> numbers(const nlohmann::json& column) {
  std::vector<std::uint64_t> found(1, 0);
  unsigned shift = 0;
  for (const char letter : decoded(column.get<std::string>())) {
    const auto byte = static_cast<unsigned char>(letter);
    found.back() |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
    shift = byte >= 0x80U ? shift + 7 : 0;
    if (shift == 0) found.push_back(0);
  }
  found.pop_back();
  return found;
}

TEST_F(ReportPage, TheDataGivesTheSpansBack) {
  const auto data = nlohmann::json::parse(timeline_data(*report_.run, topology_));
  const std::vector<Span>& spans = report_.run->report.timeline->spans;
  ASSERT_EQ(data["count"], spans.size());
  ASSERT_EQ(data["unit"], 1);  // 1 us is 10^6 ps, below the steps that a run is cut into
  const auto begins = numbers(data["begins"]), lengths = numbers(data["lengths"]), lanes = numbers(data["lanes"]);
  const auto phases = numbers(data["phases"]), transfers = numbers(data["transfers"]), chunks = numbers(data["chunks"]);
  ASSERT_EQ(begins.size(), spans.size());
  std::uint64_t begin = 0;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    begin += begins[i];
    EXPECT_EQ(begin, static_cast<std::uint64_t>(spans[i].begin.count));
    EXPECT_EQ(begin + lengths[i], static_cast<std::uint64_t>(spans[i].end.count));
    EXPECT_EQ(lanes[i], spans[i].lane);
    EXPECT_EQ(phases[i], static_cast<std::uint64_t>(spans[i].phase));
    EXPECT_EQ(transfers[i], spans[i].transfer.index());
    EXPECT_EQ(chunks[i], spans[i].chunk);
  }
}

TEST(Base64, IsThatOfItsStandard) {
  // Source: RFC 4648, section 10.
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
}

TEST(LoadsOverTime, CountEveryMomentOnce) {
  Timeline timeline;
  const auto slice = [](std::int64_t number) { return Picoseconds{number * 100}; };
  // Of 60 slices of 100 ps, link 0 is busy in the first half of slice 0 twice over, and all through 58 and 59.
  timeline.spans = {{0, TransferId(0), 0, Phase::wire, slice(0), {50}},
                    {0, TransferId(1), 0, Phase::wire, slice(0), {50}},
                    {0, TransferId(0), 1, Phase::send, slice(2), slice(4)},
                    {0, TransferId(2), 0, Phase::wire, slice(58), slice(60)}};
  const std::vector<double> loads = loads_over_time(timeline, 2);
  ASSERT_EQ(loads.size(), 2 * load_slices);
  EXPECT_DOUBLE_EQ(loads[0], 0.5);
  EXPECT_DOUBLE_EQ(loads[2], 0);
  EXPECT_DOUBLE_EQ(loads[2 * 58], 1);
  EXPECT_DOUBLE_EQ(loads[2 * 59], 1);
  EXPECT_DOUBLE_EQ(loads[1], 0);
}

TEST_F(ReportPage, LongTimelinesAreThinned) {
  Timeline& timeline = *report_.run->report.timeline;
  timeline.spans.clear();
  for (std::int64_t i = 0; i < 300'000; ++i) {
    timeline.spans.push_back({0, TransferId(0), static_cast<std::uint32_t>(i), Phase::wire, {10 * i}, {10 * i + 10}});
  }
  const auto data = nlohmann::json::parse(timeline_data(*report_.run, topology_));
  EXPECT_EQ(data["all"], 300'000);
  EXPECT_EQ(data["every"], 2);
  EXPECT_EQ(data["count"], 150'000);
  EXPECT_EQ(decoded(data["loads"].get<std::string>())[0], 100);  // loads are of the whole run
}

}  // namespace
}  // namespace espalier::report
