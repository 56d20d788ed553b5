#include "cli/ranks/probe_output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>

#include "base/counted.h"
#include "base/format_units.h"

namespace espalier::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string rate_cell(double rate) { return fmt::format("{:.2f}", rate * 1e-9); }
std::string latency_cell(double time) { return time > 0 ? fmt::format("{:.1f}", time * 1e6) : ""; }
std::string probe_duration(double seconds) { return format_duration(Picoseconds(std::llround(seconds * 1e12))); }

std::string transports_text(const ProbeRun& run) {
  std::set<std::string> names;
  for (const PeerTransport& peer : run.transports) names.insert(peer.transport);
  return fmt::format("{}", fmt::join(names, ", "));
}

Table kinds_table(const probe::Findings& findings) {
  Table table;
  table.add_column("pairs over", "", Table::Align::left);
  table.add_column("pairs");
  table.add_column("described", "(GB/s)");
  table.add_column("measured", "(GB/s)");
  table.add_column("from", "(GB/s)");
  table.add_column("to", "(GB/s)");
  table.add_column("latency", "(us)");
  for (const probe::KindFinding& kind : findings.kinds()) {
    table.add_row({kind.kind.substr(0, kind.kind.rfind(',')), std::to_string(kind.flows), rate_cell(kind.described),
                   rate_cell(kind.rate), rate_cell(kind.slowest), rate_cell(kind.fastest), latency_cell(kind.latency)});
  }
  return table;
}

std::string probe_suspect_text(const ProbeReport& report, const probe::Suspect& suspect) {
  std::string text =
      fmt::format("suspect: {} at {:.0f} % of others of its kind", suspect.parts.front(), 100 * suspect.left);
  text += suspect.is_confirmed ? ", in every round\n" : ", in one round\n";
  if (suspect.parts.size() > 1) {
    text += fmt::format("  no pair of ranks tells it from {}\n", fmt::join(std::span(suspect.parts).subspan(1), ", "));
  }
  for (const std::uint32_t index : suspect.flows) {
    const probe::MeasuredFlow& flow = report.plan->findings().flows()[index];
    const probe::PairPath& path = report.plan->paths()[flow.path];
    text +=
        fmt::format("  {} to {}: {} of {} GB/s, round {}\n", report.topology->rank_name(path.from),
                    report.topology->rank_name(path.to), rate_cell(flow.result.rate),
                    rate_cell(path.rate * report.plan->findings().usual_part(path.kind).value_or(1)), flow.round + 1);
  }
  return text;
}

/// Bytes that each rank sends in the rounds that are run whatever they give.
std::map<std::uint32_t, std::int64_t> bytes_by_rank(const ProbeForecast& forecast) {
  std::map<std::uint32_t, std::int64_t> bytes;
  for (const probe::Round& round : forecast.plan->first_rounds()) {
    for (const std::uint32_t index : round) {
      bytes[forecast.plan->paths()[index].from.value()] += (forecast.transfers + 1) * forecast.size.count;
    }
  }
  return bytes;
}

struct Forecasted {
  std::int64_t bytes = 0, max_rank_bytes = 0;
  double seconds = 0;
};

Forecasted forecast_of(const ProbeForecast& forecast) {
  Forecasted all;
  for (const auto& [rank, bytes] : bytes_by_rank(forecast)) {
    all.bytes += bytes;
    all.max_rank_bytes = std::max(all.max_rank_bytes, bytes);
  }
  for (const probe::Round& round : forecast.plan->first_rounds()) {
    double longest = 0;
    for (const std::uint32_t index : round) {
      double rate = forecast.plan->paths()[index].rate;
      if (forecast.limit > 0) rate = std::min(rate, static_cast<double>(forecast.limit));
      longest = std::max(longest, static_cast<double>((forecast.transfers + 1) * forecast.size.count) / rate);
    }
    all.seconds += longest;
  }
  return all;
}

}  // namespace

Table pairs_table(const ProbeReport& report) {
  Table table;
  table.add_column("round");
  table.add_column("from", "", Table::Align::left);
  table.add_column("to", "", Table::Align::left);
  table.add_column("described", "(GB/s)");
  table.add_column("measured", "(GB/s)");
  table.add_column("slowest", "(GB/s)");
  table.add_column("fastest", "(GB/s)");
  table.add_column("latency", "(us)");
  for (const probe::MeasuredFlow& flow : report.plan->findings().flows()) {
    const probe::PairPath& path = report.plan->paths()[flow.path];
    table.add_row({std::to_string(flow.round + 1), report.topology->rank_name(path.from),
                   report.topology->rank_name(path.to), rate_cell(path.rate), rate_cell(flow.result.rate),
                   rate_cell(flow.result.slowest), rate_cell(flow.result.fastest), latency_cell(flow.result.latency)});
  }
  return table;
}

std::string probe_text(const ProbeReport& report) {
  const probe::Findings& findings = report.plan->findings();
  const ProbeRun& run = *report.run;
  std::string text = fmt::format("# {}: {} by {}, {} of disjoint pairs, {} a transfer, {} sent in {}\n#\n",
                                 report.topology->name(), counted(report.topology->rank_count(), "rank"),
                                 transports_text(run), counted(findings.rounds(), "round"), format_size(run.size),
                                 format_rounded_size({run.bytes}), probe_duration(run.elapsed));
  text += kinds_table(findings).text();
  if (run.is_cut_short) text += "# --max-time ended it; more rounds were planned\n";
  const auto suspects = findings.suspects();
  if (suspects.empty()) text += "no suspects: no pair is slower than others of its kind\n";
  for (const probe::Suspect& suspect : suspects) text += probe_suspect_text(report, suspect);
  return text;
}

