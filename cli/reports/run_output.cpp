#include "cli/reports/run_output.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.h"
#include "cli/flags/collective_flags.h"
#include "cli/reports/describe_bound.h"
#include "schedule/parts.h"

namespace espalier::cli {
namespace {

std::string_view buffers_text(const engine::MeasureOptions& options) {
  if (options.space == engine::MemorySpace::device) return "device";
  return options.registers_buffers ? "registered" : "private";
}

double algbw(const RunResult& result, const engine::Times& times) {
  return times.median > 0 ? static_cast<double>(result.size.count) / times.median : 0;
}

double busbw(const RunOutput& run, const RunResult& result, const engine::Times& times) {
  return algbw(result, times) * to_double(run.collective.busbw_factor());
}

/// The part of the bound's throughput that was reached.
std::optional<double> of_bound(const RunOutput& run, const RunResult& result) {
  if (!run.bound || result.measurement.out_of_place.times.median <= 0) return std::nullopt;
  return part_of_bound(*run.bound, run.collective, result.size, static_cast<std::int64_t>(size_of(run.type)),
                       result.measurement.out_of_place.times.median);
}

std::string microseconds_text(double seconds) {
  const double value = seconds * 1e6;
  return fmt::format("{:.{}f}", value, value < 100 ? 2 : value < 10000 ? 1 : 0);
}

std::string wrong_text(const std::optional<std::uint64_t>& wrong) { return wrong ? std::to_string(*wrong) : "N/A"; }

std::string placed_text(const RunOutput& run, const RunResult& result, const engine::PlacedMeasurement& placed) {
  return fmt::format("{:>9} {:>9} {:>9} {:>7.2f} {:>7.2f} {:>6}", microseconds_text(placed.times.median),
                     microseconds_text(placed.times.least), microseconds_text(placed.times.p99),
                     algbw(result, placed.times) / 1e9, busbw(run, result, placed.times) / 1e9,
                     wrong_text(placed.wrong));
}

nlohmann::ordered_json placed_json(const RunOutput& run, const RunResult& result,
                                   const engine::PlacedMeasurement& placed) {
  nlohmann::ordered_json entry = {{"time", placed.times.median},
                                  {"min", placed.times.least},
                                  {"p99", placed.times.p99},
                                  {"algbw", algbw(result, placed.times)},
                                  {"busbw", busbw(run, result, placed.times)},
                                  {"wrong", nullptr}};
  if (placed.wrong) entry["wrong"] = *placed.wrong;
  return entry;
}

/// Six cells, empty where there is no measurement.
void add_placed_cells(std::vector<std::string>& cells, const RunOutput& run, const RunResult& result,
                      const engine::PlacedMeasurement* placed) {
  constexpr std::size_t count = 6;
  if (placed == nullptr) {
    cells.resize(cells.size() + count);
    return;
  }
  for (const double time : {placed->times.median, placed->times.least, placed->times.p99}) {
    cells.push_back(fmt::format("{:.3f}", time * 1e6));
  }
  cells.push_back(fmt::format("{:.4f}", algbw(result, placed->times) / 1e9));
  cells.push_back(fmt::format("{:.4f}", busbw(run, result, placed->times) / 1e9));
  cells.push_back(placed->wrong ? std::to_string(*placed->wrong) : "");
}

std::string transports_text(const RunOutput& run) {
  std::string text;
  for (const PeerTransport& peer : run.transports) {
    if (peer.peer == 0) continue;
    const bool is_new = std::ranges::none_of(run.transports, [&](const PeerTransport& other) {
      return other.peer != 0 && other.peer < peer.peer && other.transport == peer.transport &&
             other.reason == peer.reason;
    });
    if (!is_new) continue;
    const auto like_it = std::ranges::count_if(run.transports, [&](const PeerTransport& other) {
      return other.peer != 0 && other.transport == peer.transport && other.reason == peer.reason;
    });
    text += fmt::format("# transport: {} from rank 0 to {} rank{}: {}\n", peer.transport, like_it,
                        like_it == 1 ? "" : "s", peer.reason);
  }
  return text;
}

}  // namespace

std::uint64_t RunOutput::wrong() const {
  std::uint64_t sum = 0;
  for (const RunResult& result : results) {
    sum += result.measurement.out_of_place.wrong.value_or(0);
    if (result.measurement.in_place) sum += result.measurement.in_place->wrong.value_or(0);
  }
  return sum;
}

std::string run_header(const RunOutput& run) {
  std::string text = fmt::format("# {}  {}  {}  {}{}{}\n", run.topology, to_string(run.collective.kind),
                                 counted(run.collective.rank_count, "rank"), to_string(run.type),
                                 reduces(run.collective.kind) ? fmt::format(", {}", to_string(run.operation)) : "",
                                 shares_text(run.collective));
  text += transports_text(run);
  text += fmt::format("# {} buffers, {}, {}; times are the slowest rank's: median, least, 99th percentile\n",
                      buffers_text(run.options), counted(run.options.warmups, "warm-up"),
                      counted(run.options.iterations, "iteration"));
  const std::string placed =
      fmt::format("{:>9} {:>9} {:>9} {:>7} {:>7} {:>6}", "time", "min", "p99", "algbw", "busbw", "#wrong");
  const std::string units =
      fmt::format("{:>9} {:>9} {:>9} {:>7} {:>7} {:>6}", "(us)", "(us)", "(us)", "(GB/s)", "(GB/s)", "");
  text += fmt::format("#\n# {:>12} {:>12} {:>8} {:>6} {:>5}  {:^52}  {:^52}\n", "", "", "", "", "", "out-of-place",
                      "in-place");
  text += fmt::format("# {:>12} {:>12} {:>8} {:>6} {:>5}  {}  {}  {}\n", "size", "count", "type", "redop", "root",
                      placed, placed, "by");
  text += fmt::format("# {:>12} {:>12} {:>8} {:>6} {:>5}  {}  {}\n", "(B)", "(elements)", "", "", "", units, units);
  return text;
}

std::string run_row(const RunOutput& run, const RunResult& result) {
  const bool adds = reduces(run.collective.kind);
  const std::string root = has_root(run.collective.kind) ? std::to_string(run.collective.root.value()) : "-1";
  std::string text = fmt::format("  {:>12} {:>12} {:>8} {:>6} {:>5}  ", result.size.count, result.data.count,
                                 to_string(run.type), adds ? to_string(run.operation) : "none", root);
  text += placed_text(run, result, result.measurement.out_of_place);
  text += "  " + (result.measurement.in_place
                      ? placed_text(run, result, *result.measurement.in_place)
                      : fmt::format("{:>9} {:>9} {:>9} {:>7} {:>7} {:>6}", "N/A", "N/A", "N/A", "N/A", "N/A", "N/A"));
  return text + "  " + result.algorithm + "\n";
}

std::string run_footer(const RunOutput& run) {
  double sum = 0;
  int count = 0;
  for (const RunResult& result : run.results) {
    sum += busbw(run, result, result.measurement.out_of_place.times);
    ++count;
    if (!result.measurement.in_place) continue;
    sum += busbw(run, result, result.measurement.in_place->times);
    ++count;
  }
  std::string text = "#\n";
  if (run.options.checks) {
    text += fmt::format("# Out of bounds values : {} {}\n", run.wrong(), run.wrong() == 0 ? "OK" : "FAILED");
  }
  return text + fmt::format("# Avg bus bandwidth    : {:.4g} GB/s\n", count > 0 ? sum / count / 1e9 : 0);
}

Table run_table(const RunOutput& run) {
  Table table;
  table.add_column("size", "(B)");
  table.add_column("count", "(elements)");
  table.add_column("type", "", Table::Align::left);
  if (reduces(run.collective.kind)) table.add_column("redop", "", Table::Align::left);
  if (has_root(run.collective.kind)) table.add_column("root", "", Table::Align::left);
  for (const char* placed : {"out-of-place", "in-place"}) {
    for (const char* time : {"time", "min", "p99"}) table.add_column(time, "(us)", Table::Align::right, placed);
    for (const char* rate : {"algbw", "busbw"}) table.add_column(rate, "(GB/s)", Table::Align::right, placed);
    table.add_column("wrong", "", Table::Align::right, placed);
  }
  table.add_column("by", "", Table::Align::left);
  table.add_column("of bound", "(%)");
  for (const RunResult& result : run.results) {
    std::vector<std::string> cells = {std::to_string(result.size.count), std::to_string(result.data.count),
                                      std::string(to_string(run.type))};
    if (reduces(run.collective.kind)) cells.emplace_back(to_string(run.operation));
    if (has_root(run.collective.kind)) cells.push_back(run.rank_names[run.collective.root.index()]);
    add_placed_cells(cells, run, result, &result.measurement.out_of_place);
    add_placed_cells(cells, run, result, result.measurement.in_place ? &*result.measurement.in_place : nullptr);
    cells.push_back(result.algorithm);
    const auto share = of_bound(run, result);
    cells.push_back(share ? fmt::format("{:.1f}", 100 * *share) : "");
    table.add_row(std::move(cells));
  }
  return table;
}

namespace {

nlohmann::ordered_json ranks_json(const RunOutput& run, const engine::PlacedMeasurement& placed) {
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
  for (std::size_t rank = 0; rank < placed.ranks.size(); ++rank) {
    const engine::RankUse& use = placed.ranks[rank];
    ranks.push_back({{"rank", run.rank_names[rank]}, {"time", use.time}, {"cpu", use.cpu}, {"no_core", use.no_core}});
  }
  return ranks;
}

}  // namespace

nlohmann::ordered_json run_json(const RunOutput& run) {
  nlohmann::ordered_json document = {{"schema", "espalier/results/1"},
                                     {"origin", "run"},
                                     {"topology", run.topology},
                                     {"collective", to_string(run.collective.kind)},
                                     {"ranks", run.collective.rank_count},
                                     {"iterations", run.options.iterations},
                                     {"buffers", buffers_text(run.options)}};
  if (has_root(run.collective.kind)) document["root"] = run.rank_names[run.collective.root.index()];
  add_shares(document, run.collective);
  document["transports"] = nlohmann::ordered_json::array();
  for (const PeerTransport& peer : run.transports) {
    if (peer.peer == 0) continue;
    document["transports"].push_back({{"rank", peer.peer}, {"transport", peer.transport}, {"reason", peer.reason}});
  }
  document["results"] = nlohmann::ordered_json::array();
  for (const RunResult& result : run.results) {
    nlohmann::ordered_json entry = {{"size", result.size.count},
                                    {"count", result.data.count},
                                    {"type", to_string(run.type)},
                                    {"algorithm", result.algorithm}};
    if (reduces(run.collective.kind)) entry["redop"] = to_string(run.operation);
    entry.update(placed_json(run, result, result.measurement.out_of_place));
    entry["of_bound"] = nullptr;
    if (const auto share = of_bound(run, result)) entry["of_bound"] = *share;
    entry["per_rank"] = ranks_json(run, result.measurement.out_of_place);
    entry["planner"] = result.algorithm;
    entry["chunk"] = result.pacing.chunk.count;
    entry["ahead"] = result.pacing.ahead;
    entry["in_place"] = nullptr;
    if (result.measurement.in_place) entry["in_place"] = placed_json(run, result, *result.measurement.in_place);
    document["results"].push_back(entry);
  }
  return document;
}

}  // namespace espalier::cli
