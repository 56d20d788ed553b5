#include "cli/reports/compare_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "base/counted.h"
#include "base/format_units.h"
#include "cli/output/table.h"
#include "compare/judgement.h"
#include "schedule/by_algorithm.h"

namespace espalier::cli {
namespace {

constexpr std::size_t shown_link_rows = 12;
constexpr std::size_t shown_ranks = 32;

std::string microseconds(Picoseconds time) { return fmt::format("{:.2f}", static_cast<double>(time.count) / 1e6); }
std::string microseconds(double seconds) { return fmt::format("{:.2f}", seconds * 1e6); }

std::string unsigned_percent(double share) { return std::isfinite(share) ? fmt::format("{:.1f}", 100 * share) : "-"; }

std::string summary_text(const compare::ErrorSummary& errors) {
  return fmt::format("median {} %, p90 {} %, worst {} %", unsigned_percent(errors.median), unsigned_percent(errors.p90),
                     unsigned_percent(errors.worst));
}

std::string header_text(const CompareHeader& header) {
  const auto line = [](char letter, const ComparedFile& file) {
    return fmt::format("# {}  {}  {}  {}\n", letter, file.file, file.origin, file.what);
  };
  const std::string first = header.first_line.empty() ? "" : "# " + header.first_line + "\n";
  return first + line('A', header.a) + line('B', header.b) + "# errors are (A - B) / B\n#\n";
}

std::string verdict_text(const CompareHeader& header) {
  if (!header.verdict) return {};
  const Verdict& verdict = *header.verdict;
  return fmt::format("# {}: {} {} % is {} {} %\n", verdict.ok() ? "ok" : "FAILED", verdict.measure,
                     unsigned_percent(verdict.value), verdict.ok() ? "at most" : "above",
                     unsigned_percent(verdict.limit));
}

std::string notes_text(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) text += "# note: " + note + "\n";
  return text;
}

std::string phases_table(const compare::TimelineComparison& comparison) {
  Table table;
  table.add_column("phase", "", Table::Align::left);
  table.add_column("spans");
  table.add_column("A", "(us)");
  table.add_column("B", "(us)");
  table.add_column("error", "(%)");
  table.add_column("median", "(%)");
  table.add_column("p90", "(%)");
  table.add_column("B begins later", "(us)");
  table.add_column("only A");
  table.add_column("only B");
  for (const compare::PhaseComparison& phase : comparison.phases) {
    table.add_row({std::string(to_string(phase.phase)), std::to_string(phase.pairs), microseconds(phase.total.a),
                   microseconds(phase.total.b), error_percent(phase.total.error()),
                   unsigned_percent(phase.durations.median), unsigned_percent(phase.durations.p90),
                   microseconds(phase.begin_lag), std::to_string(phase.only_a), std::to_string(phase.only_b)});
  }
  return table.text();
}

std::string links_text(const compare::TimelineComparison& comparison) {
  if (comparison.links.empty()) return {};
  std::string text = "#\n" + links_table(comparison, shown_link_rows).text();
  if (shown_link_rows < comparison.links.size()) {
    text += fmt::format("# the {} links furthest apart of {}\n", shown_link_rows, comparison.links.size());
  }
  return text;
}

/// "rank2, which was waited for 84 % of the time in B, 25 % in A"; empty where no rank stands out.
std::string culprit_text(const compare::TimelineComparison& comparison) {
  if (!comparison.culprit) return {};
  const compare::RankComparison& rank = comparison.ranks[*comparison.culprit];
  const auto part = [](Picoseconds time, Picoseconds whole) {
    return static_cast<double>(time.count) / static_cast<double>(std::max<std::int64_t>(whole.count, 1));
  };
  return fmt::format("{}, which was waited for {:.0f} % of the time in B, {:.0f} % in A", rank.name,
                     100 * part(rank.on_path.b, comparison.total.b), 100 * part(rank.on_path.a, comparison.total.a));
}

std::string ranks_table(const compare::TimelineComparison& comparison) {
  if (comparison.ranks.empty()) return {};
  Table table;
  table.add_column("rank", "", Table::Align::left);
  for (const char* what : {"start", "finish", "busy", "waiting"}) {
    table.add_column(fmt::format("{} A", what), "(us)");
    table.add_column("B", "(us)");
  }
  table.add_column("finish later", "(us)");
  std::vector<const compare::RankComparison*> ranks;
  for (const compare::RankComparison& rank : comparison.ranks) ranks.push_back(&rank);
  const auto lag = [](const compare::RankComparison* rank) { return rank->finish.b - rank->finish.a; };
  if (ranks.size() > shown_ranks) {
    std::ranges::stable_sort(ranks, [&](const auto* x, const auto* y) { return lag(x) > lag(y); });
    ranks.resize(shown_ranks);
  }
  for (const compare::RankComparison* rank : ranks) {
    table.add_row({rank->name, microseconds(rank->start.a), microseconds(rank->start.b), microseconds(rank->finish.a),
                   microseconds(rank->finish.b), microseconds(rank->busy.a), microseconds(rank->busy.b),
                   microseconds(rank->waiting.a), microseconds(rank->waiting.b), microseconds(lag(rank))});
  }
  std::string text = "#\n" + table.text();
  if (ranks.size() < comparison.ranks.size()) {
    text += fmt::format("# the {} ranks latest in B against A, of {}\n", ranks.size(), comparison.ranks.size());
  }
  if (const std::string culprit = culprit_text(comparison); !culprit.empty()) text += "# points at: " + culprit + "\n";
  if (comparison.laggard && !comparison.culprit) {
    const compare::RankComparison& rank = comparison.ranks[*comparison.laggard];
    const Picoseconds late = lag(&rank);
    std::vector<double> lags;
    for (const compare::RankComparison& each : comparison.ranks) lags.push_back(static_cast<double>(lag(&each).count));
    if (late.count > 0) {
      text += fmt::format("# lags most: {}, done {} us later in B (the median rank {:.2f} us); it starts {} us later",
                          rank.name, microseconds(late), compare::median(lags) / 1e6,
                          microseconds(rank.start.b - rank.start.a));
      text += fmt::format(" and waits {} us longer\n", microseconds(rank.waiting.b - rank.waiting.a));
    }
  }
  return text;
}

std::string step_text(const std::vector<compare::PathTransfer>& path, std::size_t index) {
  if (index >= path.size()) return "ends";
  const compare::PathTransfer& step = path[index];
  return fmt::format("goes on by transfer {} ({}) at {} us", step.transfer.index(), step.way, microseconds(step.begin));
}

std::string path_text(const compare::PathComparison& path) {
  if (path.a.empty() && path.b.empty()) return {};
  std::string text = fmt::format("#\n# critical path: {} in A, {} in B; {} % of B's lies on transfers of A's\n",
                                 counted(path.a.size(), "transfer"), path.b.size(), unsigned_percent(path.shared));
  if (path.common == path.a.size() && path.common == path.b.size()) return text + "# the paths are the same\n";
  return text + fmt::format("# they part after {}: A {}, B {}\n", counted(path.common, "transfer"),
                            step_text(path.a, path.common), step_text(path.b, path.common));
}

nlohmann::ordered_json file_json(const ComparedFile& file) {
  return {{"file", file.file}, {"origin", file.origin}, {"what", file.what}};
}

nlohmann::ordered_json duration_json(const compare::Duration& duration) {
  return {{"a", duration.a.seconds()}, {"b", duration.b.seconds()}, {"error", duration.error()}};
}

nlohmann::ordered_json head_json(const CompareHeader& header, const char* kind) {
  nlohmann::ordered_json document = {
      {"schema", "espalier/compare/1"}, {"kind", kind}, {"a", file_json(header.a)}, {"b", file_json(header.b)}};
  document["verdict"] = header.first_json;
  if (header.verdict) {
    document["fail_above"] = {{"limit", header.verdict->limit},
                              {"measure", header.verdict->measure},
                              {"value", header.verdict->value},
                              {"ok", header.verdict->ok()}};
  }
  return document;
}

nlohmann::ordered_json path_json(const std::vector<compare::PathTransfer>& path) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (const compare::PathTransfer& step : path) {
    steps.push_back({{"transfer", step.transfer.index()},
                     {"way", step.way},
                     {"begin", step.begin.seconds()},
                     {"until", step.until.seconds()},
                     {"waited", step.waited.seconds()}});
  }
  return steps;
}

}  // namespace

