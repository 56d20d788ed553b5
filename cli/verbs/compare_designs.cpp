#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/format_units.h"
#include "base/parse_units.h"
#include "cli/flags/algorithm_flags.h"
#include "cli/flags/inputs.h"
#include "cli/flags/modes.h"
#include "cli/jobs/design_runs.h"
#include "cli/output/json_text.h"
#include "cli/output/table.h"
#include "cli/reports/describe_bound.h"
#include "cli/reports/scenario_output.h"
#include "cli/verbs/commands.h"
#include "forecast/question.h"

namespace espalier::cli {
namespace {

struct DesignFlags {
  std::vector<std::string> designs;
  std::string collectives = "all_reduce,all_gather,all_to_all";
  std::string sizes = "64K,4M,256M";
  std::string algorithm = "auto";
  std::vector<std::string> parameters;
  bool no_failures = false;
  bool strict = false;
  ScenarioFlags scenario;
  ProfileFlags profile;
};

OrStop<DesignQuestions> read_questions(const DesignFlags& flags) {
  DesignQuestions questions;
  std::istringstream collectives(flags.collectives);
  for (std::string name; std::getline(collectives, name, ',');) {
    const auto kind = parse_collective(name);
    if (!kind) return usage(kind.error());
    if (std::ranges::find(questions.collectives, *kind) == questions.collectives.end()) {
      questions.collectives.push_back(*kind);
    }
  }
  std::istringstream sizes(flags.sizes);
  for (std::string text; std::getline(sizes, text, ',');) {
    const auto size = parse_size(text);
    if (!size) return usage({size.error().code, "--sizes: " + size.error().message, size.error().help});
    constexpr std::int64_t element = 4;
    if (size->count < element) {
      return usage({ErrorCode::invalid_input, "--sizes: a message has at least one element of 4 bytes", ""});
    }
    questions.sizes.push_back({size->count / element * element});
  }
  if (questions.collectives.empty() || questions.sizes.empty()) {
    return usage({ErrorCode::invalid_input, "--collectives and --sizes name at least one each", "leave them out"});
  }
  const auto algorithms = parse_algorithms(flags.algorithm, false, true);
  if (!algorithms) return usage(algorithms.error());
  if (algorithms->size() != 1) {
    return usage({ErrorCode::invalid_input, "-a: designs are compared by one algorithm",
                  "name one, such as -a ring; auto is the fastest of all"});
  }
  questions.algorithms = *algorithms;
  questions.algorithm = algorithms->front();
  questions.fails = !flags.no_failures;
  questions.scenario = flags.scenario;
  questions.profile = flags.profile;
  for (std::size_t i = 0; i < flags.designs.size(); ++i) {
    if (flags.designs[i] == "-" || std::ranges::count(flags.designs, flags.designs[i]) > 1) {
      return usage({ErrorCode::invalid_input,
                    flags.designs[i] == "-" ? "designs are read from files" : flags.designs[i] + " is named twice",
                    "name different files or shipped machines"});
    }
  }
  return questions;
}

std::string best_designs(const std::vector<Design>& designs, const std::vector<double>& values) {
  const auto most = std::ranges::max_element(values);
  constexpr double as_good = 0.9995;
  std::vector<std::string> best;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] >= *most * as_good) best.push_back(designs[i].name);
  }
  return best.size() == designs.size() ? "all" : fmt::format("{}", fmt::join(best, ", "));
}

/// A row per collective's bound and per size of it.
/// `has_ranges`: with what is known of errors.
Table collectives_table(const std::vector<Design>& designs, const DesignQuestions& questions, bool has_ranges) {
  Table table;
  table.add_column("collective", "", Table::Align::left);
  table.add_column("size", "(B)");
  for (const Design& design : designs) {
    table.add_column(design.name, "(us)");
    table.add_column("busbw", "(GB/s)", Table::Align::right, design.name);
    table.add_column("of bound", "(%)", Table::Align::right, design.name);
    table.add_column("by", "", Table::Align::left, design.name);
    if (has_ranges) add_range_columns(table, design.name);
  }
  table.add_column("best busbw", "", Table::Align::left);
  for (std::size_t c = 0; c < questions.collectives.size(); ++c) {
    std::vector<std::string> bounds = {std::string(to_string(questions.collectives[c])), "bound"};
    std::vector<double> values;
    for (const Design& design : designs) {
      const auto& bound = design.collectives[c].bound_busbw;
      bounds.insert(bounds.end(), {"", gigabytes_per_second(bound), "", ""});
      if (has_ranges) bounds.insert(bounds.end(), 3, "");
      values.push_back(bound.value_or(0));
    }
    bounds.push_back(best_designs(designs, values));
    table.add_row(std::move(bounds));
    for (std::size_t s = 0; s < questions.sizes.size(); ++s) {
      std::vector<std::string> row = {std::string(to_string(questions.collectives[c])),
                                      std::to_string(questions.sizes[s].count)};
      values.clear();
      for (const Design& design : designs) {
        const DesignRun& run = design.collectives[c].runs[s];
        row.insert(row.end(), {fmt::format("{:.2f}", run.seconds * 1e6), fmt::format("{:.2f}", run.busbw / 1e9),
                               percent(run.of_bound), run.by});
        if (has_ranges) {
          add_range_cells(row, design.collectives[c].errors.at(s, questions.algorithm), run.seconds);
        }
        values.push_back(run.busbw);
      }
      row.push_back(best_designs(designs, values));
      table.add_row(std::move(row));
    }
  }
  return table;
}

