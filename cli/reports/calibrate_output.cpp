#include "cli/reports/calibrate_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/counted.h"
#include "base/format_units.h"
#include "base/printable.h"
#include "cli/reports/compare_output.h"
#include "topology/yaml/write_topology.h"

namespace espalier::cli {
namespace {

constexpr double poor_weight = 0.4;
constexpr std::size_t shown_outliers = 6;
constexpr double confidence = 1.96;  // standard deviations around 95 % of a normal distribution

std::string finite_percent(double share) { return std::isfinite(share) ? fmt::format("{:.1f}", 100 * share) : "inf"; }

std::string spread(const compare::FittedParameter& parameter) {
  if (parameter.standard_error <= 0) return "";
  return finite_percent(std::expm1(confidence * parameter.standard_error));
}

std::string summary(const compare::ErrorSummary& errors) {
  return fmt::format("median {} %, p90 {} %, worst {} %", finite_percent(errors.median), finite_percent(errors.p90),
                     finite_percent(errors.worst));
}

std::string header_text(const CalibrationReport& report) {
  return fmt::format("# {}  calibrated from {}: {}\n#\n", report.topology->name(), fmt::join(report.files, ", "),
                     counted(report.runs->runs.size(), "run"));
}

std::string names(const compare::Ambiguity& ambiguity, const compare::Calibration& calibration) {
  std::string text;
  for (const std::size_t i : ambiguity.parameters) {
    text += (text.empty() ? "" : " and ") + calibration.parameters[i].parameter.name();
  }
  return text;
}

std::string ambiguities_text(const compare::Calibration& calibration) {
  std::string text;
  for (const compare::Ambiguity& ambiguity : calibration.ambiguities) {
    text += fmt::format("# {} {}: {}\n",
                        ambiguity.parameters.size() == 1 ? "the runs do not tell" : "the runs do not tell apart",
                        names(ambiguity, calibration), ambiguity.action);
  }
  return text.empty() ? text : "#\n" + text;
}

std::string hold_out_text(const compare::HoldOut& hold_out) {
  if (!hold_out.is_asked_for) return "not asked for (--hold-out 0)";
  if (hold_out.parts == 0) return "too few runs to leave any out";
  if (hold_out.parts == hold_out.runs) return summary(hold_out.errors) + " (each run predicted by a fit without it)";
  return fmt::format("{} (runs dealt into {} parts, each predicted by a fit without it)", summary(hold_out.errors),
                     hold_out.parts);
}

std::string outliers_text(const CalibrationReport& report) {
  std::string text;
  std::size_t count = 0;
  for (std::size_t i = 0; i < report.runs->runs.size(); ++i) {
    if (report.calibration->weights[i] >= poor_weight || ++count > shown_outliers) continue;
    const CalibrationRun& run = report.runs->runs[i];
    text += fmt::format("# does not fit in: {}: measured {:.2f} us, predicted {:.2f} us\n", run.label,
                        run.seconds * 1e6, report.calibration->after[i] * 1e6);
  }
  if (count > shown_outliers) text += fmt::format("# ... and {} more\n", count - shown_outliers);
  return text;
}

/// What the runs told of links is measured; of what was held, the runs say nothing.
std::vector<ProvenanceRow> measured_values(const CalibrationReport& report) {
  const std::string source =
      fmt::format("{} ({})", fmt::join(report.files, ", "), counted(report.runs->runs.size(), "run"));
  std::set<ProvenanceRow> rows;
  for (const compare::FittedParameter& fitted : report.calibration->parameters) {
    const bool is_bandwidth = fitted.parameter.kind == compare::ParameterKind::bandwidth;
    const bool is_latency = fitted.parameter.kind == compare::ParameterKind::latency;
    if (fitted.state == compare::ParameterState::held || (!is_bandwidth && !is_latency)) continue;
    for (const LinkId id : fitted.parameter.links) {
      const Link& link = report.calibration->topology.link(id);
      rows.insert({link.link_class, is_bandwidth ? "bandwidth" : "latency",
                   is_bandwidth ? format_bandwidth(link.nominal) : format_latency(link.latency), Origin::measured,
                   printable_line(source)});
    }
  }
  return {rows.begin(), rows.end()};
}

}  // namespace

Table parameters_table(const compare::Calibration& calibration) {
  Table table;
  table.add_column("parameter", "", Table::Align::left);
  table.add_column("of", "", Table::Align::left);
  table.add_column("given");
  table.add_column("fitted");
  table.add_column("95 % within", "(+-%)");
  table.add_column("state", "", Table::Align::left);
  for (const compare::FittedParameter& fitted : calibration.parameters) {
    const compare::Parameter& parameter = fitted.parameter;
    table.add_row({std::string(to_string(parameter.kind)), parameter.group,
                   compare::format_parameter(parameter.kind, parameter.given),
                   compare::format_parameter(parameter.kind, fitted.value), spread(fitted),
                   std::string(to_string(fitted.state))});
  }
  return table;
}

std::string calibration_text(const CalibrationReport& report) {
  const compare::Calibration& calibration = *report.calibration;
  std::string text = header_text(report) + parameters_table(calibration).text() + ambiguities_text(calibration) + "#\n";
  text += "# error before: " + summary(calibration.errors_before) + "\n";
  text += "# error after:  " + summary(calibration.errors_after) + "\n";
  text += "# hold-out:     " + hold_out_text(calibration.hold_out) + "\n";
  text += fmt::format("# condition:    {:.3g} among what was fitted{}\n", calibration.condition,
                      calibration.converged ? "" : "; the fit did not settle");
  text += outliers_text(report);
  for (const std::string& note : report.runs->notes) text += "# note: " + note + "\n";
  return text;
}

nlohmann::ordered_json calibration_json(const CalibrationReport& report) {
  const compare::Calibration& calibration = *report.calibration;
  nlohmann::ordered_json document = {
      {"schema", "espalier/calibration/1"}, {"topology", report.topology->name()}, {"from", report.files}};
  document["parameters"] = nlohmann::ordered_json::array();
  for (const compare::FittedParameter& fitted : calibration.parameters) {
    document["parameters"].push_back({{"kind", to_string(fitted.parameter.kind)},
                                      {"of", fitted.parameter.group},
                                      {"given", fitted.parameter.given},
                                      {"value", fitted.value},
                                      {"state", to_string(fitted.state)},
                                      {"standard_error", fitted.standard_error}});
  }
  document["ambiguities"] = nlohmann::ordered_json::array();
  for (const compare::Ambiguity& ambiguity : calibration.ambiguities) {
    nlohmann::ordered_json involved = nlohmann::ordered_json::array();
    for (const std::size_t i : ambiguity.parameters) involved.push_back(calibration.parameters[i].parameter.name());
    document["ambiguities"].push_back({{"parameters", involved}, {"action", ambiguity.action}});
  }
  document["errors"] = {{"before", errors_json(calibration.errors_before)},
                        {"after", errors_json(calibration.errors_after)}};
  if (calibration.hold_out.parts > 0) {
    document["errors"]["hold_out"] = errors_json(calibration.hold_out.errors);
    document["hold_out_every"] = calibration.hold_out.parts;
  }
  document["condition"] = calibration.condition;
  document["converged"] = calibration.converged;
  document["runs"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < report.runs->runs.size(); ++i) {
    const CalibrationRun& run = report.runs->runs[i];
    document["runs"].push_back({{"run", run.label},
                                {"size", run.size.count},
                                {"chunk", run.chunk.count},
                                {"measured", run.seconds},
                                {"before", calibration.before[i]},
                                {"after", calibration.after[i]},
                                {"error", compare::relative_error(calibration.after[i], run.seconds)},
                                {"weight", calibration.weights[i]}});
  }
  document["notes"] = report.runs->notes;
  return document;
}

std::string calibrated_yaml(const CalibrationReport& report) {
  const compare::Calibration& calibration = *report.calibration;
  // A name cannot end a comment: control characters do not get in.
  const auto line = [](std::string text) {
    std::ranges::replace_if(
        text, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
    return "# " + text + "\n";
  };
  std::string text = line(fmt::format("{}, calibrated by espalier calibrate from {} ({})", report.topology->name(),
                                      fmt::join(report.files, ", "), counted(report.runs->runs.size(), "run")));
  for (const compare::FittedParameter& fitted : calibration.parameters) {
    const compare::Parameter& parameter = fitted.parameter;
    std::string words =
        fmt::format("{}: {}", parameter.name(), compare::format_parameter(parameter.kind, fitted.value));
    if (fitted.state == compare::ParameterState::held) {
      words += ", not told by the runs";
    } else {
      words += fmt::format(", was {}", compare::format_parameter(parameter.kind, parameter.given));
      if (fitted.standard_error > 0) words += fmt::format(", 95 % within +-{} %", spread(fitted));
      if (fitted.state == compare::ParameterState::joint) words += ", jointly";
    }
    text += line(words);
  }
  text += line("error: " + summary(calibration.errors_after) + "; before: " + summary(calibration.errors_before));
  text += line("hold-out: " + hold_out_text(calibration.hold_out));
  return text + write_topology(calibration.topology, measured_values(report));
}

}  // namespace espalier::cli