nlohmann::ordered_json errors_json(const compare::ErrorSummary& errors) {
  return {{"count", errors.count},
          {"median", errors.median},
          {"p90", errors.p90},
          {"worst", errors.worst},
          {"bias", errors.bias}};
}

std::string error_percent(double error) { return std::isfinite(error) ? fmt::format("{:+.1f}", 100 * error) : "-"; }

std::string first_line_of(const compare::TimelineComparison& comparison) {
  constexpr double accuracy = 1.15;
  const double factor = static_cast<double>(comparison.total.b.count) /
                        static_cast<double>(std::max<std::int64_t>(comparison.total.a.count, 1));
  std::string text =
      factor > accuracy || factor < 1 / accuracy
          ? fmt::format("B: {} than A, by {:.2f} times", factor > 1 ? "slower" : "faster", std::max(factor, 1 / factor))
          : fmt::format("B: as A, within a factor of {:.2f}", std::max(factor, 1 / factor));
  const std::string culprit = culprit_text(comparison);
  return culprit.empty() ? text : text + "; points at " + culprit;
}

Table links_table(const compare::TimelineComparison& comparison, std::size_t most) {
  Table table;
  table.add_column("link", "", Table::Align::left);
  table.add_column("chunks");
  table.add_column("busy A", "(us)");
  table.add_column("busy B", "(us)");
  table.add_column("error", "(%)");
  const std::size_t count = std::min(comparison.links.size(), most);
  for (std::size_t i = 0; i < count; ++i) {
    const compare::LinkComparison& link = comparison.links[i];
    table.add_row({link.name, std::to_string(link.chunks), microseconds(link.busy.a), microseconds(link.busy.b),
                   error_percent(link.busy.error())});
  }
  return table;
}

