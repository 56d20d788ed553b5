#include "forecast/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/parallel.h"
#include "forecast/entrants.h"

namespace espalier::forecast {
namespace {

/// The fastest of the results at one size. "auto" repeats one of its planners: that one, where it was named itself.
std::size_t fastest_of(const std::vector<CandidateRun>& results, std::size_t first, std::size_t count) {
  std::size_t best = first;
  for (std::size_t i = first + 1; i < first + count; ++i) {
    const auto time = results[i].report.elapsed, least = results[best].report.elapsed;
    if (time < least || (time == least && results[best].algorithm == "auto")) best = i;
  }
  return best;
}

/// How many sizes to simulate at once: each holds what is under way.
unsigned threads_for(const planners::Candidates& candidates) {
  constexpr std::size_t max_transfers = 32'000'000;
  std::size_t transfers = 1;
  for (const planners::Candidate& candidate : candidates.made) {
    transfers = std::max(transfers, candidate.schedule.transfers.size());
  }
  return static_cast<unsigned>(std::clamp<std::size_t>(max_transfers / transfers, 1, usable_threads()));
}

using Row = std::vector<Result<CandidateRun>>;

/// Moves the algorithms whose plans cannot be run so to those that are refused; the others are shown.
Result<std::vector<bool>> refuse_columns(Answer& answer, const std::vector<Row>& rows) {
  std::vector<planners::Refusal> refused;
  std::vector<bool> is_refused(answer.algorithms.size(), false);
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (row[i]) continue;
      if (row[i].error().code != ErrorCode::unsupported) return tl::unexpected(row[i].error());
      if (!is_refused[i]) refused.push_back({answer.algorithms[i], row[i].error()});
      is_refused[i] = true;
    }
  }
  if (refused.size() == answer.algorithms.size()) return tl::unexpected(refused.front().error);
  std::erase_if(answer.algorithms, [&](const std::string& name) {
    return std::ranges::find(refused, name, &planners::Refusal::planner) != refused.end();
  });
  std::ranges::move(refused, std::back_inserter(answer.refused));
  return is_refused;
}

Result<void> find_crossovers(Answer& answer, CandidateRuns& runs) {
  for (std::size_t i = 1; i < answer.winners.size(); ++i) {
    const CandidateRun& before = answer.results[answer.winners[i - 1]];
    const CandidateRun& after = answer.results[answer.winners[i]];
    if (before.planner() == after.planner()) continue;
    const auto crossover = runs.find_crossover(before.planner(), after.planner(), before.size, after.size);
    if (!crossover) return tl::unexpected(crossover.error());
    answer.crossovers.push_back(*crossover);
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> made_algorithms(const std::vector<std::string>& asked,
                                                 const planners::Candidates& candidates) {
  const auto is_of_nccl = [](const planners::Candidate& made) { return is_nccl_algorithm(made.planner); };
  std::vector<std::string> algorithms;
  for (const std::string& name : asked) {
    const bool is_made = name == "auto"   ? !std::ranges::all_of(candidates.made, is_of_nccl)
                         : name == "nccl" ? std::ranges::any_of(candidates.made, is_of_nccl)
                                          : candidates.find(name) != nullptr;
    if (is_made) algorithms.push_back(name);
  }
  if (!algorithms.empty()) return algorithms;
  if (!candidates.refused.empty()) return tl::unexpected(candidates.refused.front().error);
  return fail(ErrorCode::unsupported, "no planner makes this collective on this topology");
}

Result<Answer> answer(const std::vector<std::string>& algorithms, const std::vector<Bytes>& sizes,
                      const planners::Candidates& candidates, CandidateRuns& runs,
                      const std::function<void(const std::string&)>& on_run) {
  Answer found{algorithms, {}, {}, {}, candidates.refused};
  std::vector<Row> rows(sizes.size());
  run_parallel(rows.size(), threads_for(candidates), [&](std::size_t i) {
    const std::size_t place = rows.size() - 1 - i;  // The largest take longest and come first.
    for (const std::string& algorithm : algorithms) {
      if (on_run) on_run(fmt::format("{} {} B", algorithm, sizes[place].count));
      rows[place].push_back(runs.run(algorithm, sizes[place]));
    }
  });
  const auto is_refused = refuse_columns(found, rows);
  if (!is_refused) return tl::unexpected(is_refused.error());
  for (Row& row : rows) {
    const std::size_t first = found.results.size();
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (!(*is_refused)[i]) found.results.push_back(*std::move(row[i]));
    }
    found.winners.push_back(fastest_of(found.results, first, found.algorithms.size()));
  }
  if (auto crossed = find_crossovers(found, runs); !crossed) return tl::unexpected(crossed.error());
  return found;
}

Result<sim::Report> run_in_detail(const CandidateRun& result, const Topology& topology, const RunOptions& how) {
  sim::Options options = how.at(result.size, {result.report.chunk, result.report.ahead}, result.setting);
  options.record_timeline = true;
  options.record_critical_path = true;
  const Topology& network = result.setting != nullptr ? result.setting->topology : topology;
  const auto stored = stored_form(*result.candidate, topology);
  if (!stored) return tl::unexpected(stored.error());
  const auto simulator = CandidateSimulator::make(**stored, network, how.endpoints(result.setting).engines());
  if (!simulator) return tl::unexpected(simulator.error());
  return simulator->run(options);
}

}  // namespace espalier::forecast