Json probe_json(const ProbeReport& report) {
  const probe::Findings& findings = report.plan->findings();
  Json kinds = Json::array(), pairs = Json::array(), suspects = Json::array();
  for (const probe::KindFinding& kind : findings.kinds()) {
    kinds.push_back({{"over", kind.kind.substr(0, kind.kind.rfind(','))},
                     {"pairs", kind.flows},
                     {"described", kind.described},
                     {"measured", kind.rate},
                     {"from", kind.slowest},
                     {"to", kind.fastest},
                     {"latency", kind.latency}});
  }
  for (const probe::MeasuredFlow& flow : findings.flows()) {
    const probe::PairPath& path = report.plan->paths()[flow.path];
    pairs.push_back({{"round", flow.round + 1},
                     {"from", report.topology->rank_name(path.from)},
                     {"to", report.topology->rank_name(path.to)},
                     {"described", path.rate},
                     {"measured", flow.result.rate},
                     {"slowest", flow.result.slowest},
                     {"fastest", flow.result.fastest},
                     {"latency", flow.result.latency}});
  }
  for (const probe::Suspect& suspect : findings.suspects()) {
    suspects.push_back({{"part", suspect.parts.front()},
                        {"alike", std::vector(suspect.parts.begin() + 1, suspect.parts.end())},
                        {"left", suspect.left},
                        {"confirmed", suspect.is_confirmed},
                        {"pairs", suspect.flows}});
  }
  return {{"schema", "espalier/probe/1"},
          {"topology", report.topology->name()},
          {"ranks", report.topology->rank_count()},
          {"transports", transports_text(*report.run)},
          {"rounds", findings.rounds()},
          {"complete", !report.run->is_cut_short},
          {"size", report.run->size.count},
          {"transfers", report.run->transfers},
          {"bytes", report.run->bytes},
          {"time", report.run->elapsed},
          {"healthy", suspects.empty()},
          {"kinds", kinds},
          {"pairs", pairs},
          {"suspects", suspects}};
}

Table planned_table(const ProbeForecast& forecast) {
  Table table;
  table.add_column("round");
  table.add_column("from", "", Table::Align::left);
  table.add_column("to", "", Table::Align::left);
  table.add_column("over", "", Table::Align::left);
  table.add_column("described", "(GB/s)");
  std::size_t number = 0;
  for (const probe::Round& round : forecast.plan->first_rounds()) {
    ++number;
    for (const std::uint32_t index : round) {
      const probe::PairPath& path = forecast.plan->paths()[index];
      table.add_row({std::to_string(number), forecast.topology->rank_name(path.from),
                     forecast.topology->rank_name(path.to), path.kind.substr(0, path.kind.rfind(',')),
                     rate_cell(path.rate)});
    }
  }
  return table;
}

std::string planned_text(const ProbeForecast& forecast) {
  const auto& rounds = forecast.plan->first_rounds();
  const Forecasted all = forecast_of(forecast);
  std::string text = fmt::format("# {}: {} of disjoint pairs; nothing is sent\n#\n", forecast.topology->name(),
                                 counted(rounds.size(), "round")) +
                     planned_table(forecast).text();
  text += fmt::format(
      "# each pair sends {} transfers of {}{}: {} in all, at most {} by a rank, {} at the rates described\n",
      forecast.transfers + 1, format_size(forecast.size),
      forecast.limit > 0 ? " at no more than " + format_bandwidth({forecast.limit}) : "",
      format_rounded_size({all.bytes}), format_rounded_size({all.max_rank_bytes}), probe_duration(all.seconds));
  const auto more = forecast.max_rounds - std::min<std::size_t>(forecast.max_rounds, rounds.size());
  text += fmt::format(
      "# where pairs are slow, up to {} of a few pairs tell what they have in common; none begins after {:g} s\n",
      counted(more, "round"), forecast.max_time);
  return text;
}

Json planned_json(const ProbeForecast& forecast) {
  const Forecasted all = forecast_of(forecast);
  Json rounds = Json::array();
  for (const probe::Round& round : forecast.plan->first_rounds()) {
    Json pairs = Json::array();
    for (const std::uint32_t index : round) {
      const probe::PairPath& path = forecast.plan->paths()[index];
      pairs.push_back({{"from", forecast.topology->rank_name(path.from)},
                       {"to", forecast.topology->rank_name(path.to)},
                       {"described", path.rate}});
    }
    rounds.push_back(pairs);
  }
  return {{"schema", "espalier/probe-plan/1"},
          {"topology", forecast.topology->name()},
          {"ranks", forecast.topology->rank_count()},
          {"rounds", rounds},
          {"max_rounds", forecast.max_rounds},
          {"max_time", forecast.max_time},
          {"size", forecast.size.count},
          {"transfers", forecast.transfers},
          {"limit", forecast.limit > 0 ? Json(forecast.limit) : Json()},
          {"bytes", all.bytes},
          {"max_rank_bytes", all.max_rank_bytes},
          {"time", all.seconds}};
}

}  // namespace espalier::cli
