#include "cli/calibration/profile_calibration_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/counted.h"
#include "base/printable.h"
#include "compare/statistics.h"
#include "profile/profile_values.h"
#include "profile/write_profile.h"

namespace espalier::cli {
namespace {

constexpr double two_sided = 1.96;  // standard deviations around 95 % of a normal distribution

struct SizeBand {
  const char* name;
  std::int64_t up_to;
};
constexpr std::array size_bands = {SizeBand{"up to 64 KiB", std::int64_t{1} << 16},
                                   SizeBand{"64 KiB to 64 MiB", std::int64_t{1} << 26},
                                   SizeBand{"above 64 MiB", max_message_size.count}};

/// Medians of |log(predicted / measured)| as factors less one, by band; negative where a band has no run.
std::array<double, 3> band_medians(const ProfileCalibration& tables, std::span<const std::size_t> runs,
                                   std::span<const double> predicted) {
  std::array<std::vector<double>, 3> logs;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const ProfileRow& row = tables.rows()[runs[i]];
    std::size_t band = 0;
    while (row.size.count > size_bands[band].up_to) ++band;
    logs[band].push_back(std::abs(std::log(predicted[i] / row.seconds)));
  }
  std::array<double, 3> medians{};
  for (std::size_t band = 0; band < logs.size(); ++band) {
    medians[band] = logs[band].empty() ? -1 : std::expm1(compare::median(logs[band]));
  }
  return medians;
}

std::string percent_text(double part) { return part < 0 ? "-" : fmt::format("{:.1f}", 100 * part); }

std::vector<std::size_t> all_runs(const ProfileCalibration& tables) {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < tables.rows().size(); ++i) all.push_back(i);
  return all;
}

/// All runs of parts, and what was predicted of them, one behind the other.
std::pair<std::vector<std::size_t>, std::vector<double>> joined(std::span<const compare::HoldOutPart> parts,
                                                                std::span<const std::vector<double>> predicted) {
  std::pair<std::vector<std::size_t>, std::vector<double>> all;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    all.first.insert(all.first.end(), parts[i].runs.begin(), parts[i].runs.end());
    all.second.insert(all.second.end(), predicted[i].begin(), predicted[i].end());
  }
  return all;
}

std::span<const std::vector<double>> held_out_of(const ProfileCalibrationReport& report, bool are_machines) {
  const std::span<const std::vector<double>> all = report.fit->held_out;
  return are_machines ? all.subspan(report.by_table.size(), report.by_machine.size())
                      : all.subspan(0, report.by_table.size());
}

std::vector<std::string> medians_row(std::string name, const std::array<double, 3>& medians) {
  return {std::move(name), percent_text(medians[0]), percent_text(medians[1]), percent_text(medians[2])};
}

/// Medians by band: of all runs before and after, and of what was left out.
Table errors_table(const ProfileCalibrationReport& report) {
  Table table;
  table.add_column("median error (%)", "", Table::Align::left);
  for (const SizeBand& band : size_bands) table.add_column(band.name);
  const auto all = all_runs(*report.tables);
  table.add_row(medians_row("as given", band_medians(*report.tables, all, report.fit->before)));
  table.add_row(medians_row("fitted", band_medians(*report.tables, all, report.fit->after)));
  for (const bool are_machines : {false, true}) {
    const auto& parts = are_machines ? report.by_machine : report.by_table;
    if (parts.empty()) continue;
    const auto predicted = held_out_of(report, are_machines);
    const auto [runs, times] = joined(parts, predicted);
    const std::string what = are_machines ? "machine" : "table";
    table.add_row(
        medians_row(fmt::format("each {} by a fit without it", what), band_medians(*report.tables, runs, times)));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      table.add_row(
          medians_row("  without " + parts[i].name, band_medians(*report.tables, parts[i].runs, predicted[i])));
    }
  }
  return table;
}

std::string held_text(const ProfileCalibrationReport& report) {
  std::string text;
  const auto values = profile::values_of(*report.given);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (report.fit->values[i].state == compare::ParameterState::fitted) continue;
    text += (text.empty() ? "" : ", ") + values[i].name;
  }
  return text.empty() ? text : "# held as given, the runs do not tell them: " + text + "\n";
}

std::string outliers_of(const ProfileCalibrationReport& report) {
  constexpr double poor = 0.4;
  constexpr std::size_t shown = 8;
  std::string text;
  std::size_t count = 0;
  for (std::size_t i = 0; i < report.tables->rows().size(); ++i) {
    const ProfileRow& row = report.tables->rows()[i];
    if (report.fit->weights[i] >= poor || ++count > shown) continue;
    text += fmt::format("# does not fit in: {} B of {} in {}, by {}/{}: measured {:.2f} us, predicted {:.2f} us\n",
                        row.size.count, row.collective, report.tables->file_of(row.table), row.planner,
                        sim::to_string(row.protocol), row.seconds * 1e6, report.fit->after[i] * 1e6);
  }
  if (count > shown) text += fmt::format("# ... and {} more\n", count - shown);
  return text;
}

