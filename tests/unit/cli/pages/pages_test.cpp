#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "cli/pages/results_page.h"
#include "cli/pages/scenario_page.h"
#include "cli/pages/sweep_results.h"
#include "sweep/row_text.h"
#include "sweep/run_sweep.h"
#include "topology/generate/generate.h"

namespace espalier::cli {
namespace {

/// What `simulate --json` says of a ring of 4 ranks: `busbw` of the bound, and one time of 1 MiB.
ResultFile results_of(const std::string& name, const std::string& topology, double bound, double seconds,
                      const std::string& origin = "simulation") {
  compare::Measurements rows{name, origin, topology, {}, {}, {}};
  compare::Measurement row;
  row.size = {1 << 20};
  row.collective = "all_reduce";
  row.ranks = 4;
  row.algorithm = row.planner = "ring";
  row.seconds = seconds;
  rows.rows = {row};
  nlohmann::ordered_json document{{"schema", "espalier/results/1"}};
  if (bound > 0) document["bound"] = {{"busbw", bound}};
  return {name, rows, document};
}

/// busbw of 1 MiB on 4 ranks in `seconds`: 2^20 B x 2 x 3/4 / seconds.
double busbw(double seconds) { return (1 << 20) * 1.5 / seconds; }

bool any_has(const std::vector<std::string>& sentences, const std::string& text) {
  return std::ranges::any_of(sentences, [&](const std::string& one) { return one.find(text) != std::string::npos; });
}

TEST(ResultsPage, EachDesignIsHeldAgainstItsOwnBound) {
  // 10 us are 157.29 GB/s: half of a bound of 314.57, all but a tenth of one of 174.76.
  const std::vector<ResultFile> files = {results_of("A.json", "wide", 2 * busbw(1e-5), 1e-5),
                                         results_of("B.json", "narrow", busbw(1e-5) / 0.9, 1e-5)};
  const report::ResultsPage page = *make_results_page(files);
  ASSERT_EQ(page.times.size(), 1U);
  EXPECT_EQ(page.times[0].rows[0].back(), "50.0");
  EXPECT_EQ(page.times[0].rows[1].back(), "90.0");
  const auto& curves = page.bandwidths[0];
  EXPECT_DOUBLE_EQ(curves.part_of_bound(curves.predicted[0], curves.predicted[0].points[0]), 0.5);
  EXPECT_DOUBLE_EQ(curves.part_of_bound(curves.predicted[1], curves.predicted[1].points[0]), 0.9);
  const auto lines = report::bound_lines(curves);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].text, "bound of wide 314.57 GB/s");
  EXPECT_EQ(lines[1].text, "bound of narrow 174.76 GB/s");
  EXPECT_TRUE(any_has(page.verdict, "ring on wide at 1 MiB, 50.0 % of the 314.57 GB/s"));
  EXPECT_TRUE(any_has(page.verdict, "ring on narrow at 1 MiB, 90.0 % of the 174.76 GB/s"));
}

TEST(ResultsPage, LegendsNameMachines) {
  const auto names = [](const std::vector<ResultFile>& files) {
    const report::ResultsPage page = *make_results_page(files);
    std::vector<std::string> found;
    for (const auto* curves : {&page.bandwidths[0].predicted, &page.bandwidths[0].measured}) {
      for (const report::Curve& curve : *curves) found.push_back(curve.name);
    }
    return found;
  };
  using Names = std::vector<std::string>;
  const ResultFile a = results_of("a.json", "wide", 1e11, 1e-5), b = results_of("b.json", "narrow", 1e11, 1e-5);
  EXPECT_EQ(names({a}), Names{"ring on wide"});
  EXPECT_EQ(names({a, b}), (Names{"ring on wide", "ring on narrow"}));
  // Files of one machine are told apart by their names.
  const ResultFile run = results_of("run.json", "wide", 0, 2e-5, "run");
  EXPECT_EQ(names({a, run}), (Names{"ring in a.json", "ring in run.json"}));
  EXPECT_EQ(names({a, run, b}), (Names{"ring on wide in a.json", "ring on narrow", "ring on wide in run.json"}));
}

TEST(ResultsPage, AMeasurementHasTheBoundOfItsMachine) {
  const ResultFile wide = results_of("a.json", "wide", 4 * busbw(1e-5), 1e-5);
  const ResultFile narrow = results_of("b.json", "narrow", 2 * busbw(1e-5), 1e-5);
  const auto last_part = [](const std::vector<ResultFile>& files) {
    return make_results_page(files)->times[0].rows.back().back();
  };
  EXPECT_EQ(last_part({wide, narrow, results_of("run.json", "narrow", 0, 1e-5, "run")}), "50.0");
  // Without a name the only bound there is, and none where there are two.
  EXPECT_EQ(last_part({wide, results_of("run.json", "", 0, 1e-5, "run")}), "25.0");
  EXPECT_EQ(last_part({wide, narrow, results_of("run.json", "", 0, 1e-5, "run")}), "-");
}

