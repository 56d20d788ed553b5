#include "cli/reports/doctor_output.h"

#include <fmt/format.h>

#include <algorithm>

namespace espalier::cli {

std::string doctor_text(const std::vector<engine::doctor::Check>& checks) {
  Table table;
  table.add_column("check", "", Table::Align::left);
  table.add_column("state", "", Table::Align::left);
  table.add_column("found", "", Table::Align::left);
  for (const engine::doctor::Check& check : checks) {
    const std::string_view needed =
        check.is_needed && check.state == engine::doctor::CheckState::missing ? ", needed" : "";
    table.add_row({check.name, fmt::format("{}{}", to_string(check.state), needed), check.found});
    if (!check.hint.empty()) table.add_row({"", "", "-> " + check.hint});
  }
  const auto count = [&](engine::doctor::CheckState state) {
    return std::ranges::count_if(checks, [state](const engine::doctor::Check& check) { return check.state == state; });
  };
  return table.text() +
         fmt::format("{}: {} ok, {} warn, {} missing\n",
                     engine::doctor::can_run_engine(checks) ? "the engine runs here" : "the engine does not run here",
                     count(engine::doctor::CheckState::ok), count(engine::doctor::CheckState::warn),
                     count(engine::doctor::CheckState::missing));
}

Table doctor_table(const std::vector<engine::doctor::Check>& checks) {
  Table table;
  for (const char* title : {"check", "state", "needed", "found", "fix"}) {
    table.add_column(title, "", Table::Align::left);
  }
  for (const engine::doctor::Check& check : checks) {
    table.add_row(
        {check.name, std::string(to_string(check.state)), check.is_needed ? "yes" : "no", check.found, check.hint});
  }
  return table;
}

nlohmann::ordered_json doctor_json(const std::vector<engine::doctor::Check>& checks) {
  nlohmann::ordered_json entries = nlohmann::ordered_json::array();
  for (const engine::doctor::Check& check : checks) {
    entries.push_back({{"check", check.name},
                       {"state", to_string(check.state)},
                       {"needed", check.is_needed},
                       {"found", check.found},
                       {"hint", check.hint}});
  }
  return {
      {"schema", "espalier/doctor/1"}, {"engine_runs", engine::doctor::can_run_engine(checks)}, {"checks", entries}};
}

}  // namespace espalier::cli
