#include "sweep/scenario_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <compare>
#include <cstdint>
#include <utility>

namespace espalier::sweep {
namespace {

constexpr std::array scenario_columns = {Column{"schema", CellKind::text},
                                         Column{"scenario", CellKind::text},
                                         Column{"topology", CellKind::text},
                                         Column{"parameters", CellKind::text},
                                         Column{"without", CellKind::text},
                                         Column{"profile", CellKind::text},
                                         Column{"model", CellKind::text},
                                         Column{"seed", CellKind::number},
                                         Column{"tensor", CellKind::number},
                                         Column{"pipeline", CellKind::number},
                                         Column{"data", CellKind::number},
                                         Column{"expert", CellKind::number},
                                         Column{"digest", CellKind::text},
                                         Column{"status", CellKind::text},
                                         Column{"ranks", CellKind::number},
                                         Column{"time", CellKind::number},
                                         Column{"step", CellKind::number},
                                         Column{"compute", CellKind::number},
                                         Column{"exposed", CellKind::number},
                                         Column{"waiting", CellKind::number},
                                         Column{"idle", CellKind::number},
                                         Column{"exposed_tensor", CellKind::number},
                                         Column{"exposed_pipeline", CellKind::number},
                                         Column{"exposed_data", CellKind::number},
                                         Column{"exposed_expert", CellKind::number},
                                         Column{"tokens_per_second", CellKind::number},
                                         Column{"model_flops_utilisation", CellKind::number},
                                         Column{"memory", CellKind::number},
                                         Column{"capacity", CellKind::number},
                                         Column{"low", CellKind::number},
                                         Column{"high", CellKind::number},
                                         Column{"outside", CellKind::text},
                                         Column{"reason", CellKind::text}};
constexpr std::size_t begin_of_key = 1;
constexpr std::size_t end_of_key = 13;
constexpr RowForm form_of_scenarios = {"espalier/scenario-sweep/3", scenario_columns, 0};

/// A whole number of a key; 0 for an empty cell, which sorts before.
std::uint64_t whole_of(const std::string& cell) {
  std::uint64_t value = 0;
  std::from_chars(cell.data(), cell.data() + cell.size(), value);
  return value;
}

std::strong_ordering compare_keys(const Cells& a, const Cells& b) {
  for (std::size_t i = begin_of_key; i < end_of_key; ++i) {
    const bool is_number = scenario_columns[i].kind == CellKind::number;
    const auto order = is_number && a[i].empty() == b[i].empty() ? whole_of(a[i]) <=> whole_of(b[i]) : a[i] <=> b[i];
    if (order != 0) return order;
  }
  return std::strong_ordering::equal;
}

bool comes_before(const Cells& a, const Cells& b) { return compare_keys(a, b) < 0; }

/// What is wrong with a row; empty when nothing is.
std::string find_wrong(const Cells& cells) {
  if (cells[0] != form_of_scenarios.schema) {
    return fmt::format("the row is not of schema {}", form_of_scenarios.schema);
  }
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string& cell = cells[i];
    if (scenario_columns[i].kind != CellKind::number || cell.empty()) continue;
    const char* const end = cell.data() + cell.size();
    double part = 0;
    std::uint64_t whole = 0;
    const auto [rest, status] =
        i < end_of_key ? std::from_chars(cell.data(), end, whole) : std::from_chars(cell.data(), end, part);
    if (status == std::errc() && rest == end && std::isfinite(part) && part >= 0) continue;
    return fmt::format("'{}' is no {}", cell, scenario_columns[i].name);
  }
  const std::string& status = cells[end_of_key];
  if (status != "ok" && status != "failed") return fmt::format("'{}' is no status", status);
  const bool has_time = !cells[end_of_key + 2].empty();
  if (has_time != (status == "ok") || cells.back().empty() == (status == "failed")) {
    return fmt::format("'{}' is no reason", cells.back());
  }
  return {};
}

std::string describe_cells(const Cells& row) {
  std::string text;
  for (std::size_t i = begin_of_key; i < end_of_key; ++i) {
    if (row[i].empty() || scenario_columns[i].name == "digest") continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", scenario_columns[i].name, row[i]);
  }
  return text;
}

}  // namespace

const RowForm& scenario_form() { return form_of_scenarios; }

Cells key_of(const Cells& row) { return {row.begin() + begin_of_key, row.begin() + end_of_key}; }

void sort_scenario_rows(std::vector<Cells>& rows) { std::ranges::stable_sort(rows, comes_before); }

TakeCells take_scenarios_into(std::vector<Cells>& rows) {
  return [&rows](const Cells& cells, bool /*timings*/) {
    std::string wrong = find_wrong(cells);
    if (wrong.empty()) rows.push_back(cells);
    return wrong;
  };
}

Result<MergedCells> merge_scenario_rows(std::vector<NamedCells> files) {
  std::vector<std::pair<std::size_t, Cells>> all;  // with the file that each row is of
  for (std::size_t file = 0; file < files.size(); ++file) {
    for (Cells& row : files[file].rows) all.emplace_back(file, std::move(row));
  }
  std::ranges::stable_sort(all, comes_before, &std::pair<std::size_t, Cells>::second);
  MergedCells merged;
  std::size_t known_in = 0;
  for (auto& [file, row] : all) {
    if (merged.rows.empty() || compare_keys(merged.rows.back(), row) != 0) {
      merged.rows.push_back(std::move(row));
      known_in = file;
      continue;
    }
    if (merged.rows.back() != row) {
      return espalier::fail(
          ErrorCode::invalid_input,
          fmt::format("{} and {} disagree about {}", files[known_in].name, files[file].name, describe_cells(row)),
          "they come from different versions or were changed; run one of them again");
    }
    ++merged.repeated;
  }
  return merged;
}

}  // namespace espalier::sweep
