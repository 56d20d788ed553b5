#include "cli/flags/sweep_flags.h"

#include <algorithm>

#include "cli/flags/algorithm_flags.h"
#include "cli/flags/sizes.h"
#include "cli/jobs/chosen_profile.h"
#include "cli/measured/error_ranges.h"
#include "espalier/software.h"
#include "schedule/collective.h"
#include "sweep/spec_values.h"

namespace espalier::cli {
namespace {

/// Error messages of values begin with the flag that has them.
template <class T>
OrStop<T> of_flag(const char* flag, Result<T> value) {
  if (value) return *std::move(value);
  return usage({value.error().code, std::string(flag) + ": " + value.error().message, value.error().help});
}

std::string or_usual(const std::string& text, const char* usual) { return text.empty() ? usual : text; }

OrStop<std::vector<Bytes>> resolve_sizes(const SweepFlags& flags, ElementType type) {
  if (!flags.sizes.empty()) return of_flag("-s", sweep::parse_size_list(flags.sizes, size_of(type)));
  SizeFlags range;
  if (!flags.begin.empty()) range.begin = flags.begin;
  if (!flags.end.empty()) range.end = flags.end;
  range.factor = or_usual(flags.factor, "4");
  range.step = flags.step;
  auto sizes = parse_sizes(range, type);
  if (!sizes) return usage(sizes.error());
  return *std::move(sizes);
}

/// Adds a machine under each of the profiles, or under its own.
OrStop<void> add_under_profiles(const Machine& machine, const std::string& parameters, const SweepFlags& flags,
                                std::vector<sweep::Machine>& machines) {
  const bool is_own = flags.profiles.empty();
  const std::vector<std::string> names =
      is_own ? std::vector<std::string>{machine.profile} : sweep::split_list(flags.profiles);
  for (const std::string& name : names) {
    sweep::Machine& added =
        machines.emplace_back(sweep::Machine{machine.topology, parameters, {}, nullptr, {}, machine.gpu});
    if ((is_own && name.empty()) || name == "ideal") continue;
    if (!flags.copy_engines.empty()) {
      return usage({ErrorCode::invalid_input,
                    "--copy-engines does not apply with the profile " + name + ": it says that itself",
                    "add --profiles ideal to count links alone"});
    }
    auto chosen = read_software(name, is_own ? "the machine's profile" : "--profiles");
    if (!chosen) return usage(chosen.error());
    added.profile = chosen->shown;
    added.launch = chosen->launch;
    added.costs = std::make_shared<const profile::Profile>(std::move(chosen->profile));
  }
  return {};
}

OrStop<std::vector<sweep::Machine>> load_machines(const Console& console, const SweepFlags& flags) {
  const auto combinations = combine_parameters(flags.parameters);
  if (!combinations) return usage(combinations.error());
  std::vector<sweep::Machine> machines;
  for (const std::string& argument : flags.topologies) {
    for (const std::vector<std::string>& parameters : *combinations) {
      TopologyFlags topology;
      topology.argument = argument;
      topology.parameters = parameters;
      topology.slow = flags.slow;
      auto loaded = load_machine(console, topology);
      if (!loaded) {
        Error error = loaded.error().error;
        error.message = argument + ": " + error.message;
        return tl::unexpected(Stop{std::move(error), loaded.error().is_usage, loaded.error().shown});
      }
      std::string text;
      for (const std::string& parameter : parameters) text += (text.empty() ? "" : " ") + parameter;
      if (auto added = add_under_profiles(*loaded, text, flags, machines); !added) return tl::unexpected(added.error());
    }
  }
  if (machines.empty()) {
    return usage({ErrorCode::invalid_input, "sweep needs a TOPOLOGY", "such as espalier sweep dgx1v -c all_reduce"});
  }
  return machines;
}

}  // namespace

Result<std::vector<std::vector<std::string>>> combine_parameters(const std::vector<std::string>& parameters) {
  std::vector<std::vector<std::string>> combinations = {{}};
  for (const std::string& parameter : parameters) {
    const std::size_t equals = parameter.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == parameter.size()) {
      return fail(ErrorCode::invalid_input, "-p: '" + parameter + "' is not NAME=VALUES", "write -p boxes=2,4,8");
    }
    std::vector<std::vector<std::string>> longer;
    for (const std::vector<std::string>& combination : combinations) {
      for (const std::string& value : sweep::split_list(parameter.substr(equals + 1))) {
        longer.push_back(combination);
        longer.back().push_back(parameter.substr(0, equals + 1) + value);
      }
    }
    combinations = std::move(longer);
  }
  return combinations;
}

