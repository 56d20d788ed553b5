#include "cli/reports/simulation_output.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.h"
#include "base/format_units.h"
#include "cli/flags/collective_flags.h"
#include "cli/flags/condition_flags.h"
#include "cli/output/describe_repaired.h"
#include "cli/output/table.h"
#include "cli/reports/describe_bound.h"
#include "sim/core/utilisation.h"

namespace espalier::cli {
namespace {

std::string time_text(Picoseconds time) { return fmt::format("{:.2f}", static_cast<double>(time.count) / 1e6); }

std::string bus_bandwidth(const forecast::CandidateRun& result, const Collective& collective) {
  return fmt::format("{:.2f}", result.report.busbw(collective) / 1e9);
}

std::string header_text(const Simulation& simulation) {
  const Collective& collective = simulation.collective;
  std::string text = fmt::format("# {}  {}  {}  {}", simulation.topology->name(), to_string(collective.kind),
                                 counted(collective.rank_count, "rank"), simulation.type);
  if (!collective.root.is_none()) text += "  root " + simulation.topology->rank_name(collective.root);
  text += shares_text(collective);
  text += fmt::format("  model {}", sim::to_string(simulation.model));
  if (!simulation.profile.empty()) text += "  profile " + simulation.profile;
  text += circumstances_text(simulation.circumstances);
  if (simulation.draws.count > 0) {
    text += fmt::format("  ecmp {} from seed {}", counted(simulation.draws.count, "draw"), simulation.draws.first_seed);
  }
  const auto algbw = algbw_of(simulation.bound.time_per_byte);
  if (algbw) {
    const double busbw = *algbw * to_double(collective.busbw_factor());
    text += fmt::format("\n# bound: busbw {} GB/s, algbw {} GB/s{}", gigabytes_per_second(busbw),
                        gigabytes_per_second(algbw), floor_mark(simulation.bound));
    if (!simulation.bound.cut.empty()) text += ", by the cut " + cut_text(simulation.bound, *simulation.topology, 6);
  }
  return text + "\n#\n";
}

/// Whether what runs under this name differs by size: a planner's schedule, or with a profile its protocol.
bool chooses(const std::string& algorithm, const Simulation& simulation) {
  return algorithm == "auto" || !simulation.profile.empty();
}

void add_algorithm_columns(Table& table, const Simulation& simulation, bool has_ranges) {
  for (const std::string& algorithm : simulation.algorithms) {
    table.add_column(algorithm, "(us)");
    table.add_column("busbw", "(GB/s)", Table::Align::right, algorithm);
    if (simulation.draws.count > 0) {
      table.add_column("ecmp", "(us)", Table::Align::right, algorithm);
      table.add_column("worst", "(us)", Table::Align::right, algorithm);
    }
    if (chooses(algorithm, simulation)) table.add_column("by", "", Table::Align::left, algorithm);
    if (has_ranges) add_range_columns(table, algorithm);
  }
  const bool compares = simulation.algorithms.size() > 1;
  if (compares) table.add_column("best", "", Table::Align::left);
  table.add_column("of bound", "(%)");
  table.add_column("chunk", "(B)");  // Of the best.
}

/// "1 KiB to 64 KiB": the sizes over which one algorithm stays the fastest.
std::string winners_text(const Simulation& simulation) {
  std::string text = "# fastest:";
  for (std::size_t row = 0; row < simulation.sizes.size();) {
    std::size_t last = row;
    const std::string& name = simulation.results[simulation.winners[row]].planner();
    while (last + 1 < simulation.sizes.size() && simulation.results[simulation.winners[last + 1]].planner() == name) {
      ++last;
    }
    text += fmt::format("{} {} {} {}", row == 0 ? "" : ",", name, last > row ? "from" : "at",
                        format_size(simulation.sizes[row]));
    if (last > row) text += " to " + format_size(simulation.sizes[last]);
    row = last + 1;
  }
  return text + "\n";
}

std::string limits_text(const Simulation& simulation) {
  if (simulation.winners.empty()) return {};
  const forecast::CandidateRun& winner = simulation.results[simulation.winners.back()];
  const Topology& topology = *simulation.topology;
  const std::vector<sim::LinkShare> busiest = sim::busiest_links(winner.report, topology, topology.link_count());
  if (busiest.empty()) return {};
  std::string text = fmt::format("# limits: links busy in {} at {}:", winner.planner(), format_size(winner.size));
  for (std::size_t i = 0; i < std::min(busiest.size(), shown_links); ++i) {
    text += fmt::format("{} {} {:.0f} %", i == 0 ? "" : ",", busiest[i].name, 100 * busiest[i].share);
  }
  const auto full = std::ranges::count_if(
      busiest, [&](const sim::LinkShare& link) { return link.share >= 0.98 * busiest.front().share; });
  if (full > 1) text += fmt::format(" ({} within 2 % of the busiest)", full);
  return text + "\n";
}

/// "gpu0>gpu1", "backplane of cpu0".
std::string place_of(const sim::CriticalStep& step, const Topology& topology) {
  if (!step.link.is_none()) return topology.link_name(step.link);
  const char* const what = step.reduces   ? "reduction at "
                           : step.copies  ? "copy engine of "
                           : step.handles ? "processor of "
                                          : "backplane of ";
  return what + topology.node(step.node).id;
}

nlohmann::ordered_json result_json(const forecast::CandidateRun& result, const Simulation& simulation) {
  nlohmann::ordered_json entry = {
      {"size", result.size.count},
      {"count", result.size.count / simulation.element_size},
      {"type", simulation.type},
      {"algorithm", result.algorithm},
      {"time", result.report.elapsed.seconds()},
      {"algbw", result.report.algbw()},
      {"busbw", result.report.busbw(simulation.collective)},
      {"of_bound", result.report.of_bound(simulation.bound.time_per_byte, simulation.collective)},
      {"planner", result.candidate->planner},
      {"chunk", result.report.chunk.count},
      {"ahead", result.report.ahead},
      {"transfers", result.transfers()},
      {"events", result.report.events}};
  if (!result.protocol.empty()) entry["protocol"] = result.protocol;
  if (!result.why.empty()) entry["why"] = result.why;
  if (result.ecmp) {
    entry["ecmp"] = {{"expected", result.ecmp->expected},
                     {"worst", result.ecmp->worst.seconds()},
                     {"worst_seed", result.ecmp->worst_seed}};
  }
  if (auto repaired = repaired_json(*result.candidate)) entry["repaired"] = *std::move(repaired);
  return entry;
}

nlohmann::ordered_json limits_json(const forecast::CandidateRun& result, const Topology& topology) {
  nlohmann::ordered_json links = nlohmann::ordered_json::array();
  constexpr std::size_t most = 16;
  for (const sim::LinkShare& busy : sim::busiest_links(result.report, topology, most)) {
    links.push_back({{"link", busy.name}, {"busy", busy.share}, {"bytes", busy.use.bytes}, {"links", busy.links}});
  }
  return {{"size", result.size.count}, {"algorithm", result.algorithm}, {"links", links}};
}

}  // namespace

Table simulation_table(const Simulation& simulation, bool has_ranges) {
  has_ranges = has_ranges && !simulation.errors.by_size.empty();
  Table table;
  table.add_column("size", "(B)");
  table.add_column("count", "(elements)");
  add_algorithm_columns(table, simulation, has_ranges);
  const std::size_t columns = simulation.algorithms.size();
  for (std::size_t row = 0; row < simulation.sizes.size(); ++row) {
    const Bytes size = simulation.sizes[row];
    std::vector<std::string> cells = {std::to_string(size.count), std::to_string(size.count / simulation.element_size)};
    double best_of_bound = 0;
    for (std::size_t column = 0; column < columns; ++column) {
      const forecast::CandidateRun& result = simulation.results[row * columns + column];
      cells.push_back(time_text(result.report.elapsed));
      cells.push_back(bus_bandwidth(result, simulation.collective));
      if (result.ecmp) {
        cells.push_back(fmt::format("{:.2f}", result.ecmp->expected * 1e6));
        cells.push_back(time_text(result.ecmp->worst));
      }
      if (chooses(result.algorithm, simulation)) cells.push_back(result.by());
      if (has_ranges) {
        add_range_cells(cells, simulation.errors.at(row, result.algorithm), result.report.elapsed.seconds());
      }
      best_of_bound =
          std::max(best_of_bound, result.report.of_bound(simulation.bound.time_per_byte, simulation.collective));
    }
    const forecast::CandidateRun& winner = simulation.results[simulation.winners[row]];
    if (columns > 1) cells.push_back(winner.planner());
    cells.push_back(percent(best_of_bound));
    cells.push_back(std::to_string(winner.report.chunk.count));
    table.add_row(std::move(cells));
  }
  return table;
}

std::string simulation_text(const Simulation& simulation) {
  std::string text = header_text(simulation) + simulation_table(simulation, false).text() + "#\n";
  if (simulation.algorithms.size() > 1) text += winners_text(simulation);
  for (const forecast::Crossover& crossover : simulation.crossovers) {
    text +=
        fmt::format("# crossover: {} -> {} at {}\n", crossover.from, crossover.to, format_rounded_size(crossover.size));
  }
  text += errors_text(simulation.errors, simulation.algorithms);
  text += limits_text(simulation);
  const auto is_repaired = [](const forecast::CandidateRun& result) {
    return !repaired_text(*result.candidate).empty();
  };
  const auto repaired = std::ranges::find_if(simulation.results, is_repaired);
  if (repaired != simulation.results.end()) text += repaired_text(*repaired->candidate);
  for (const planners::Refusal& refusal : simulation.refused) {
    text += fmt::format("# no {}: {}\n", refusal.planner, refusal.error.message);
  }
  return text;
}

nlohmann::ordered_json simulation_json(const Simulation& simulation) {
  nlohmann::ordered_json document;
  document["schema"] = "espalier/results/1";
  document["topology"] = simulation.topology->name();
  document["collective"] = to_string(simulation.collective.kind);
  document["ranks"] = simulation.collective.rank_count;
  if (!simulation.collective.root.is_none()) {
    document["root"] = simulation.topology->rank_name(simulation.collective.root);
  }
  add_shares(document, simulation.collective);
  document["model"] = sim::to_string(simulation.model);
  if (!simulation.profile.empty()) document["profile"] = simulation.profile;
  document["circumstances"] = circumstances_json(simulation.circumstances);
  if (simulation.draws.count > 0) {
    document["ecmp"] = {{"draws", simulation.draws.count}, {"seed", simulation.draws.first_seed}};
  }
  document["bound"] = bound_json(simulation.bound, simulation.collective, *simulation.topology);
  document["results"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < simulation.results.size(); ++i) {
    document["results"].push_back(result_json(simulation.results[i], simulation));
    if (simulation.errors.by_size.empty()) continue;
    const forecast::CandidateRun& run = simulation.results[i];
    const forecast::ErrorRange range = simulation.errors.at(i / simulation.algorithms.size(), run.algorithm);
    document["results"].back()["range"] = range_json(range, run.report.elapsed.seconds());
  }
  document["winners"] = nlohmann::ordered_json::array();
  for (const std::size_t winner : simulation.winners) {
    const forecast::CandidateRun& result = simulation.results[winner];
    document["winners"].push_back({{"size", result.size.count}, {"algorithm", result.planner()}});
  }
  document["crossovers"] = nlohmann::ordered_json::array();
  for (const forecast::Crossover& crossover : simulation.crossovers) {
    document["crossovers"].push_back({{"from", crossover.from}, {"to", crossover.to}, {"size", crossover.size.count}});
  }
  document["limits"] = nlohmann::ordered_json::array();
  const std::size_t columns = simulation.algorithms.size();
  for (std::size_t i = simulation.results.size() - columns; i < simulation.results.size(); ++i) {
    document["limits"].push_back(limits_json(simulation.results[i], *simulation.topology));
  }
  document["refused"] = nlohmann::ordered_json::array();
  for (const planners::Refusal& refusal : simulation.refused) {
    document["refused"].push_back(
        {{"algorithm", refusal.planner}, {"reason", refusal.error.message}, {"help", refusal.error.help}});
  }
  return document;
}

Table critical_path_table(const forecast::CandidateRun& result, const Topology& topology) {
  Table table;
  table.add_column("begin", "(us)");
  table.add_column("end", "(us)");
  table.add_column("queued", "(us)");
  table.add_column("transfer");
  table.add_column("chunk");
  table.add_column("where", "", Table::Align::left);
  for (const sim::CriticalStep& step : result.report.critical_path) {
    table.add_row({time_text(step.begin), time_text(step.end), time_text(step.queued),
                   std::to_string(step.transfer.index()), std::to_string(step.chunk), place_of(step, topology)});
  }
  return table;
}

std::string critical_path_text(const forecast::CandidateRun& result, const Topology& topology) {
  return "# critical path: what the last byte waited for\n" + critical_path_table(result, topology).text();
}

nlohmann::ordered_json critical_path_json(const forecast::CandidateRun& result, const Topology& topology) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (const sim::CriticalStep& step : result.report.critical_path) {
    steps.push_back({{"begin", step.begin.seconds()},
                     {"end", step.end.seconds()},
                     {"queued", step.queued.seconds()},
                     {"transfer", step.transfer.index()},
                     {"chunk", step.chunk},
                     {"where", place_of(step, topology)}});
  }
  return steps;
}

}  // namespace espalier::cli
