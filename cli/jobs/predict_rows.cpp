#include "cli/jobs/predict_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/counted.h"
#include "cli/flags/algorithm_flags.h"
#include "cli/jobs/plan_shown.h"
#include "cli/output/progress.h"
#include "forecast/candidate_runs.h"

namespace espalier::cli {
namespace {

constexpr std::int64_t element_size = 4;

}  // namespace

Result<Collective> default_collective(const std::string& name, const Topology& topology) {
  const auto kind = parse_collective(name);
  if (!kind) return tl::unexpected(kind.error());
  Collective collective{*kind, static_cast<std::uint32_t>(topology.rank_count()), Rank()};
  if (has_root(*kind)) collective.root = Rank(0);
  return collective;
}

Result<Collective> with_shares_of(const compare::Measurements& rows, Collective collective) {
  if (rows.shares.empty()) return collective;
  const auto root = has_root(collective.kind) ? std::optional(collective.root) : std::nullopt;
  auto unequal = make_collective(collective.kind, collective.rank_count, root, rows.shares);
  if (unequal) return unequal;
  return fail(unequal.error().code, rows.file + ": " + unequal.error().message, unequal.error().help);
}

OrStop<void> check_equal(const compare::Measurements& rows, const std::string& what) {
  if (rows.shares.empty()) return {};
  return stop({ErrorCode::unsupported, rows.file + " is of unequal blocks or shards, and " + what + " takes equal ones",
               "espalier compare MACHINE " + rows.file + " predicts them as they are"});
}

Bytes predictable_size(Bytes size, const Collective& collective) {
  if (!collective.shares.empty()) return {std::max(size.count / element_size, std::int64_t{1}) * element_size};
  const std::int64_t whole = element_size * (has_root(collective.kind) ? 1 : collective.rank_count);
  return {std::max(size.count / whole * whole, size.count < whole ? element_size : whole)};
}

void keep_whole(compare::Measurements& rows) {
  const auto is_of_all = [](const compare::Measurement& row) { return row.members.empty(); };
  if (std::ranges::none_of(rows.rows, is_of_all)) return;
  const auto erased = std::erase_if(rows.rows, [&](const auto& row) { return !is_of_all(row); });
  if (erased == 0) return;
  rows.warnings.push_back(fmt::format("{}: {} of pairs of GPUs {} left out; diagnose takes them", rows.file,
                                      counted(erased, "row"), erased == 1 ? "is" : "are"));
}

void keep_ranks(compare::Measurements& rows, std::size_t ranks) {
  const auto is_of_others = [&](const compare::Measurement& row) { return row.ranks > 0 && row.ranks != ranks; };
  const bool has_own = std::ranges::count(rows.rows, ranks, &compare::Measurement::ranks) > 0;
  const auto erased = has_own ? std::erase_if(rows.rows, is_of_others) : 0;
  if (erased == 0) return;
  rows.warnings.push_back(fmt::format("{}: {} measured on other numbers of ranks than {} {} left out", rows.file,
                                      counted(erased, "row"), ranks, erased == 1 ? "is" : "are"));
}

OrStop<std::map<std::string, std::set<std::int64_t>>> sizes_by_collective(const compare::Measurements& rows,
                                                                          const Topology& topology) {
  std::map<std::string, std::set<std::int64_t>> sizes;
  for (const compare::Measurement& row : rows.rows) {
    if (!compare::may_be_of(row, topology.rank_count())) {
      return stop(
          {ErrorCode::invalid_input,
           fmt::format("{}:{}: measured on {} {}, and {} has {}", rows.file, row.line, compare::describe_ranks(row),
                       row.ranks == 1 ? "rank" : "ranks", topology.name(), topology.rank_count()),
           row.members.empty() ? "name the machine that was measured, or its part with --ranks"
                               : "each row is of two GPUs: espalier diagnose MACHINE " + rows.file});
    }
    if (row.collective.empty()) {
      return usage({ErrorCode::invalid_input, fmt::format("{} does not say which collective it measured", rows.file),
                    "name it with --collective, such as --collective all_reduce"});
    }
    if (row.collective == "hypercube") {
      return stop({ErrorCode::unsupported, rows.file + " is of hypercube_perf, whose exchange is no collective of NCCL",
                   "measure with all_gather_perf, which ends with the same data"});
    }
    sizes[row.collective].insert(row.size.count);
  }
  return sizes;
}

OrStop<compare::Measurements> predict_rows(const Console& console, const Topology& topology,
                                           const compare::Measurements& rows, const forecast::Software& profile,
                                           const std::string& algorithm) {
  const auto sizes = sizes_by_collective(rows, topology);
  if (!sizes) return tl::unexpected(sizes.error());
  const auto algorithms = parse_algorithms(algorithm, true);
  if (!algorithms) return usage(algorithms.error());
  std::set<std::string> measured;
  for (const compare::Measurement& row : rows.rows) measured.insert(row.algorithm);
  compare::Measurements predicted{topology.name(), "simulation", topology.name(), {}, {}, {}};
  forecast::RunOptions options;
  options.profile = std::make_shared<const forecast::Software>(profile);
  for (const auto& [name, of_collective] : *sizes) {
    const auto named = default_collective(name, topology);
    if (!named) return stop(named.error());
    const auto collective = with_shares_of(rows, *named);
    if (!collective) return stop(collective.error());
    predicted.shares = collective->shares;
    const auto candidates = plan_shown(
        console, {.machine = &topology, .collective = *collective, .algorithms = *algorithms, .how = options});
    if (!candidates) return stop(candidates.error());
    forecast::CandidateRuns runs(topology, *candidates, options);
    Progress progress(console, "simulating", of_collective.size());
    for (const std::int64_t size : of_collective) {
      progress.step(fmt::format("{} {} B", name, size));
      const auto run = runs.run(algorithm, predictable_size({size}, *collective));
      if (!run) return stop(run.error());
      compare::Measurement row;
      row.collective = name;
      row.ranks = collective->rank_count;
      row.size = {size};
      // Who measured the algorithm did not always say with which protocol, or what nccl was.
      row.algorithm = measured.contains(run->planner()) ? run->planner() : run->by();
      if (measured.contains(algorithm)) row.algorithm = algorithm;
      row.chunk = run->report.chunk;
      row.seconds = run->report.elapsed.seconds();
      predicted.rows.push_back(std::move(row));
    }
  }
  return predicted;
}

}  // namespace espalier::cli
