#include "cli/reports/job_limits_output.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/format_units.h"
#include "cli/reports/describe_bound.h"
#include "sim/core/utilisation.h"

namespace espalier::cli {
namespace {

using scenario::JobImprovement;
using scenario::JobLimits;
using scenario::JobShare;
using scenario::JobUse;
using scenario::JobWait;
using scenario::Scenario;

constexpr double min_shown = 0.0005;

double part_of(Picoseconds time, Picoseconds whole) {
  return static_cast<double>(time.count) / static_cast<double>(std::max<std::int64_t>(whole.count, 1));
}

std::string path_text(const JobLimits& limits) {
  Table table;
  table.add_column("of the time", "(%)");
  table.add_column("time");
  table.add_column("went into", "", Table::Align::left);
  table.add_column("most of it at", "", Table::Align::left);
  for (const JobShare& share : limits.path) {
    const double part = part_of(share.time, limits.report.elapsed);
    if (part < min_shown) continue;
    table.add_row({percent(part), format_duration(share.time), share.text(),
                   fmt::format("{} ({})", share.max_at, format_duration(share.max_time))});
  }
  return fmt::format("What the end waited for, in {} step{}:\n{}", limits.steps, limits.steps == 1 ? "" : "s",
                     table.text("    "));
}

std::string wait_place(const Scenario& scenario, const JobWait& wait) {
  return wait.link.is_none() ? scenario.topology.node(wait.node).id : scenario.topology.link_name(wait.link);
}

std::string name_behind(const Scenario& scenario, const JobWait& wait) {
  if (wait.is_own) return "itself";
  return wait.behind.is_none() ? "the background" : scenario.job.label(wait.behind);
}

/// Who was in the way of whom, by link, most first.
std::string waits_text(const Scenario& scenario, const JobLimits& limits) {
  struct Place {
    std::string name;
    std::string of;
    Picoseconds time;
    std::vector<std::string> behind;
  };
  std::vector<Place> places;
  for (const JobWait& wait : limits.waits) {
    if (part_of(wait.time, limits.report.elapsed) < min_shown) continue;
    const std::string name = wait_place(scenario, wait);
    const std::string of = scenario.job.label(wait.of);
    auto place = std::ranges::find_if(places, [&](const Place& known) { return known.name == name && known.of == of; });
    if (place == places.end()) place = places.insert(places.end(), {name, of, {}, {}});
    place->time.count += wait.time.count;
    place->behind.push_back(fmt::format("{} ({})", name_behind(scenario, wait), format_duration(wait.time)));
  }
  std::ranges::stable_sort(places, [](const Place& a, const Place& b) { return a.time > b.time; });
  const bool is_fair = scenario.settings.model == sim::ModelKind::fair;
  std::string text;
  for (std::size_t i = 0; i < places.size() && i < shown_links; ++i) {
    text += fmt::format("  {} {} {} {} {}.\n", is_fair ? "Over" : "At", places[i].name, places[i].of,
                        is_fair ? "shared with" : "waited for", fmt::join(places[i].behind, ", "));
  }
  return text;
}

/// Links busy for more than 90 % of the time, parallel ones as one, busiest first.
std::vector<sim::LinkShare> full_links(const Scenario& scenario, const JobLimits& limits) {
  constexpr double nearly_always = 0.9;
  std::vector<sim::LinkShare> full =
      sim::busiest_links(limits.report.links, limits.report.elapsed, scenario.topology, scenario.topology.link_count());
  std::erase_if(full, [](const sim::LinkShare& link) { return link.share <= nearly_always; });
  return full;
}

std::string full_links_text(const Scenario& scenario, const JobLimits& limits) {
  const std::vector<sim::LinkShare> full = full_links(scenario, limits);
  if (full.empty()) return "  No link is busy for more than 90 % of the time.\n";
  std::vector<std::string> names;
  names.reserve(full.size());
  for (const sim::LinkShare& link : full) names.push_back(fmt::format("{} {} %", link.name, percent(link.share)));
  return fmt::format("  Busy for more than 90 % of the time: {} link{} ({}).\n", full.size(),
                     full.size() == 1 ? "" : "s", first_names(names, shown_links));
}

std::string improvements_text(const JobLimits& limits) {
  Table table;
  table.add_column("saves", "(%)");
  table.add_column("time");
  table.add_column("with", "", Table::Align::left);
  std::vector<std::string> useless;
  bool is_any = false;
  for (const JobImprovement& improvement : limits.improvements) {
    const double saved = 1 - part_of(improvement.elapsed, limits.report.elapsed);
    if (saved < min_shown) {
      useless.push_back(improvement.change);
      continue;
    }
    is_any = true;
    table.add_row({percent(saved), format_duration(improvement.elapsed), improvement.change});
  }
  std::string text = "What one change would save, planned and simulated anew:\n";
  if (is_any) text += table.text("    ");
  constexpr std::size_t max_shown = 8;
  if (!useless.empty()) text += fmt::format("  Nothing: {}.\n", first_names(useless, max_shown, "; "));
  return limits.improvements.empty() ? std::string() : text;
}

}  // namespace

std::string job_limits_text(const Scenario& scenario, const JobLimits& limits, const std::string& profile) {
  return fmt::format("{} on {}: {} (model {}{})\n\n", scenario.name, scenario.topology.name(),
                     format_duration(limits.report.elapsed), sim::to_string(scenario.settings.model),
                     profile.empty() ? "" : ", profile " + profile) +
         path_text(limits) + waits_text(scenario, limits) + full_links_text(scenario, limits) + "\n" +
         improvements_text(limits);
}

Table job_improvements_table(const JobLimits& limits) {
  Table table;
  table.add_column("change", "", Table::Align::left);
  table.add_column("time", "(us)");
  table.add_column("saves", "(%)");
  for (const JobImprovement& improvement : limits.improvements) {
    table.add_row({improvement.change, fmt::format("{:.2f}", improvement.elapsed.seconds() * 1e6),
                   percent(1 - part_of(improvement.elapsed, limits.report.elapsed))});
  }
  return table;
}

nlohmann::ordered_json job_limits_json(const Scenario& scenario, const JobLimits& limits, const std::string& profile) {
  nlohmann::ordered_json document = {
      {"schema", "espalier/explain-scenario/1"},    {"scenario", scenario.name},
      {"topology", scenario.topology.name()},       {"model", sim::to_string(scenario.settings.model)},
      {"elapsed", limits.report.elapsed.seconds()}, {"steps", limits.steps}};
  if (!profile.empty()) document["profile"] = profile;
  auto& path = document["path"] = nlohmann::ordered_json::array();
  for (const JobShare& share : limits.path) {
    path.push_back({{"use", share.use == JobUse::call ? to_string(share.inside) : to_string(share.use)},
                    {"of", share.what},
                    {"on", share.where},
                    {"time", share.time.seconds()},
                    {"most_at", share.max_at},
                    {"most_time", share.max_time.seconds()}});
  }
  auto& waits = document["waits"] = nlohmann::ordered_json::array();
  for (const JobWait& wait : limits.waits) {
    waits.push_back({{"at", wait_place(scenario, wait)},
                     {"of", scenario.job.label(wait.of)},
                     {"behind", name_behind(scenario, wait)},
                     {"time", wait.time.seconds()}});
  }
  auto& full = document["full_links"] = nlohmann::ordered_json::array();
  for (const sim::LinkShare& link : full_links(scenario, limits)) {
    full.push_back({{"link", link.name}, {"busy", link.share}, {"links", link.links}});
  }
  auto& improvements = document["improvements"] = nlohmann::ordered_json::array();
  for (const JobImprovement& improvement : limits.improvements) {
    improvements.push_back({{"change", improvement.change},
                            {"time", improvement.elapsed.seconds()},
                            {"saved", (limits.report.elapsed - improvement.elapsed).seconds()}});
  }
  return document;
}

}  // namespace espalier::cli
