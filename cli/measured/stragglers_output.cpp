#include "cli/measured/stragglers_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/counted.h"
#include "base/format_units.h"

namespace espalier::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string duration_text(double seconds) { return format_duration(Picoseconds(std::llround(seconds * 1e12))); }

std::string part_percent(double part, double whole) {
  return fmt::format("{:.1f}", whole > 0 ? 100 * part / whole : 0);
}

/// "box0.gpu3 (rank 3)", or the number alone where the machine has fewer ranks.
std::string rank_text(std::uint32_t rank, const Topology& machine) {
  const bool is_named = rank < machine.rank_count();
  return is_named ? fmt::format("{} (rank {})", machine.rank_name(Rank(rank)), rank) : fmt::format("rank {}", rank);
}

/// Who is behind most of the cost.
struct Pattern {
  enum class Kind : std::uint8_t { none, rank, host, changing };

  Kind kind = Kind::none;
  std::string who;
};

Pattern pattern_of(const compare::Stragglers& found, const Topology& machine) {
  constexpr double worth_it = 0.01, most = 0.6;
  if (found.ranks.empty() || found.cost < worth_it * found.span) return {};
  if (found.ranks.front().cost >= most * found.cost) {
    return {Pattern::Kind::rank, rank_text(found.ranks.front().rank, machine)};
  }
  std::map<std::string, double> hosts;
  for (const compare::Straggler& each : found.ranks) {
    if (each.rank < machine.rank_count()) hosts[machine.node(machine.node_of(Rank(each.rank))).host] += each.cost;
  }
  for (const auto& [host, cost] : hosts) {
    if (hosts.size() > 1 && cost >= most * found.cost) return {Pattern::Kind::host, host};
  }
  return {Pattern::Kind::changing, {}};
}

std::string pattern_text(const Pattern& pattern) {
  switch (pattern.kind) {
    case Pattern::Kind::none: return "no rank comes late by what counts";
    case Pattern::Kind::rank: return "it is " + pattern.who + " nearly always";
    case Pattern::Kind::host: return "it is nearly always a rank of " + pattern.who;
    case Pattern::Kind::changing: break;
  }
  return "it is now this rank and now that: look at what they do between the calls rather than at one machine";
}

}  // namespace

Table stragglers_table(const compare::Stragglers& found, const Topology& machine) {
  Table table;
  table.add_column("rank", "", Table::Align::left);
  table.add_column("came last", "(calls)");
  table.add_column("cost", "(ms)");
  table.add_column("of all", "(%)");
  for (const compare::Straggler& each : found.ranks) {
    table.add_row({rank_text(each.rank, machine), std::to_string(each.last), fmt::format("{:.3f}", each.cost * 1e3),
                   part_percent(each.cost, found.span)});
  }
  return table;
}

std::string stragglers_text(const compare::Stragglers& found, const Topology& machine) {
  std::string text = fmt::format("{}: ranks that come late cost {} of {}, {} %; {}\n", machine.name(),
                                 duration_text(found.cost), duration_text(found.span),
                                 part_percent(found.cost, found.span), pattern_text(pattern_of(found, machine)));
  text += fmt::format("  {} of {}\n\n", counted(found.calls, "call"), counted(found.ranks.size(), "rank"));
  text += stragglers_table(found, machine).text("  ");
  Table kinds;
  kinds.add_column("group", "", Table::Align::left);
  kinds.add_column("call", "", Table::Align::left);
  kinds.add_column("calls");
  kinds.add_column("cost", "(ms)");
  kinds.add_column("mostly by", "", Table::Align::left);
  for (const compare::LateCalls& each : found.kinds) {
    kinds.add_row({each.group.empty() ? "-" : each.group, each.collective, std::to_string(each.calls),
                   fmt::format("{:.3f}", each.cost * 1e3),
                   fmt::format("{}, {} %", rank_text(each.rank, machine), part_percent(each.of_rank, each.cost))});
  }
  return text + "\n" + kinds.text("  ") +
         "\ncost: how much earlier calls would have ended, had the last rank come with the one before it\n";
}

Json stragglers_json(const compare::Stragglers& found, const Topology& machine) {
  const Pattern pattern = pattern_of(found, machine);
  const char* const names[] = {"none", "rank", "host", "changing"};
  Json json = {{"schema", "espalier/stragglers/1"},
               {"machine", machine.name()},
               {"calls", found.calls},
               {"span", found.span},
               {"cost", found.cost},
               {"pattern", names[static_cast<std::size_t>(pattern.kind)]},
               {"ranks", Json::array()},
               {"kinds", Json::array()}};
  for (const compare::Straggler& each : found.ranks) {
    json["ranks"].push_back({{"rank", each.rank}, {"last", each.last}, {"cost", each.cost}});
  }
  for (const compare::LateCalls& each : found.kinds) {
    json["kinds"].push_back({{"group", each.group},
                             {"collective", each.collective},
                             {"calls", each.calls},
                             {"cost", each.cost},
                             {"rank", each.rank},
                             {"of_rank", each.of_rank}});
  }
  return json;
}

}  // namespace espalier::cli
