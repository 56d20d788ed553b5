#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/counted.h"
#include "base/parallel.h"
#include "cli/flags/modes.h"
#include "cli/flags/sweep_flags.h"
#include "cli/output/json_text.h"
#include "cli/output/output_file.h"
#include "cli/output/progress.h"
#include "cli/scenarios/scenario_sweep.h"
#include "cli/verbs/commands.h"
#include "sweep/guarded/guarded_sweep.h"
#include "sweep/row_file.h"
#include "sweep/run_sweep.h"
#include "sweep/shard.h"

namespace espalier::cli {
namespace {

struct CommandFlags {
  SweepFlags what;
  SplitFlags splits;
  std::string out;
  bool resume = false;
  std::string shard;
  bool timings = false;
  unsigned jobs = 0;
  bool dry_run = false;
};

struct Outcome {
  std::vector<sweep::Row> rows;  ///< Sorted.
  std::size_t known = 0;         ///< Rows that were there already, also such that are not of this sweep.
};

void sort_rows(std::vector<sweep::Row>& rows) { std::ranges::stable_sort(rows, {}, &sweep::Row::key); }

Result<void> run_all(const Console& console, const CommandFlags& flags, const sweep::Spec& spec,
                     const std::vector<sweep::Unit>& units, std::optional<sweep::RowFile>& file,
                     std::vector<sweep::Row>& rows) {
  const unsigned threads = flags.jobs > 0 ? flags.jobs : std::max(1U, std::thread::hardware_concurrency());
  sweep::GuardedSweep guarded(spec, units, threads);  // Before the thread that shows the progress is there.
  Progress progress(console, "sweeping", sweep::count_rows(units));
  return guarded.read([&](sweep::Row row) -> Result<void> {
    if (!flags.timings) row.timing.reset();
    progress.step(sweep::describe(row.key));
    if (file) {
      if (auto appended = file->append(row); !appended) return appended;
    }
    rows.push_back(std::move(row));
    return {};
  });
}

/// Rows that gave nothing: those that failed by reason, and by algorithm those that it does not plan.
struct Gaps {
  std::map<std::string, std::size_t> failed;
  std::map<std::string, std::size_t> unplanned;

