#include "sweep/scenario_rows.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace espalier::sweep {
namespace {

/// A row of that seed and number of tensor ranks, which took 1 s.
Cells scenario_row(const std::string& seed, const std::string& tensor, const std::string& time = "1.0") {
  Cells cells(scenario_form().columns.size());
  const auto set = [&](std::string_view name, const std::string& value) {
    const auto column = std::ranges::find(scenario_form().columns, name, &Column::name);
    cells[static_cast<std::size_t>(column - scenario_form().columns.begin())] = value;
  };
  set("schema", std::string(scenario_form().schema));
  set("scenario", "a, \"quoted\" name");
  set("topology", "dgx1v");
  set("seed", seed);
  set("tensor", tensor);
  set("status", time.empty() ? "failed" : "ok");
  set("time", time);
  set("reason", time.empty() ? "why not" : "");
  return cells;
}

std::string error_of_row(Cells cells) {
  std::vector<Cells> rows;
  return take_scenarios_into(rows)(std::move(cells), false);
}

TEST(ScenarioRows, AreReadAsTheyAreWritten) {
  for (const RowFormat format : {RowFormat::csv, RowFormat::json_lines}) {
    const std::vector<Cells> rows = {scenario_row("1", ""), scenario_row("1", "2", "")};
    std::string text = header_text(scenario_form(), {format, false});
    for (const Cells& row : rows) text += line_text(scenario_form(), row, format);
    std::vector<Cells> again;
    const auto read = read_cells(text + line_text(scenario_form(), rows[0], format).substr(0, 40), scenario_form(),
                                 format, "rows", take_scenarios_into(again));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(again, rows);
    EXPECT_FALSE(read->timings);
    EXPECT_EQ(read->whole_bytes, text.size()) << "the torn line is left out";
  }
}

TEST(ScenarioRows, SayWhatIsWrongWithThem) {
  EXPECT_EQ(error_of_row(scenario_row("1", "")), "");
  EXPECT_EQ(error_of_row(scenario_row("x", "")), "'x' is no seed");
  EXPECT_EQ(error_of_row(scenario_row("1", "-2")), "'-2' is no tensor");
  EXPECT_EQ(error_of_row(scenario_row("1", "", "nan")), "'nan' is no time");
  Cells other = scenario_row("1", "");
  other[0] = "espalier/sweep/4";
  EXPECT_EQ(error_of_row(other), "the row is not of schema espalier/scenario-sweep/3");
  Cells silent = scenario_row("1", "", "");
  silent.back() = "";
  EXPECT_EQ(error_of_row(silent), "'' is no reason");
}

TEST(ScenarioRows, AreSortedWithNumbersAsNumbers) {
  std::vector<Cells> rows = {scenario_row("10", "2"), scenario_row("9", "16"), scenario_row("9", "2"),
                             scenario_row("9", "")};
  sort_scenario_rows(rows);
  EXPECT_EQ(rows, (std::vector<Cells>{scenario_row("9", ""), scenario_row("9", "2"), scenario_row("9", "16"),
                                      scenario_row("10", "2")}));
}

TEST(ScenarioRows, AreMergedOnce) {
  const auto merged = merge_scenario_rows(
      {{"a.csv", {scenario_row("2", ""), scenario_row("1", "")}}, {"b.csv", {scenario_row("1", "")}}});
  ASSERT_TRUE(merged);
  EXPECT_EQ(merged->rows, (std::vector<Cells>{scenario_row("1", ""), scenario_row("2", "")}));
  EXPECT_EQ(merged->repeated, 1U);
  const auto differ =
      merge_scenario_rows({{"a.csv", {scenario_row("1", "")}}, {"b.csv", {scenario_row("1", "", "2.0")}}});
  ASSERT_FALSE(differ);
  EXPECT_EQ(differ.error().message,
            "a.csv and b.csv disagree about scenario a, \"quoted\" name, topology dgx1v, seed 1");
}

}  // namespace
}  // namespace espalier::sweep
