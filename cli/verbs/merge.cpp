#include "sweep/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/counted.h"
#include "cli/flags/inputs.h"
#include "cli/jobs/stop.h"
#include "cli/output/json_text.h"
#include "cli/output/output_file.h"
#include "cli/verbs/commands.h"
#include "compare/read/rank_timelines.h"
#include "schedule/timeline/chrome_trace.h"
#include "sweep/row_file.h"
#include "sweep/row_text.h"
#include "sweep/scenario_rows.h"

namespace espalier::cli {
namespace {

struct MergeFlags {
  std::vector<std::string> inputs;
  std::string out;
};

/// One of the files, as text.
struct RowText {
  std::string path;
  std::string text;
  sweep::RowFormat format = sweep::RowFormat::csv;
};

/// What the files make together.
struct AllRows {
  std::function<Result<void>(std::ostream&, const sweep::RowStyle&)> write;
  std::function<std::string()> document;
  std::size_t rows = 0;
  std::size_t repeated = 0;
  bool timings = false;
};

void warn_of_torn_line(const Console& console, const RowText& file, std::size_t whole_bytes) {
  if (whole_bytes == file.text.size()) return;
  console.warn(file.path + " ends in a torn line, which is left out; its sweep did not finish");
}

OrStop<AllRows> merge_collectives(const Console& console, const std::vector<RowText>& texts) {
  std::vector<sweep::NamedRows> files;
  std::optional<bool> timings;  // Nothing while no file had rows.
  for (const RowText& file : texts) {
    auto read = sweep::read_rows(file.text, file.format, file.path);
    if (!read) return stop(read.error());
    warn_of_torn_line(console, file, read->whole_bytes);
    if (!read->rows.empty() && timings.value_or(read->timings) != read->timings) {
      return stop({ErrorCode::invalid_input, file.path + " and the files before it differ in the columns of --timings",
                   "sweep all of them with or all of them without"});
    }
    if (!read->rows.empty()) timings = read->timings;
    files.push_back({file.path, std::move(read->rows)});
  }
  auto merged = sweep::merge_rows(std::move(files));
  if (!merged) return stop(merged.error());
  const auto rows = std::make_shared<const std::vector<sweep::Row>>(std::move(merged->rows));
  const bool has_timings = timings.value_or(false);
  return AllRows{
      [rows](std::ostream& stream, const sweep::RowStyle& style) { return sweep::write_rows(stream, *rows, style); },
      [rows, has_timings] { return sweep::document_text(*rows, has_timings); }, rows->size(), merged->repeated,
      has_timings};
}

OrStop<AllRows> merge_scenarios(const Console& console, const std::vector<RowText>& texts) {
  std::vector<sweep::NamedCells> files;
  for (const RowText& file : texts) {
    files.push_back({file.path, {}});
    const auto read = sweep::read_cells(file.text, sweep::scenario_form(), file.format, file.path,
                                        sweep::take_scenarios_into(files.back().rows));
    if (!read) return stop(read.error());
    warn_of_torn_line(console, file, read->whole_bytes);
  }
  auto merged = sweep::merge_scenario_rows(std::move(files));
  if (!merged) return stop(merged.error());
  const auto rows = std::make_shared<const std::vector<sweep::Cells>>(std::move(merged->rows));
  return AllRows{[rows](std::ostream& stream, const sweep::RowStyle& style) {
                   return sweep::write_cells(stream, sweep::scenario_form(), *rows, style);
                 },
                 [rows] { return sweep::document_text(sweep::scenario_form(), *rows); }, rows->size(), merged->repeated,
                 false};
}

OrStop<std::vector<RowText>> read_texts(const Console& console, const MergeFlags& flags) {
  std::vector<RowText> texts;
  for (const std::string& path : flags.inputs) {
    const auto format = sweep::format_of(path);
    if (!format) return usage(format.error());
    auto text = read_whole(console, path);
    if (!text) return stop(text.error());
    texts.push_back({path, *std::move(text), *format});
  }
  return texts;
}

/// The timelines of several ranks, where the first file is one: as one Chrome trace. False: the files are rows.
OrStop<bool> merge_timelines(const Console& console, const MergeFlags& flags) {
  std::vector<compare::RankTimeline> parts;
  for (const std::string& path : flags.inputs) {
    const auto text = read_whole(console, path);
    if (!text) return stop(text.error());
    const bool is_timeline =
        text->substr(0, text->find("\"traceEvents\"")).find("\"espalier_timeline\"") != std::string::npos;
    if (!is_timeline && parts.empty()) return false;
    auto timeline = read_chrome_trace(*text, path);
    if (!timeline) return stop(timeline.error());
    parts.push_back({path, *std::move(timeline), compare::read_timeline_clock(*text)});
  }
  const auto merged = compare::merge_rank_timelines(parts);
  if (!merged) return stop(merged.error());
  const auto written = write_file(flags.out.empty() ? "-" : flags.out,
                                  [&](std::ostream& stream) { return write_chrome_trace(stream, *merged); });
  if (!written) return stop(written.error());
  if (flags.out.empty()) return true;
  if (console.json) {
    console.print(json_text({{"schema", "espalier/sweep-merge/1"},
                             {"out", flags.out},
                             {"files", parts.size()},
                             {"rows", merged->spans.size()},
                             {"repeated", 0}}));
    return true;
  }
  console.print(
      fmt::format("{}: {} of {}\n", flags.out, counted(merged->spans.size(), "span"), counted(parts.size(), "file")));
  return true;
}

OrStop<void> merge(const Console& console, const MergeFlags& flags) {
  const auto timelines = merge_timelines(console, flags);
  if (!timelines) return tl::unexpected(timelines.error());
  if (*timelines) return {};
  sweep::RowStyle style;
  if (!flags.out.empty() && !is_written_straight(flags.out)) {
    const auto format = sweep::format_of(flags.out);
    if (!format) return usage({format.error().code, "-o: " + format.error().message, format.error().help});
    style.format = *format;
  }
  if (const auto checked = sweep::check_replaceable(flags.out); !checked) return stop(checked.error());
  const auto texts = read_texts(console, flags);
  if (!texts) return tl::unexpected(texts.error());
  const auto is_of_scenarios = [](const RowText& file) { return begins_as(sweep::scenario_form(), file.text); };
  const auto all = std::ranges::any_of(*texts, is_of_scenarios) ? merge_scenarios(console, *texts)
                                                                : merge_collectives(console, *texts);
  if (!all) return tl::unexpected(all.error());
  style.timings = all->timings;
  if (flags.out.empty() && console.json) {
    console.print(all->document());
    return {};
  }
  const auto written =
      write_file(flags.out.empty() ? "-" : flags.out, [&](std::ostream& stream) { return all->write(stream, style); });
  if (!written) return stop(written.error());
  if (flags.out.empty()) return {};
  if (console.json) {
    console.print(json_text({{"schema", "espalier/sweep-merge/1"},
                             {"out", flags.out},
                             {"files", texts->size()},
                             {"rows", all->rows},
                             {"repeated", all->repeated}}));
    return {};
  }
  console.print(fmt::format("{}: {} of {}{}\n", flags.out, counted(all->rows, "row"), counted(texts->size(), "file"),
                            all->repeated > 0 ? fmt::format(", {} repeated", all->repeated) : ""));
  return {};
}

ExitCode run(const Console& console, const MergeFlags& flags) {
  const auto done = merge(console, flags);
  if (done) return ExitCode::ok;
  return done.error().is_usage ? console.refuse_usage(done.error().error) : console.refuse(done.error().error);
}

}  // namespace

void add_merge_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<MergeFlags>();
  CLI::App* command = app.add_subcommand(
      "merge", "Make one file of the rows of several sweeps or shards, or of timelines of several ranks");
  command
      ->add_option(
          "ROWS", flags->inputs,
          "Files of espalier sweep -o, .csv or .jsonl, all of collectives or all of scenarios, or timelines that the "
          "profiler plug-in wrote, one of each rank")
      ->required();
  command->add_option("-o,--out", flags->out, "The rows of all, as .csv or .jsonl; standard output as CSV without")
      ->option_text("FILE");
  command->footer(
      examples({"espalier sweep dgx1v -s 1M --shard 1/2 -o part-1.csv && espalier merge part-1.csv -o all.csv",
                "espalier merge part-1.csv part-2.csv -o all.csv", "espalier merge *.jsonl -o all.csv",
                "espalier merge run.*.rank*.json -o run.json"}) +
      "\nMerged shards are the bytes of the whole sweep. Rows of one run that disagree are an error.");
  command->callback([flags, &session] { session.run = [flags, &session] { return run(session.console, *flags); }; });
}

}  // namespace espalier::cli