std::string timelines_text(const CompareHeader& header, const compare::TimelineComparison& comparison) {
  std::string text = header_text(header);
  text += fmt::format("# total      A {} us, B {} us: error {} %\n", microseconds(comparison.total.a),
                      microseconds(comparison.total.b), error_percent(comparison.total.error()));
  const compare::TransferComparison& transfers = comparison.transfers;
  text += fmt::format("# transfers  {} in both: error {}\n", transfers.errors.count, summary_text(transfers.errors));
  if (!transfers.worst.is_none() && transfers.errors.worst > 0) {
    text += fmt::format("# worst      transfer {} ({}): {} us in A, {} us in B\n", transfers.worst.index(),
                        transfers.worst_way, microseconds(transfers.worst_duration.a),
                        microseconds(transfers.worst_duration.b));
  }
  text += "#\n" + phases_table(comparison) + links_text(comparison) + ranks_table(comparison);
  return text + path_text(comparison.path) + notes_text(comparison.notes) + verdict_text(header);
}

nlohmann::ordered_json timelines_json(const CompareHeader& header, const compare::TimelineComparison& comparison) {
  nlohmann::ordered_json document = head_json(header, "timelines");
  document["total"] = duration_json(comparison.total);
  document["transfers"] = errors_json(comparison.transfers.errors);
  if (!comparison.transfers.worst.is_none()) {
    document["transfers"]["worst_transfer"] = {{"transfer", comparison.transfers.worst.index()},
                                               {"way", comparison.transfers.worst_way},
                                               {"duration", duration_json(comparison.transfers.worst_duration)}};
  }
  document["phases"] = nlohmann::ordered_json::array();
  for (const compare::PhaseComparison& phase : comparison.phases) {
    document["phases"].push_back({{"phase", to_string(phase.phase)},
                                  {"spans", phase.pairs},
                                  {"only_a", phase.only_a},
                                  {"only_b", phase.only_b},
                                  {"total", duration_json(phase.total)},
                                  {"durations", errors_json(phase.durations)},
                                  {"begin_lag", phase.begin_lag.seconds()}});
  }
  document["links_by"] = comparison.links_by_way ? "send to recv" : "wire";
  document["links"] = nlohmann::ordered_json::array();
  for (const compare::LinkComparison& link : comparison.links) {
    document["links"].push_back({{"link", link.name}, {"chunks", link.chunks}, {"busy", duration_json(link.busy)}});
  }
  document["ranks"] = nlohmann::ordered_json::array();
  for (const compare::RankComparison& rank : comparison.ranks) {
    document["ranks"].push_back({{"rank", rank.name},
                                 {"start", duration_json(rank.start)},
                                 {"finish", duration_json(rank.finish)},
                                 {"busy", duration_json(rank.busy)},
                                 {"waiting", duration_json(rank.waiting)},
                                 {"on_path", duration_json(rank.on_path)}});
  }
  if (comparison.laggard) document["laggard"] = comparison.ranks[*comparison.laggard].name;
  if (comparison.culprit) document["culprit"] = comparison.ranks[*comparison.culprit].name;
  document["critical_path"] = {{"common", comparison.path.common},
                               {"shared", comparison.path.shared},
                               {"a", path_json(comparison.path.a)},
                               {"b", path_json(comparison.path.b)}};
  document["by_transfer"] = comparison.by_transfer;
  document["notes"] = comparison.notes;
  return document;
}

