#include "cli/prediction_flags.h"

#include <fmt/format.h>

#include "base/parse_units.h"
#include "cli/algorithm_flags.h"
#include "schedule/verify.h"

namespace espalier::cli {
namespace {

Result<std::optional<Bytes>> parse_chunk(const std::string& text, ElementType type) {
  if (text.empty()) return std::optional<Bytes>();
  const auto chunk = parse_size(text);
  if (!chunk) return fail(chunk.error().code, "--chunk: " + chunk.error().message, chunk.error().help);
  if (chunk->count >= size_of(type)) return std::optional(*chunk);
  return fail(ErrorCode::invalid_input, "--chunk: a chunk holds at least one element", "");
}

/// What of the collective's flags a plan contradicts, or nothing.
std::optional<Error> find_contradiction(const CollectiveFlags& flags, const Collective& collective) {
  if (!flags.name.empty() && flags.name != to_string(collective.kind)) {
    return Error{ErrorCode::invalid_input,
                 fmt::format("the plan is one of {}, not of {}", to_string(collective.kind), flags.name),
                 "leave COLLECTIVE out"};
  }
  if (!flags.shares.empty()) {
    return Error{ErrorCode::invalid_input, "--shares: the plan has its shares already", "leave --shares out"};
  }
  if (!flags.root.empty()) {
    return Error{ErrorCode::invalid_input, "-r: the plan has its root already", "leave -r out"};
  }
  return std::nullopt;
}

}  // namespace

void PredictionFlags::add_to(CLI::App& command) {
  input.add_to(command, "TOPOLOGY|PLAN", false);
  input.add_without_to(command);
  collective.add_to(command, false);
  packing.add_to(command);
  command
      .add_option("-a,--algorithm", algorithms,
                  fmt::format("{}: {} ({})", verb.algorithms_help, algorithm_names(), verb.algorithms))
      ->option_text("NAMES");
  verb.size.empty() ? sizes.add_to(command) : sizes.add_one_to(command);
  command.add_option("--chunk", chunk, "Largest chunk; chosen per schedule and size when absent")->option_text("SIZE");
  command.add_option("--model", model, "How a link is shared: link (chunks take turns) or fair (max-min)")
      ->option_text("link|fair (link)");
  command.add_option("-t,--topology", plan_topology, verb.does + " a plan on this topology instead of its own")
      ->option_text("FILE");
  command
      .add_option("--scenario", scenario.file,
                  verb.does + " a scenario instead: a YAML file, - or shipped scenario (docs/scenarios.md)")
      ->option_text("FILE");
  conditions.add_to(command, "Of the jitter; of all that a scenario draws, instead of its own");
}

std::optional<Error> PredictionFlags::find_conflict() const {
  if (scenario.file.empty()) {
    if (!input.argument.empty()) return std::nullopt;
    return Error{ErrorCode::invalid_input, verb.name + " needs a TOPOLOGY or PLAN, or --scenario",
                 fmt::format("such as espalier {} dgx-h100 all_reduce", verb.name)};
  }
  if (conditions.any()) {
    return Error{ErrorCode::invalid_input, "a scenario says itself what endpoints add and how much hops jitter",
                 "write 'endpoints:' and 'jitter:' in the scenario"};
  }
  const auto limits = packing.resolve();
  const bool has_other = sizes != PredictionFlags(verb).sizes || !collective.name.empty() || !algorithms.empty() ||
                         !chunk.empty() || !plan_topology.empty() || !limits || limits->any();
  if (!has_other) return std::nullopt;
  return Error{ErrorCode::invalid_input, "a scenario names its collectives, sizes, algorithms and chunk itself",
               "leave all but TOPOLOGY, " + verb.beside_scenario + " out"};
}

ScenarioFlags PredictionFlags::of_scenario() const {
  ScenarioFlags flags = scenario;
  flags.model = model;
  flags.seed = conditions.seed;
  return flags;
}

Result<Prediction> PredictionFlags::resolve() const {
  const auto element = parse_element_type(sizes.type);
  if (!element) return tl::unexpected(element.error());
  Prediction prediction;
  prediction.type = to_string(*element);
  prediction.options.element_size = size_of(*element);
  auto several = parse_sizes(sizes, *element);
  if (!several) return tl::unexpected(several.error());
  prediction.sizes = *std::move(several);
  const auto largest = parse_chunk(chunk, *element);
  if (!largest) return tl::unexpected(largest.error());
  prediction.options.chunk = *largest;
  const auto kind = sim::parse_model(model.empty() ? "link" : model);
  if (!kind) return fail(kind.error().code, "--model: " + kind.error().message, kind.error().help);
  prediction.options.model = *kind;
  const auto circumstances = conditions.resolve();
  if (!circumstances) return tl::unexpected(circumstances.error());
  prediction.options.circumstances = *circumstances;
  return prediction;
}

Result<Collective> PredictionFlags::resolve_collective(const Topology& topology) const {
  if (!collective.name.empty()) return collective.resolve(topology);
  return fail(ErrorCode::invalid_input, verb.name + " needs a COLLECTIVE for a topology",
              fmt::format("such as espalier {} {} all_reduce", verb.name, input.argument));
}

Result<std::vector<std::string>> PredictionFlags::resolve_algorithms() const {
  return parse_algorithms(algorithms.empty() ? verb.algorithms : algorithms);
}

OrStop<void> PredictionFlags::check_plan(const Input& given) const {
  if (const auto wrong = find_contradiction(collective, given.schedule->collective)) return usage(*wrong);
  if (given.network_is_implied) {
    return stop({ErrorCode::invalid_input, "the plan carries no network, so its links have no rates",
                 "give the topology with --topology"});
  }
  const VerifyReport report = verify(*given.schedule, given.topology, 1);
  if (report.ok()) return {};
  const Breach& breach = report.breaches.front();
  return stop({ErrorCode::invalid_input,
               fmt::format("{} breaks rule {}: {}", input.argument, to_string(breach.rule), breach.message),
               "espalier verify lists every breach"});
}

}  // namespace espalier::cli
