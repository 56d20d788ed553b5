#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "cli/pages/results_page.h"
#include "cli/pages/scenario_page.h"

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
  EXPECT_EQ(most_exposed(calls), "Most exposed: tensor (all_gather and reduce_scatter), for 11.0 % of the time.");
  EXPECT_EQ(most_exposed(std::span(calls).subspan(1, 1)), "Most exposed: data, for 9.0 % of the time.");
  EXPECT_EQ(most_exposed({}), "");
}

}  // namespace
}  // namespace espalier::cli