namespace {

/// The median of |log(A / B)| over a band, as a factor less one; nothing where there is no size.
std::optional<double> band_error(const compare::ResultsComparison& comparison, const compare::SizeBand& band,
                                 std::size_t& count) {
  std::vector<double> logs;
  for (const compare::ComparedSize& row : comparison.sizes) {
    if (band.has(row.size) && row.a > 0 && row.b > 0) {
      logs.push_back(std::abs(std::log(row.a / row.b)));
    }
  }
  count = logs.size();
  if (logs.empty()) return std::nullopt;
  std::ranges::sort(logs);
  const std::size_t middle = logs.size() / 2;
  const double median = logs.size() % 2 == 1 ? logs[middle] : (logs[middle - 1] + logs[middle]) / 2;
  return std::exp(median) - 1;
}

std::string bands_text(const compare::ResultsComparison& comparison) {
  std::string text;
  for (const compare::SizeBand& band : compare::size_bands) {
    std::size_t count = 0;
    const auto error = band_error(comparison, band, count);
    if (!error) continue;
    text += fmt::format("# {}: median factor {:.3f} over {}\n", band.name, 1 + *error, counted(count, "size"));
  }
  return text;
}

nlohmann::ordered_json bands_json(const compare::ResultsComparison& comparison) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const compare::SizeBand& band : compare::size_bands) {
    std::size_t count = 0;
    const auto error = band_error(comparison, band, count);
    if (error) list.push_back({{"band", band.name}, {"count", count}, {"factor", 1 + *error}});
  }
  return list;
}

}  // namespace

Table results_table(const compare::ResultsComparison& comparison) {
  Table table;
  table.add_column("size", "(B)");
  table.add_column("collective", "", Table::Align::left);
  table.add_column("algorithm", "", Table::Align::left);
  table.add_column("A", "(us)");
  table.add_column("B", "(us)");
  table.add_column("error", "(%)");
  for (const compare::ComparedSize& row : comparison.sizes) {
    table.add_row({std::to_string(row.size.count), row.collective, row.algorithm.empty() ? "-" : row.algorithm,
                   microseconds(row.a), microseconds(row.b), error_percent(row.error)});
  }
  return table;
}

std::string results_text(const CompareHeader& header, const compare::ResultsComparison& comparison) {
  std::string text = header_text(header) + results_table(comparison).text() + "#\n";
  const compare::ComparedSize& worst = comparison.sizes[comparison.worst];
  text += fmt::format("# error: {} (at {}{}), bias {} %\n", summary_text(comparison.errors), format_size(worst.size),
                      by_algorithm(worst.algorithm), error_percent(comparison.errors.bias));
  if (header.shows_bands) text += bands_text(comparison);
  if (comparison.algorithms.size() > 1) {
    for (const compare::AlgorithmErrors& each : comparison.algorithms) {
      text += fmt::format("# {} {}: {}\n", each.collective, each.algorithm.empty() ? "-" : each.algorithm,
                          summary_text(each.errors));
    }
  }
  if (comparison.compared_winners > 0) {
    text += fmt::format("# fastest: the same in A and B at {} of {}\n",
                        comparison.compared_winners - comparison.different.size(),
                        counted(comparison.compared_winners, "size"));
  }
  for (const compare::DifferentWinner& winner : comparison.different) {
    text += fmt::format("# fastest at {}: {} in A, {} in B; choosing {} costs {} %\n", format_size(winner.size),
                        winner.a, winner.b, winner.a, unsigned_percent(winner.cost));
  }
  if (comparison.only_in_a + comparison.only_in_b > 0) {
    text += fmt::format("# without a counterpart: {} of A, {} of B\n", counted(comparison.only_in_a, "row"),
                        comparison.only_in_b);
  }
  return text + notes_text(comparison.notes) + verdict_text(header);
}

nlohmann::ordered_json results_json(const CompareHeader& header, const compare::ResultsComparison& comparison) {
  nlohmann::ordered_json document = head_json(header, "results");
  document["errors"] = errors_json(comparison.errors);
  if (header.shows_bands) document["bands"] = bands_json(comparison);
  document["algorithms"] = nlohmann::ordered_json::array();
  for (const compare::AlgorithmErrors& each : comparison.algorithms) {
    document["algorithms"].push_back(
        {{"collective", each.collective}, {"algorithm", each.algorithm}, {"errors", errors_json(each.errors)}});
  }
  document["sizes"] = nlohmann::ordered_json::array();
  for (const compare::ComparedSize& row : comparison.sizes) {
    document["sizes"].push_back({{"size", row.size.count},
                                 {"collective", row.collective},
                                 {"algorithm", row.algorithm},
                                 {"a", row.a},
                                 {"b", row.b},
                                 {"error", row.error}});
  }
  document["winners"] = {{"compared", comparison.compared_winners}, {"different", nlohmann::ordered_json::array()}};
  for (const compare::DifferentWinner& winner : comparison.different) {
    document["winners"]["different"].push_back({{"size", winner.size.count},
                                                {"collective", winner.collective},
                                                {"a", winner.a},
                                                {"b", winner.b},
                                                {"cost", winner.cost}});
  }
  document["only_in_a"] = comparison.only_in_a;
  document["only_in_b"] = comparison.only_in_b;
  document["notes"] = comparison.notes;
  return document;
}

}  // namespace espalier::cli