std::size_t launch_bound_count(const ProfileCalibration& tables) {
  return static_cast<std::size_t>(
      std::ranges::count_if(tables.rows(), [](const ProfileRow& row) { return row.is_launch_bound; }));
}

std::vector<std::string> files_of(const ProfileCalibration& tables) {
  std::vector<std::string> files;
  for (const compare::HoldOutPart& part : tables.parts_by_table()) files.push_back(part.name);
  return files;
}

}  // namespace

Table profile_values_table(const ProfileCalibrationReport& report) {
  Table table;
  table.add_column("value", "", Table::Align::left);
  table.add_column("given");
  table.add_column("fitted");
  table.add_column("95 % within", "(+-%)");
  const auto values = profile::values_of(*report.given);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const compare::FittedValue& fitted = report.fit->values[i];
    if (fitted.state != compare::ParameterState::fitted) continue;
    table.add_row({values[i].name, profile::format_value(values[i].kind, fitted.given),
                   profile::format_value(values[i].kind, fitted.value),
                   fmt::format("{:.0f}", 100 * std::expm1(two_sided * fitted.standard_error))});
  }
  return table;
}

std::string profile_calibration_text(const ProfileCalibrationReport& report) {
  std::string text = fmt::format("# {}  calibrated from {}: {}, {} of them launch-bound\n#\n", report.given->name,
                                 fmt::join(files_of(*report.tables), ", "),
                                 counted(report.tables->rows().size(), "row"), launch_bound_count(*report.tables));
  text += profile_values_table(report).text() + "#\n" + held_text(report) + "#\n";
  text += errors_table(report).text() + "#\n" + outliers_of(report);
  if (!report.fit->converged) text += "# the fit did not settle\n";
  return text;
}

nlohmann::ordered_json profile_calibration_json(const ProfileCalibrationReport& report) {
  nlohmann::ordered_json document = {{"schema", "espalier/profile-calibration/1"},
                                     {"profile", report.given->name},
                                     {"from", files_of(*report.tables)},
                                     {"rows", report.tables->rows().size()},
                                     {"launch_bound", launch_bound_count(*report.tables)},
                                     {"converged", report.fit->converged}};
  document["values"] = nlohmann::ordered_json::array();
  const auto values = profile::values_of(*report.given);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const compare::FittedValue& fitted = report.fit->values[i];
    document["values"].push_back({{"name", values[i].name},
                                  {"given", fitted.given},
                                  {"value", fitted.value},
                                  {"state", to_string(fitted.state)},
                                  {"standard_error", fitted.standard_error}});
  }
  const auto medians = [&](std::span<const std::size_t> runs, std::span<const double> predicted) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const double median : band_medians(*report.tables, runs, predicted)) {
      list.push_back(median < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(median));
    }
    return list;
  };
  const auto all = all_runs(*report.tables);
  document["errors"] = {{"given", medians(all, report.fit->before)}, {"fitted", medians(all, report.fit->after)}};
  document["held_out"] = nlohmann::ordered_json::array();
  for (const bool are_machines : {false, true}) {
    const auto& parts = are_machines ? report.by_machine : report.by_table;
    const auto predicted = held_out_of(report, are_machines);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      document["held_out"].push_back({{"kind", are_machines ? "machine" : "table"},
                                      {"name", parts[i].name},
                                      {"errors", medians(parts[i].runs, predicted[i])}});
    }
  }
  document["runs"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < report.tables->rows().size(); ++i) {
    const ProfileRow& row = report.tables->rows()[i];
    document["runs"].push_back({{"file", report.tables->file_of(row.table)},
                                {"collective", row.collective},
                                {"size", row.size.count},
                                {"algorithm", fmt::format("{}/{}", row.planner, sim::to_string(row.protocol))},
                                {"measured", row.seconds},
                                {"before", report.fit->before[i]},
                                {"after", report.fit->after[i]},
                                {"weight", report.fit->weights[i]},
                                {"launch_bound", row.is_launch_bound}});
  }
  return document;
}

std::string calibrated_profile_yaml(const ProfileCalibrationReport& report) {
  std::vector<std::string> comments = {"Calibrated by espalier calibrate from:"};
  for (const std::string& file : files_of(*report.tables)) comments.push_back("  " + printable_line(file));
  comments.emplace_back("Fitted values, and within what 95 % of them would lie; all others are as they were given:");
  const auto values = profile::values_of(*report.given);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const compare::FittedValue& fitted = report.fit->values[i];
    if (fitted.state != compare::ParameterState::fitted) continue;
    comments.push_back(fmt::format("  {}: {} +- {:.0f} %", printable_line(values[i].name),
                                   profile::format_value(values[i].kind, fitted.value),
                                   100 * std::expm1(two_sided * fitted.standard_error)));
  }
  return profile::profile_yaml(*report.fitted, comments);
}

}  // namespace espalier::cli