  explicit Gaps(const std::vector<sweep::Row>& rows) {
    for (const sweep::Row& row : rows) {
      if (row.figures) continue;
      row.is_unplanned() ? ++unplanned[row.key.algorithm]
                         : ++failed[row.key.topology + ", " + row.key.algorithm + ": " + row.reason];
    }
  }
  static std::size_t sum(const std::map<std::string, std::size_t>& counts) {
    std::size_t sum = 0;
    for (const auto& [name, count] : counts) sum += count;
    return sum;
  }
};

std::string summary_text(const CommandFlags& flags, const Outcome& outcome, const Gaps& gaps) {
  const std::size_t total = outcome.rows.size();
  std::string text = fmt::format("{}: {} row{}", flags.out, total, total == 1 ? "" : "s");
  if (outcome.known > 0) text += fmt::format(", {} of them there before", outcome.known);
  if (!gaps.unplanned.empty()) text += fmt::format(", {} not planned", Gaps::sum(gaps.unplanned));
  text += gaps.failed.empty() ? "\n" : fmt::format(", {} failed\n", Gaps::sum(gaps.failed));
  constexpr std::size_t max_shown = 8;
  std::size_t shown = 0;
  for (const auto& [reason, count] : gaps.failed) {
    if (++shown > max_shown) break;
    text += fmt::format("  {} x {}\n", count, reason);
  }
  if (gaps.failed.size() > max_shown) text += fmt::format("  ... {} more reasons\n", gaps.failed.size() - max_shown);
  if (gaps.unplanned.empty()) return text;
  std::vector<std::string> counts;
  for (const auto& [algorithm, count] : gaps.unplanned) counts.push_back(fmt::format("{} x {}", count, algorithm));
  return text + fmt::format("  not planned by their algorithm: {}\n", fmt::join(counts, ", "));
}

/// What is said when the rows are in a file.
void print_summary(const Console& console, const CommandFlags& flags, const Outcome& outcome) {
  const Gaps gaps(outcome.rows);
  if (!console.json) return console.print(summary_text(flags, outcome, gaps));
  const nlohmann::ordered_json document = {
      {"schema", "espalier/sweep-summary/1"}, {"out", flags.out},
      {"rows", outcome.rows.size()},          {"known", outcome.known},
      {"failed", Gaps::sum(gaps.failed)},     {"unplanned", Gaps::sum(gaps.unplanned)}};
  console.print(json_text(document));
}

OrStop<sweep::RowFile> open_file(const Console& console, const CommandFlags& flags, const sweep::RowStyle& style) {
  auto file = sweep::RowFile::open(flags.out, style, flags.resume);
  if (!file) {
    const bool is_usage = file.error().code == ErrorCode::invalid_input && !flags.resume;
    return is_usage ? usage(file.error()) : stop(file.error());
  }
  if (file->was_torn()) console.note("a torn line at the end of " + flags.out + " was removed");
  return *std::move(file);
}

OrStop<void> sweep_into(const Console& console, const CommandFlags& flags, const sweep::Spec& spec,
                        std::vector<sweep::Unit> units) {
  sweep::RowStyle style{sweep::RowFormat::csv, flags.timings};
  std::optional<sweep::RowFile> file;
  Outcome outcome;
  const bool is_straight = !flags.out.empty() && is_written_straight(flags.out);
  if (is_straight && flags.resume) {
    return usage(
        {ErrorCode::invalid_input, "--resume: " + flags.out + " keeps no rows to go on with", "name a file with -o"});
  }
  if (!flags.out.empty() && !is_straight) {
    const auto format = sweep::format_of(flags.out);
    if (!format) return usage({format.error().code, "-o: " + format.error().message, format.error().help});
    style.format = *format;
    auto opened = open_file(console, flags, style);
    if (!opened) return tl::unexpected(opened.error());
    file = *std::move(opened);
    outcome.rows = file->rows();
    outcome.known = outcome.rows.size();
    sort_rows(outcome.rows);
    sweep::leave_out(units, outcome.rows);
  }
  if (auto ran = run_all(console, flags, spec, units, file, outcome.rows); !ran) return stop(ran.error());
  sort_rows(outcome.rows);
  if (!file && !is_straight) {
    std::string text = sweep::header_text(style);
    for (const sweep::Row& row : outcome.rows) text += sweep::row_text(row, style);
    console.print_bytes(console.json ? sweep::document_text(outcome.rows, flags.timings) : text);
    return {};
  }
  const auto written =
      write_file(flags.out, [&](std::ostream& stream) { return sweep::write_rows(stream, outcome.rows, style); });
  if (!written) return stop(written.error());
  print_summary(console, flags, outcome);
  return {};
}

/// Which options a sweep over scenarios honours.
std::optional<Error> find_idle_of_scenarios(const CLI::App& command) {
  return find_idle_option(
      command, {"a sweep over scenarios",
                "they name their collectives, sizes, algorithms and circumstances themselves, and each row is one run",
                {"TOPOLOGY", "--scenario", "--split", "--parameter", "--models", "--profiles", "--without", "--slow",
                 "--failures", "--seeds", "--spec", "--out", "--resume", "--shard", "--jobs", "--dry-run"},
                {}});
}

/// Refuses what does not go with sweeping over scenarios, or over collectives.
std::optional<Error> find_idle(const CLI::App& command, const CommandFlags& flags) {
  if (!flags.what.scenarios.empty()) {
    const auto idle = find_idle_of_scenarios(command);
    return idle ? idle : flags.what.find_beside_scenarios();
  }
  if (!flags.splits.are_given()) return std::nullopt;
  return Error{ErrorCode::invalid_input, "--split is of scenarios", "name them with --scenario"};
}

OrStop<void> sweep_all(const Console& console, const CLI::App& command, CommandFlags flags) {
  if (auto read = flags.what.read_file(console); !read) return stop(read.error());
  if (!flags.splits.are_given()) flags.splits.written = flags.what.splits;
  if (const auto idle = find_idle(command, flags)) return usage(*idle);
  sweep::Shard shard;
  if (!flags.shard.empty()) {
    const auto parsed = sweep::parse_shard(flags.shard);
    if (!parsed) return usage(parsed.error());
    shard = *parsed;
  }
  if (!flags.what.scenarios.empty()) {
    const unsigned threads = flags.jobs > 0 ? flags.jobs : usable_threads();
    return sweep_scenarios(console, flags.what, {flags.splits, shard, threads, flags.out, flags.resume, flags.dry_run});
  }
  auto spec = flags.what.resolve(console);
  if (!spec) return tl::unexpected(spec.error());
  auto units = sweep::list_units(*spec);
  if (!units) return usage(units.error());
  const std::uint64_t whole = sweep::count_rows(*units);
  sweep::keep_shard(*units, shard);
  if (flags.dry_run) {
    if (console.json) {
      const nlohmann::ordered_json document = {{"schema", "espalier/sweep-count/1"},
                                               {"runs", sweep::count_rows(*units)},
                                               {"of", whole},
                                               {"networks", units->size()}};
      console.print(json_text(document));
      return {};
    }
    console.print(fmt::format("{} of {}, on {} with a collective each\n", counted(sweep::count_rows(*units), "run"),
                              whole, counted(units->size(), "network")));
    return {};
  }
  return sweep_into(console, flags, *spec, *std::move(units));
}

ExitCode run(const Console& console, const CLI::App& command, const CommandFlags& flags) {
  const auto done = sweep_all(console, command, flags);
  if (done) return ExitCode::ok;
  if (done.error().is_shown) return ExitCode::check_failed;
  return done.error().is_usage ? console.refuse_usage(done.error().error) : console.refuse(done.error().error);
}

}  // namespace

void add_sweep_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<CommandFlags>();
  CLI::App* command =
      app.add_subcommand("sweep", "Simulate every combination of many values, on all cores, a row each");
  flags->what.add_to(*command);
  command
      ->add_option("--scenario", flags->what.scenarios,
                   "Sweep over scenarios instead, on the machines they name or each TOPOLOGY; may be repeated")
      ->option_text("FILE")
      ->allow_extra_args(false);
  flags->splits.add_to(*command);
  CLI::Option* const out =
      command->add_option("-o,--out", flags->out, "Rows as .csv or .jsonl; standard output without")
          ->option_text("FILE");
  CLI::Option* const resume =
      command->add_flag("--resume", flags->resume, "Go on with a file that is there: its rows are not run again")
          ->needs(out);
  command->add_option("--shard", flags->shard, "Only the i-th of n parts, for as many machines")->option_text("i/n");
  CLI::Option* const jobs = command->add_option("-j,--jobs", flags->jobs, "Threads")->option_text("N (all cores)");
  CLI::Option* const timings = command->add_flag(
      "--timings", flags->timings, "Two more columns, never the same twice: seconds planned and simulated");
  command->add_flag("--dry-run", flags->dry_run, "Only count the runs")->excludes(out, resume, jobs, timings);
  command->footer(
      examples(
          {"espalier sweep dgx1v dgx2 -c all_reduce,all_gather -a ring,tree,auto -o rows.csv",
           "espalier sweep dgx1v --failures links,nodes -s 64M -o failures.csv",
           "espalier sweep dgx1v -a ring --jitter 2%,10% --seeds 1-20 -s 1M -o jitter.jsonl",
           "espalier sweep dgx-h100 -a ring,tree --protocols all -b 1K -e 64M -o protocols.csv",
           "espalier sweep --spec sweep.yaml --shard $SLURM_ARRAY_TASK_ID/64 --resume -o part-$SLURM_ARRAY_TASK_ID.csv",
           "espalier sweep dgx-h100-x4 --scenario training-step --split tensor=8 --without box0.nic0 -o steps.csv",
           "espalier merge part-*.csv -o all.csv"}) +
      "\nRows are docs/sweeps.md. Interrupted, the file has every finished row, and --resume does the rest.");
  command->callback([flags, command, &session] {
    session.run = [flags, command, &session] { return run(session.console, *command, *flags); };
  });
}

}  // namespace espalier::cli