TEST(ScenarioPage, TheMostExposedNameHasAllItsKinds) {
  // "tensor" is exposed for 6 + 5 %, more than "data" with 9 %, though neither of its kinds is.
  const std::vector<scenario::CallSummary> calls = {
      {.label = "tensor", .kind = CollectiveKind::all_gather, .exposed = 0.06},
      {.label = "data", .kind = CollectiveKind::all_reduce, .exposed = 0.09},
      {.label = "tensor", .kind = CollectiveKind::reduce_scatter, .exposed = 0.05}};
  EXPECT_EQ(max_exposed(calls), "Most exposed: tensor (all_gather and reduce_scatter), for 11.0 % of the time.");
  EXPECT_EQ(max_exposed(std::span(calls).subspan(1, 1)), "Most exposed: data, for 9.0 % of the time.");
  EXPECT_EQ(max_exposed({}), "");
}

/// What `sweep` says of all_gather on a ring of 4, whole and without a cable, by two algorithms at two sizes.
std::vector<sweep::Row> swept_rows() {
  sweep::Spec spec;
  spec.machines.push_back({.topology = *generate_ring({.ranks = 4})});
  spec.collectives = {CollectiveKind::all_gather};
  spec.algorithms = {"ring", "tree"};
  spec.sizes = {{1 << 20}, {4 << 20}};
  spec.without = {"gpu0-gpu1"};
  std::vector<sweep::Row> rows;
  const auto ran = sweep::run_sweep(spec, *sweep::list_units(spec), 1, [&](sweep::Row row) -> Result<void> {
    rows.push_back(std::move(row));
    return {};
  });
  EXPECT_TRUE(ran);
  std::ranges::sort(rows, {}, &sweep::Row::key);
  return rows;
}

TEST(ResultsPage, DrawsTheRowsOfASweepInEachOfItsForms) {
  const std::vector<sweep::Row> rows = swept_rows();
  const auto given = std::ranges::count_if(rows, [](const sweep::Row& row) { return row.figures.has_value(); });
  ASSERT_GE(given, 6);
  std::vector<std::string> texts = {sweep::document_text(rows, false)};
  for (const auto format : {sweep::RowFormat::csv, sweep::RowFormat::json_lines}) {
    const sweep::RowStyle style{format, false};
    texts.push_back(sweep::header_text(style));
    for (const sweep::Row& row : rows) texts.back() += sweep::row_text(row, style);
  }
  for (const std::string& text : texts) {
    ASSERT_TRUE(is_of_sweep(text)) << text;
    EXPECT_TRUE(holds_results(text));
    const auto files = read_sweep_results(text, "rows");
    ASSERT_TRUE(files) << files.error().message;
    const report::ResultsPage page = *make_results_page(*files);
    ASSERT_EQ(page.bandwidths.size(), 1U);
    std::size_t points = 0;
    for (const report::Curve& curve : page.bandwidths[0].predicted) {
      points += curve.points.size();
      for (const report::CurvePoint& point : curve.points) {
        const auto row = std::ranges::find_if(rows, [&](const sweep::Row& one) {
          const bool is_damaged = curve.name.find(" without gpu0-gpu1") != std::string::npos;
          return one.figures && curve.name.starts_with(one.key.algorithm + " on ") && one.key.size == point.size &&
                 one.key.failure.empty() != is_damaged;
        });
        ASSERT_NE(row, rows.end()) << curve.name;
        EXPECT_NEAR(page.bandwidths[0].rate(point), row->figures->busbw, 1e-6 * row->figures->busbw);
        EXPECT_NEAR(page.bandwidths[0].part_of_bound(curve, point), row->figures->of_bound, 1e-6);
      }
    }
    EXPECT_EQ(points, static_cast<std::size_t>(given));
  }
}

TEST(ResultsPage, SaysWhichRowsOfASweepGaveNothing) {
  std::vector<sweep::Row> rows = swept_rows();
  rows.front().figures.reset();
  rows.front().reason = "internal error: somewhere";
  const sweep::RowStyle style{sweep::RowFormat::csv, false};
  std::string text = sweep::header_text(style);
  for (const sweep::Row& row : rows) text += sweep::row_text(row, style);
  const auto files = read_sweep_results(text, "rows.csv");
  ASSERT_TRUE(files);
  EXPECT_TRUE(any_has(make_results_page(*files)->missing, "of rows.csv gave nothing; the first: all_gather by ring"));
}

}  // namespace
}  // namespace espalier::cli