void SweepFlags::add_to(CLI::App& command) {
  command.add_option("TOPOLOGY", topologies, "YAML files or shipped machines");
  const auto list = [&command](const char* flag, auto& value, const std::string& help, const char* shown) {
    return command.add_option(flag, value, help)->option_text(shown);
  };
  const std::string size_help =
      "Comma-separated: 8, 64K, 1M (powers of two, as are 1Mi and 1MiB), 1MB (a million bytes)";
  list("-p,--parameter", parameters, "Values of a parameter of compact files; may be repeated", "NAME=VALUES")
      ->allow_extra_args(false);
  list("-c,--collectives", collectives, "Comma-separated, or all", "NAMES (all_reduce)");
  list("--matrix", matrices,
       "Unequal blocks of all_to_all: a file or a law (docs/traffic-matrices.md), or equal; may be repeated",
       "FILE|LAW|equal")
      ->allow_extra_args(false);
  list("-r,--root", root, "Root of those that have one: a rank's number or node", "RANK (0)");
  list("-a,--algorithms", algorithms, "Comma-separated: " + algorithm_names(), "NAMES (auto)");
  CLI::Option* const all_sizes = list("-s,--sizes", sizes, size_help, "SIZES");
  CLI::Option* const from = list("-b,--minbytes", begin, "Smallest size", "SIZE (1K)");
  CLI::Option* const to = list("-e,--maxbytes", end, "Largest size", "SIZE (1G)");
  CLI::Option* const by = list("-f,--stepfactor", factor, "Factor between sizes", "FACTOR (4)");
  CLI::Option* const in_steps = list("-i,--stepbytes", step, "Step between sizes, instead of a factor", "SIZE");
  in_steps->excludes(by);
  all_sizes->excludes(from, to, by, in_steps);
  list("-d,--datatype", type, "Element type: int8, half, bfloat16, float, double, ...", "TYPE (float)");
  list("--chunks", chunks, "Largest chunks; auto: chosen per schedule and size", "SIZES (auto)");
  list("--models", models, "How links are shared, or all", "NAMES (link)");
  list("--profiles", profiles, "What software adds, each in turn: shipped profiles or files, ideal",
       "NAMES (the machine's)");
  list("--protocols", protocols, "Whose payload and launch: none, simple, ll, ll128, or all", "NAMES (none)");
  list("--copy-engines", copy_engines, "How many chunks a rank sends at once; 0: as its links carry", "NUMBERS (0)");
  list("--without", without, "A failure: a node, cable or link, or several by commas; may be repeated", "LINK|NODE")
      ->allow_extra_args(false);
  list("--slow", slow, "Leave a node, cable, link or class only a part of its rate, in all runs; may be repeated",
       "LINK|NODE=PART")
      ->allow_extra_args(false);
  list("--failures", failures, "Every single failure of links, nodes, hosts, ranks", "KINDS");
  list("--jitter", jitters, "Every service takes up to this much longer", "PARTS (0)");
  list("--seeds", seeds, "Seeds of each jitter above 0", "NUMBERS (1)");
  list("--spec", file, "Take from a YAML file what no flag says", "FILE");
}

/// What was given and means nothing beside the other values, or nothing.
std::optional<Error> SweepFlags::find_idle_list(const sweep::Spec& spec) const {
  const bool jitters_at_all = std::ranges::any_of(spec.jitters_ppm, [](std::int32_t ppm) { return ppm > 0; });
  if (!seeds.empty() && !jitters_at_all) {
    return Error{ErrorCode::invalid_input, "--seeds are of a jitter, and none is above 0", "such as --jitter 2%"};
  }
  if (!root.empty() && std::ranges::none_of(spec.collectives, has_root)) {
    return Error{ErrorCode::invalid_input, "--root: none of the collectives has a root", "leave --root out"};
  }
  if (!matrices.empty() && std::ranges::none_of(spec.collectives, has_blocks)) {
    return Error{ErrorCode::invalid_input,
                 "--matrix: of the collectives only all_to_all has blocks that could be unequal",
                 "sweep -c all_to_all, or leave --matrix out"};
  }
  return std::nullopt;
}

OrStop<sweep::Spec> SweepFlags::resolve(const Console& console) const {
  sweep::Spec spec;
  const auto type_of = parse_element_type(or_usual(type, "float"));
  if (!type_of) return usage(type_of.error());
  spec.type = *type_of;
  const auto names = parse_algorithms(or_usual(algorithms, "auto"), false, true);
  if (!names) return usage(names.error());
  spec.algorithms = *names;
  spec.root = root;
  spec.without = without;
  if (!matrices.empty()) spec.matrices = matrices;
  std::ranges::replace(spec.matrices, "equal", "");
  bool good = true;
  Stop wrong;
  const auto take = [&](auto& member, auto value) {
    if (good && !value) wrong = value.error();
    good = good && value.has_value();
    if (good) member = *std::move(value);
  };
  take(spec.collectives, of_flag("-c", sweep::parse_collectives(or_usual(collectives, "all_reduce"))));
  take(spec.sizes, resolve_sizes(*this, spec.type));
  take(spec.chunks, of_flag("--chunks", sweep::parse_chunks(or_usual(chunks, "auto"), size_of(spec.type))));
  take(spec.models, of_flag("--models", sweep::parse_models(or_usual(models, "link"))));
  take(spec.protocols, of_flag("--protocols", sweep::parse_protocols(or_usual(protocols, "none"))));
  take(spec.copy_engines, of_flag("--copy-engines", sweep::parse_copy_engine_counts(or_usual(copy_engines, "0"))));
  take(spec.failures, of_flag("--failures", sweep::parse_failure_kinds(failures)));
  take(spec.jitters_ppm, of_flag("--jitter", sweep::parse_jitters(or_usual(jitters, "0"))));
  take(spec.seeds, of_flag("--seeds", sweep::parse_seeds(or_usual(seeds, "1"))));
  if (!good) return tl::unexpected(wrong);
  if (const auto idle = find_idle_list(spec)) return usage(*idle);
  auto machines = load_machines(console, *this);
  if (!machines) return tl::unexpected(machines.error());
  spec.machines = *std::move(machines);
  auto errors = shipped_errors();
  if (!errors) return stop(errors.error());
  spec.errors = *std::move(errors);
  return spec;
}

}  // namespace espalier::cli