std::string design_failures_text(const std::vector<Design>& designs, CollectiveKind kind) {
  if (!designs.front().failures) return {};
  Table table;
  table.add_column("design", "", Table::Align::left);
  table.add_column("failures");
  table.add_column("cost nothing");
  table.add_column("cut ranks off");
  table.add_column("loss", "(%)");
  table.add_column("by the worst other one", "", Table::Align::left);
  for (const Design& design : designs) {
    const DesignFailures& failures = *design.failures;
    table.add_row({design.name, std::to_string(failures.all), std::to_string(failures.harmless),
                   std::to_string(failures.cut_off), percent(failures.loss), failures.worst});
  }
  return fmt::format("#\n# one failure: what is left of the bound of {}\n", to_string(kind)) + table.text();
}

std::string scenario_run_text(const std::vector<Design>& designs) {
  if (!designs.front().scenario) return {};
  const bool trains = designs.front().scenario->tokens_per_second.has_value();
  std::string errors;
  Table table;
  table.add_column("design", "", Table::Align::left);
  table.add_column("elapsed", "", Table::Align::right);
  if (trains) {
    table.add_column("tokens/s");
    table.add_column("FLOPs utilisation", "(%)");
  }
  for (const char* part : {"compute", "exposed", "waiting", "idle"}) table.add_column(part, "(%)");
  for (const Design& design : designs) {
    const DesignScenario& run = *design.scenario;
    std::vector<std::string> row = {design.name, format_duration(run.elapsed)};
    if (trains) {
      row.push_back(fmt::format("{:.0f}", run.tokens_per_second.value_or(0)));
      row.push_back(percent(run.model_flops_utilisation.value_or(0)));
    }
    for (const double part : {run.compute, run.exposed, run.waiting, run.idle}) row.push_back(percent(part));
    table.add_row(std::move(row));
    if (run.training) errors += fmt::format("# {}: {}\n", design.name, step_range_text(*run.training));
  }
  return fmt::format("#\n# {}\n", designs.front().scenario->name) + table.text() + errors;
}

/// What is known of errors, design by design; where nothing was measured of the algorithm, once for each.
std::string design_errors_text(const std::vector<Design>& designs, const DesignQuestions& questions) {
  const bool is_measured = forecast::is_nccl_algorithm(questions.algorithm);
  std::string text;
  for (const Design& design : designs) {
    for (const DesignCollective& collective : design.collectives) {
      const auto sentences = errors_sentences(collective.errors, std::span(&questions.algorithm, 1));
      for (std::size_t i = 0; i < (is_measured ? sentences.size() : std::min<std::size_t>(sentences.size(), 1)); ++i) {
        text += fmt::format("# {}{}: {}\n", design.name,
                            is_measured ? fmt::format(", {}", to_string(collective.kind)) : "", sentences[i]);
      }
      if (!is_measured) break;
    }
  }
  return text.empty() ? text : "#\n" + text;
}

std::string designs_text(const std::vector<Design>& designs, const DesignQuestions& questions) {
  std::string text = "#";
  for (const Design& design : designs) {
    text += fmt::format("  {}: {} ranks{}", design.name, design.ranks,
                        design.profile.empty() ? std::string() : ", profile " + design.profile);
  }
  return text + "\n#\n" + collectives_table(designs, questions, false).text() + design_errors_text(designs, questions) +
         design_failures_text(designs, questions.collectives.front()) + scenario_run_text(designs);
}

