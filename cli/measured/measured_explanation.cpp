#include "cli/measured/measured_explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/counted.h"
#include "base/format_units.h"
#include "cli/flags/flag_values.h"
#include "cli/reports/describe_bound.h"
#include "schedule/parts.h"

namespace espalier::cli {
namespace {

constexpr double min_part_shown = 0.0005;  ///< What prints as 0.1 %.

double part_reached(const MeasuredExplanation& of, const MeasuredCall& call) {
  return part_of_bound(of.bound.time_per_byte, of.collective, call.size, size_of(usual_type), call.seconds);
}

double busbw_of(const MeasuredExplanation& of, const MeasuredCall& call) {
  return static_cast<double>(call.size.count) / call.seconds * to_double(of.collective.busbw_factor());
}

double unexplained_of(const MeasuredCall& call) { return call.predicted ? call.seconds - *call.predicted : 0; }

std::string signed_percent(double part) { return fmt::format("{:+.1f}", 100 * part); }

/// The uses that columns are for; all others are counted together.
constexpr std::array column_uses = {sim::PathUse::launch,   sim::PathUse::latency,  sim::PathUse::moving,
                                    sim::PathUse::queueing, sim::PathUse::reducing, sim::PathUse::overhead};
constexpr std::array column_names = {"launch", "latency", "moving", "queueing", "reducing", "messages"};

double part_with(const MeasuredCall& call, sim::PathUse use) {
  double seconds = 0;
  for (const sim::PathTime& time : call.path) seconds += time.use == use ? time.time.seconds() : 0;
  return seconds / call.seconds;
}

double part_of_others(const MeasuredCall& call) {
  double seconds = 0;
  for (const sim::PathTime& time : call.path) {
    if (std::ranges::find(column_uses, time.use) == column_uses.end()) seconds += time.time.seconds();
  }
  return seconds / call.seconds;
}

std::string time_text(double seconds) {
  return format_duration({static_cast<std::int64_t>(seconds * static_cast<double>(picoseconds_per_second))});
}

/// What a use of a path is in people's words, where it is not the moving of bytes.
std::string words_of(sim::PathUse use) {
  switch (use) {
    case sim::PathUse::launch: return "starting the call";
    case sim::PathUse::latency: return "latency: the way from rank to rank, once a hop";
    case sim::PathUse::reducing: return "adding what came in";
    case sim::PathUse::overhead: return "handling messages";
    default: return std::string(to_string(use));
  }
}

/// "Why busbw 460.21 and not 900.00 GB/s at 8 GiB", and a line for each reason.
std::string why_text(const MeasuredExplanation& of, const MeasuredCall& call) {
  if (call.factors.empty()) return {};
  const auto algbw = algbw_of(of.bound.time_per_byte);
  std::string text = fmt::format(
      "Why busbw {} and not {} GB/s at {}:\n", gigabytes_per_second(busbw_of(of, call)),
      gigabytes_per_second(algbw ? std::optional(*algbw * to_double(of.collective.busbw_factor())) : std::nullopt),
      format_size(call.size));
  for (std::size_t i = 0; i < call.factors.size(); ++i) {
    const TimeFactor& factor = call.factors[i];
    if (i > 0 && std::abs(factor.seconds) < min_part_shown * call.seconds) continue;
    const char sign = factor.seconds < 0 ? '-' : i > 0 ? '+' : ' ';
    text += fmt::format("  {} {:>9}  {}\n", sign, time_text(std::abs(factor.seconds)), factor.why);
  }
  return text + fmt::format("  = {:>9}  measured\n", time_text(call.seconds));
}

std::string path_of_call(const MeasuredExplanation& of, const MeasuredCall& call) {
  std::string text =
      fmt::format("Measured at {}: {}, busbw {} GB/s, {} % of the limit\n", format_size(call.size),
                  time_text(call.seconds), gigabytes_per_second(busbw_of(of, call)), percent(part_reached(of, call)));
  if (call.predicted) text += fmt::format("  Simulated with {}: {}\n", call.by, time_text(*call.predicted));
  text += fmt::format("  What the last byte waited for, in {}{}:\n", counted(call.steps, "step"),
                      call.predicted ? " of the simulation" : "");
  Table table;
  table.add_column("of the time", "(%)");
  table.add_column("time");
  table.add_column("went into", "", Table::Align::left);
  table.add_column("most of it at", "", Table::Align::left);
  for (const sim::PathTime& share : call.path) {
    const double part = share.time.seconds() / call.seconds;
    if (part < min_part_shown) continue;
    table.add_row({percent(part), format_duration(share.time), fmt::format("{} {}", to_string(share.use), share.where),
                   fmt::format("{} ({})", share.max_at, format_duration(share.max_time))});
  }
  if (const double rest = unexplained_of(call); rest != 0) {
    table.add_row({percent(rest / call.seconds), (rest < 0 ? "-" : "") + time_text(std::abs(rest)),
                   rest < 0 ? "nothing: less than simulated" : "what is not simulated", ""});
  }
  return text + table.text("    ") + why_text(of, call);
}

}  // namespace

std::vector<TimeFactor> factors_of(const MeasuredCall& call, double bound_seconds,
                                   const std::optional<CarriedBytes>& carried) {
  std::vector<TimeFactor> factors = {{bound_seconds, "the bound: each link counts once, at its nominal rate"}};
  double bytes = bound_seconds;  // What links need for them.
  if (carried) {
    const double reached = carried->bound_seconds > 0 ? bound_seconds / carried->bound_seconds : 1;
    factors.push_back({carried->bound_seconds - bytes,
                       fmt::format("{} reaches {} % of that on these links", call.by, percent(reached))});
    bytes = carried->bound_seconds / carried->payload;
    factors.push_back({bytes - carried->bound_seconds,
                       fmt::format("of what links carry {} % is data, the rest flags", percent(carried->payload))});
  }
  double moving = 0;
  std::vector<TimeFactor> others;
  std::map<sim::PathUse, double> by_use;
  for (const sim::PathTime& time : call.path) {
    const bool is_moving = time.use == sim::PathUse::moving || time.use == sim::PathUse::queueing;
    (is_moving ? moving : by_use[time.use]) += time.time.seconds();
  }
  factors.push_back({moving - bytes, moving < bytes ? "less than that is on the way of the last byte"
                                                    : "what its steps move beyond the bound, and waiting for turns"});
  for (const auto& [use, seconds] : by_use) factors.push_back({seconds, words_of(use)});
  double sum = 0;
  for (const TimeFactor& factor : factors) sum += factor.seconds;
  factors.push_back({call.seconds - sum, call.predicted ? "what is not simulated" : "what no span tells"});
  return factors;
}

Table measured_table(const MeasuredExplanation& of) {
  Table table;
  table.add_column("size", "(B)");
  table.add_column("measured", "(us)");
  table.add_column("limit", "(%)");
  std::vector<std::size_t> shown;
  for (std::size_t i = 0; i < column_uses.size(); ++i) {
    const auto matters = [&](const MeasuredCall& call) { return part_with(call, column_uses[i]) >= min_part_shown; };
    if (!std::ranges::any_of(of.calls, matters)) continue;
    shown.push_back(i);
    table.add_column(column_names[i], "(%)");
  }
  const bool has_others =
      std::ranges::any_of(of.calls, [](const MeasuredCall& call) { return part_of_others(call) >= min_part_shown; });
  if (has_others) table.add_column("other", "(%)");
  const bool is_predicted = !of.profile.empty();
  if (is_predicted) table.add_column("unexplained", "(%)");
  table.add_column("by", "", Table::Align::left);
  for (const MeasuredCall& call : of.calls) {
    std::vector<std::string> cells{std::to_string(call.size.count), fmt::format("{:.2f}", call.seconds * 1e6),
                                   percent(part_reached(of, call))};
    for (const std::size_t i : shown) cells.push_back(percent(part_with(call, column_uses[i])));
    if (has_others) cells.push_back(percent(part_of_others(call)));
    if (is_predicted) cells.push_back(signed_percent(unexplained_of(call) / call.seconds));
    cells.push_back(call.by);
    table.add_row(std::move(cells));
  }
  return table;
}

std::string measured_text(const MeasuredExplanation& of) {
  std::string text = of.first_line.empty() ? "" : of.first_line + "\n";
  text += fmt::format("{}: {} of {}{}, measured in {}{}\n", of.topology->name(), to_string(of.collective.kind),
                      counted(of.collective.rank_count, "rank"),
                      of.collective.root.is_none() ? "" : ", root " + of.topology->rank_name(of.collective.root),
                      of.file, of.profile.empty() ? "" : ", profile " + of.profile);
  const auto algbw = algbw_of(of.bound.time_per_byte);
  text += fmt::format(
      "The limit: busbw {} GB/s{}\n\n",
      gigabytes_per_second(algbw ? std::optional(*algbw * to_double(of.collective.busbw_factor())) : std::nullopt),
      floor_mark(of.bound));
  if (of.calls.size() == 1) return text + path_of_call(of, of.calls.front());
  text += "What the last byte waited for, in parts of the measured time:\n" + measured_table(of).text("  ");
  return text +
         "  unexplained: what was measured less what is simulated; launch, latency and all others are the "
         "simulation's.\n"
         "  -s SIZE shows one of these in full.\n" +
         why_text(of, of.calls.back());
}

nlohmann::ordered_json measured_json(const MeasuredExplanation& of) {
  using Json = nlohmann::ordered_json;
  Json document = {{"schema", "espalier/explain-measured/1"},
                   {"topology", of.topology->name()},
                   {"collective", to_string(of.collective.kind)},
                   {"ranks", of.collective.rank_count},
                   {"measured", of.file},
                   {"profile", of.profile.empty() ? Json() : Json(of.profile)},
                   {"verdict", of.verdict},
                   {"bound", bound_json(of.bound, of.collective, *of.topology)},
                   {"sizes", Json::array()}};
  for (const MeasuredCall& call : of.calls) {
    Json row = {{"size", call.size.count},
                {"time", call.seconds},
                {"busbw", busbw_of(of, call)},
                {"of_bound", part_reached(of, call)},
                {"by", call.by},
                {"simulated", call.predicted ? Json(*call.predicted) : Json()},
                {"steps", call.steps},
                {"path", Json::array()}};
    for (const sim::PathTime& share : call.path) {
      row["path"].push_back({{"use", to_string(share.use)},
                             {"on", share.where},
                             {"time", share.time.seconds()},
                             {"most_at", share.max_at},
                             {"most_time", share.max_time.seconds()}});
    }
    row["factors"] = Json::array();
    for (const TimeFactor& factor : call.factors) {
      row["factors"].push_back({{"time", factor.seconds}, {"why", factor.why}});
    }
    document["sizes"].push_back(std::move(row));
  }
  return document;
}

}  // namespace espalier::cli
