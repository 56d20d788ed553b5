#include "cli/flags/prediction_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/parse_units.h"
#include "cli/flags/algorithm_flags.h"
#include "schedule/verify/verify.h"

namespace espalier::cli {
namespace {

Result<std::optional<Bytes>> parse_chunk(const std::string& text, ElementType type) {
  if (text.empty()) return std::optional<Bytes>();
  const auto chunk = parse_size(text);
  if (!chunk) return fail(chunk.error().code, "--chunk: " + chunk.error().message, chunk.error().help);
  if (chunk->count >= size_of(type)) return std::optional(*chunk);
  return fail(ErrorCode::invalid_input, "--chunk: a chunk holds at least one element", "");
}

const std::string profiled_algorithms = "nccl,auto";
constexpr std::array<std::string_view, 3> profile_options = {"--profile", "--nccl-version", "--paths"};
constexpr std::array<std::string_view, 3> how_options = {"--chunk", "--ahead", "--model"};

}  // namespace

void PredictionFlags::add_to(CLI::App& command) {
  command_ = &command;
  input.add_to(command, "TOPOLOGY|PLAN", false);
  input.add_damage_to(command);
  collective.add_to(command, false);
  packing.add_to(command);
  command
      .add_option("-a,--algorithm", algorithms,
                  fmt::format("{}: {} ({})", verb.algorithms_help, algorithm_names(), verb.algorithms))
      ->option_text("NAMES");
  if (verb.size.empty()) {
    sizes.add_to(command);
  } else {
    sizes.add_one_to(command);
  }
  command.add_option("--chunk", chunk, "Largest chunk; chosen per schedule and size when absent")->option_text("SIZE");
  command
      .add_option(
          "--ahead", ahead,
          "Rounds that a sender may be ahead of itself, 0 for any number; chosen per schedule and size when absent")
      ->option_text("N");
  command.add_option("--model", model, "How a link is shared: link (chunks take turns) or fair (max-min)")
      ->option_text("link|fair (link)");
  command.add_option("-t,--topology", plan_topology, verb.does + " a plan on this topology instead of its own")
      ->option_text("FILE");
  if (verb.has_scenarios) {
    command
        .add_option("--scenario", scenario.file,
                    verb.does + " a scenario instead: a YAML file, - or shipped scenario (docs/scenarios.md)")
        ->option_text("FILE");
  }
  if (verb.has_profiles) profile.add_to(command);
  conditions.add_to(command, verb.has_scenarios ? "Of the jitter; of all that a scenario draws, instead of its own"
                                                : "Of the jitter");
}

Mode PredictionFlags::mode_of_scenario() const {
  constexpr std::array<std::string_view, 6> own = {"--scenario", "--model",        "--seed",
                                                   "--profile",  "--nccl-version", "--paths"};
  return {"a scenario",
          "the file names its collectives, sizes, algorithms, chunk, rounds ahead, endpoints and jitter itself",
          join_options({topology_options, own, verb.of_scenarios}),
          {}};
}

Mode PredictionFlags::mode_of_topology() const {
  return {
      "a topology",
      "it is for a plan",
      join_options({topology_options, collective_options, packing_options, size_options, how_options, condition_options,
                    profile_options, verb.of_runs, std::array<std::string_view, 1>{"--algorithm"}}),
      {}};
}

Mode PredictionFlags::mode_of_plan() const {
  constexpr std::array<std::string_view, 2> own = {"COLLECTIVE", "--topology"};
  constexpr std::array<std::string_view, 1> others = {"--algorithm"};
  Mode mode{"a plan",
            "its collective, root, shares and trees are what they are",
            join_options(
                {topology_options, own, size_options, how_options, condition_options, profile_options, verb.of_runs}),
            {}};
  if (verb.compares_plans) mode.options = join_options({mode.options, others, packing_options});
  return mode;
}

std::optional<Error> PredictionFlags::find_conflict() const {
  if (!scenario.file.empty()) return find_idle_option(*command_, mode_of_scenario());
  if (!input.argument.empty()) return std::nullopt;
  return Error{ErrorCode::invalid_input,
               verb.name + " needs a TOPOLOGY or PLAN" + (verb.has_scenarios ? ", or --scenario" : ""),
               fmt::format("such as espalier {} dgx-h100 all_reduce", verb.name)};
}

std::optional<Error> PredictionFlags::find_conflict(const Input& given) const {
  return find_idle_option(*command_, given.schedule ? mode_of_plan() : mode_of_topology());
}

ScenarioFlags PredictionFlags::of_scenario() const {
  ScenarioFlags flags = scenario;
  flags.model = model;
  flags.seed = conditions.seed;
  flags.profile = profile;
  return flags;
}

Result<std::vector<Bytes>> PredictionFlags::resolve_sizes(const Input& given, ElementType element) const {
  if (!given.schedule && !collective.matrix.empty() && !collective.name.empty() && !names_size(*command_)) {
    const auto sized = collective.resolve_sized(given.topology);
    if (!sized) return tl::unexpected(sized.error());
    if (sized->size) return std::vector{whole_elements(*sized->size, element)};
  }
  if (verb.size.empty()) return parse_sizes(sizes, element);
  return parse_one_size(sizes, element).map([](Bytes size) { return std::vector{size}; });
}

Result<Prediction> PredictionFlags::resolve(const Input& given) const {
  const auto element = parse_element_type(sizes.type);
  if (!element) return tl::unexpected(element.error());
  Prediction prediction;
  prediction.gpu = given.gpu;
  prediction.type = to_string(*element);
  prediction.options.element_size = size_of(*element);
  auto several = resolve_sizes(given, *element);
  if (!several) return tl::unexpected(several.error());
  prediction.sizes = *std::move(several);
  const auto largest = parse_chunk(chunk, *element);
  if (!largest) return tl::unexpected(largest.error());
  prediction.options.pacing.chunk = *largest;
  const auto rounds = parse_ahead(ahead);
  if (!rounds) return tl::unexpected(rounds.error());
  prediction.options.pacing.ahead = *rounds;
  const auto kind = sim::parse_model(model.empty() ? "link" : model);
  if (!kind) return fail(kind.error().code, "--model: " + kind.error().message, kind.error().help);
  prediction.options.model = *kind;
  const auto chosen = profile.resolve(conditions, given.profile);
  if (!chosen) return tl::unexpected(chosen.error());
  prediction.options.profile = *chosen;
  ConditionFlags beside = conditions;
  if (*chosen) beside.protocol.clear();
  prediction.draws = {ecmp, conditions.seed.value_or(0)};
  if (ecmp > 0 && beside.jitter.empty()) beside.seed.reset();
  const auto circumstances = beside.resolve();
  if (!circumstances) return tl::unexpected(circumstances.error());
  prediction.options.circumstances = *circumstances;
  prediction.options.pacing.payload = circumstances->endpoints.payload_ppm / 1e6;
  return prediction;
}

Result<Collective> PredictionFlags::resolve_collective(const Topology& topology) const {
  if (!collective.name.empty()) return collective.resolve(topology);
  return fail(ErrorCode::invalid_input, verb.name + " needs a COLLECTIVE for a topology",
              fmt::format("such as espalier {} {} all_reduce", verb.name, input.argument));
}

Result<std::vector<std::string>> PredictionFlags::resolve_algorithms(bool has_profile) const {
  const std::string& usual = has_profile ? profiled_algorithms : verb.algorithms;
  auto parsed = parse_algorithms(algorithms.empty() ? usual : algorithms, true);
  if (!parsed || has_profile) return parsed;
  const auto nccl = std::ranges::find_if(*parsed, forecast::is_nccl_algorithm);
  if (nccl == parsed->end()) return parsed;
  return fail(ErrorCode::invalid_input, "-a: " + *nccl + " needs a profile, which says what NCCL would pick",
              "such as --profile nccl-hopper; espalier simulate --help names those there are");
}

OrStop<void> PredictionFlags::check_plan(const Input& given) const {
  if (const auto wrong = collective.find_contradiction(given.schedule->collective)) return usage(*wrong);
  if (given.network_is_implied) {
    return stop({ErrorCode::invalid_input, "the plan carries no network, so its links have no rates",
                 "give the topology with --topology"});
  }
  const auto verified = require_verified(*given.schedule, given.topology, input.argument);
  if (!verified) return stop(verified.error());
  return {};
}

}  // namespace espalier::cli