nlohmann::ordered_json number_or_null(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json design_json(const Design& design, const std::string& algorithm) {
  nlohmann::ordered_json entry = {{"topology", design.name}, {"ranks", design.ranks}, {"links", design.links}};
  entry["profile"] = design.profile.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(design.profile);
  auto& collectives = entry["collectives"] = nlohmann::ordered_json::array();
  for (const DesignCollective& collective : design.collectives) {
    nlohmann::ordered_json results = nlohmann::ordered_json::array();
    for (const DesignRun& run : collective.runs) {
      results.push_back({{"size", run.size.count},
                         {"time", run.seconds},
                         {"busbw", run.busbw},
                         {"of_bound", run.of_bound},
                         {"algorithm", run.by}});
      if (collective.errors.by_size.empty()) continue;
      results.back()["range"] = range_json(collective.errors.at(results.size() - 1, algorithm), run.seconds);
    }
    collectives.push_back({{"collective", to_string(collective.kind)},
                           {"bound_busbw", number_or_null(collective.bound_busbw)},
                           {"results", results}});
  }
  entry["failures"] = nullptr;
  if (design.failures) {
    entry["failures"] = {{"all", design.failures->all},
                         {"harmless", design.failures->harmless},
                         {"cut_off", design.failures->cut_off},
                         {"worst", design.failures->worst},
                         {"loss", design.failures->loss}};
  }
  entry["scenario"] = nullptr;
  if (design.scenario) {
    entry["scenario"] = {{"scenario", design.scenario->name},
                         {"elapsed", design.scenario->elapsed.seconds()},
                         {"compute", design.scenario->compute},
                         {"exposed", design.scenario->exposed},
                         {"waiting", design.scenario->waiting},
                         {"idle", design.scenario->idle},
                         {"tokens_per_second", number_or_null(design.scenario->tokens_per_second)},
                         {"model_flops_utilisation", number_or_null(design.scenario->model_flops_utilisation)}};
    if (const auto& training = design.scenario->training) {
      entry["scenario"]["range"] =
          step_range_json(*training, design.scenario->elapsed.seconds() / static_cast<double>(training->steps));
    }
  }
  return entry;
}

ExitCode run(const Console& console, const DesignFlags& flags) {
  const auto show = [&](const Stop& why) {
    if (why.is_shown) return why.is_usage ? ExitCode::wrong_usage : ExitCode::check_failed;
    return why.is_usage ? console.refuse_usage(why.error) : console.refuse(why.error);
  };
  const auto questions = read_questions(flags);
  if (!questions) return show(questions.error());
  std::vector<Design> designs;
  for (const std::string& name : flags.designs) {
    TopologyFlags topology;
    topology.argument = name;
    topology.parameters = flags.parameters;
    topology.strict = flags.strict;
    auto design = examine_design(console, topology, *questions);
    if (!design) return show(design.error());
    designs.push_back(*std::move(design));
  }
  if (console.csv) {
    console.print_bytes(collectives_table(designs, *questions, true).csv());
  } else if (console.json) {
    nlohmann::ordered_json document = {{"schema", "espalier/designs/1"}};
    auto& entries = document["designs"] = nlohmann::ordered_json::array();
    for (const Design& design : designs) entries.push_back(design_json(design, questions->algorithm));
    console.print(json_text(document));
  } else {
    console.print(designs_text(designs, *questions));
  }
  return ExitCode::ok;
}

}  // namespace

void add_compare_designs_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<DesignFlags>();
  CLI::App* command = app.add_subcommand(
      "compare-designs", "Several machines side by side: bounds, predicted times, failures, a scenario");
  command->add_option("DESIGN", flags->designs, "Topologies: YAML files or shipped machines")
      ->required()
      ->option_text("TOPOLOGY TOPOLOGY ...")
      ->expected(2, 16);
  command->add_option("-c,--collectives", flags->collectives, "Comma-separated")
      ->option_text("NAMES (all_reduce,all_gather,all_to_all)");
  command->add_option("-s,--sizes", flags->sizes, "Message sizes, comma-separated")->option_text("SIZES (64K,4M,256M)");
  command
      ->add_option("-a,--algorithm", flags->algorithm,
                   "One of " + algorithm_names() + "; under profiles also nccl: what NCCL would run")
      ->option_text("NAME (auto)");
  command->add_option("-p,--parameter", flags->parameters, "Set a parameter of compact files, of each; may be repeated")
      ->option_text("NAME=VALUE")
      ->allow_extra_args(false);
  command->add_flag("--no-failures", flags->no_failures, "Do not look at what single failures cost");
  command->add_flag("--strict", flags->strict, "Warnings are errors");
  command
      ->add_option("--scenario", flags->scenario.file, "Also run a scenario on each: a YAML file or shipped scenario")
      ->option_text("FILE");
  flags->profile.add_to(*command);
  add_csv_to(*command, session.console);
  command->footer(
      examples({"espalier compare-designs dgx-a100 dgx-h100",
                "espalier compare-designs dgx1v dgx1v-degraded -c all_gather -s 64K,64M -a ring --profile ideal",
                "espalier compare-designs dgx-a100 dgx-h100 -c all_reduce -s 64M --no-failures --csv"}) +
      "\nTimes are those under each machine's profile (--profile ideal: of the links alone). Failures are single "
      "cables and forwarding nodes, and what they\n"
      "take of the bound of the first collective (topo degrade shows them all). A scenario has to fit each\n"
      "machine's ranks.");
  command->callback([flags, &session] { session.run = [flags, &session] { return run(session.console, *flags); }; });
}

}  // namespace espalier::cli
