#include "sweep/merge.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "cli/flags/inputs.h"
#include "cli/jobs/stop.h"
#include "cli/output/json_text.h"
#include "cli/output/output_file.h"
#include "cli/verbs/commands.h"
#include "sweep/row_file.h"
#include "sweep/row_text.h"

namespace espalier::cli {
namespace {

struct MergeFlags {
  std::vector<std::string> inputs;
  std::string out;
};

struct Inputs {
  std::vector<sweep::NamedRows> files;
  std::optional<bool> timings;  ///< Nothing while no file had rows.
};

OrStop<Inputs> read_inputs(const Console& console, const MergeFlags& flags) {
  Inputs inputs;
  for (const std::string& path : flags.inputs) {
    const auto format = sweep::format_of(path);
    if (!format) return usage(format.error());
    const auto text = read_whole(console, path);
    if (!text) return stop(text.error());
    auto read = sweep::read_rows(*text, *format, path);
    if (!read) return stop(read.error());
    if (read->whole_bytes < text->size()) {
      console.warn(path + " ends in a torn line, which is left out; its sweep did not finish");
    }
    if (!read->rows.empty() && inputs.timings.value_or(read->timings) != read->timings) {
      return stop({ErrorCode::invalid_input, path + " and the files before it differ in the columns of --timings",
                   "sweep all of them with or all of them without"});
    }
    if (!read->rows.empty()) inputs.timings = read->timings;
    inputs.files.push_back({path, std::move(read->rows)});
  }
  return inputs;
}

OrStop<void> merge(const Console& console, const MergeFlags& flags) {
  sweep::RowStyle style;
  if (!flags.out.empty() && !is_written_straight(flags.out)) {
    const auto format = sweep::format_of(flags.out);
    if (!format) return usage({format.error().code, "-o: " + format.error().message, format.error().help});
    style.format = *format;
  }
  if (const auto checked = sweep::check_replaceable(flags.out); !checked) return stop(checked.error());
  auto inputs = read_inputs(console, flags);
  if (!inputs) return tl::unexpected(inputs.error());
  style.timings = inputs->timings.value_or(false);
  const std::size_t count = inputs->files.size();
  auto merged = sweep::merge_rows(std::move(inputs->files));
  if (!merged) return stop(merged.error());
  if (flags.out.empty() && console.json) {
    console.print(sweep::document_text(merged->rows, style.timings));
    return {};
  }
  const auto written = write_file(flags.out.empty() ? "-" : flags.out,
                                  [&](std::ostream& stream) { return sweep::write_rows(stream, merged->rows, style); });
  if (!written) return stop(written.error());
  if (flags.out.empty()) return {};
  if (console.json) {
    const nlohmann::ordered_json document = {{"schema", "espalier/sweep-merge/1"},
                                             {"out", flags.out},
                                             {"files", count},
                                             {"rows", merged->rows.size()},
                                             {"repeated", merged->repeated}};
    console.print(json_text(document));
    return {};
  }
  console.print(fmt::format("{}: {} row{} of {} file{}{}\n", flags.out, merged->rows.size(),
                            merged->rows.size() == 1 ? "" : "s", count, count == 1 ? "" : "s",
                            merged->repeated > 0 ? fmt::format(", {} repeated", merged->repeated) : ""));
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
  CLI::App* command = app.add_subcommand("merge", "Make one file of the rows of several sweeps or shards");
  command->add_option("ROWS", flags->inputs, "Files of espalier sweep -o, .csv or .jsonl")->required();
  command->add_option("-o,--out", flags->out, "The rows of all, as .csv or .jsonl; standard output as CSV without")
      ->option_text("FILE");
  command->footer(
      examples({"espalier sweep dgx1v -s 1M --shard 1/2 -o part-1.csv && espalier merge part-1.csv -o all.csv",
                "espalier merge part-1.csv part-2.csv -o all.csv", "espalier merge *.jsonl -o all.csv"}) +
      "\nMerged shards are the bytes of the whole sweep. Rows of one run that disagree are an error.");
  command->callback([flags, &session] { session.run = [flags, &session] { return run(session.console, *flags); }; });
}

}  // namespace espalier::cli
