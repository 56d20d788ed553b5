#include "cli/scenarios/scenario_cases.h"

#include <set>

#include "planners/damage/failures.h"
#include "sweep/spec_values.h"

namespace espalier::cli {
namespace {

/// Every case with every one of the values; as they are where there are no values.
template <class Value, class Set>
void combine(std::vector<ScenarioCase>& cases, const std::vector<Value>& values, const Set& set) {
  if (values.empty()) return;
  std::vector<ScenarioCase> combined;
  for (const ScenarioCase& one : cases) {
    for (const Value& value : values) set(combined.emplace_back(one), value);
  }
  cases = std::move(combined);
}

/// A flag's list of values; none where it was not given.
template <class Parse>
auto values_of(const char* flag, const std::string& list, const Parse& parse)
    -> OrStop<std::decay_t<decltype(*parse(list))>> {
  if (list.empty()) return std::decay_t<decltype(*parse(list))>();
  auto values = parse(list);
  if (values) return *std::move(values);
  return usage({values.error().code, std::string(flag) + ": " + values.error().message, values.error().help});
}

/// Adds a case for each parallelism of a case.
OrStop<void> add_splits(const Console& console, ScenarioCase one, const SplitFlags& splits,
                        std::vector<ScenarioCase>& cases) {
  const auto loaded = load_scenario(console, one.topology, one.scenario);
  if (!loaded) return tl::unexpected(Stop{{}, loaded.error() == ExitCode::wrong_usage, true});
  if (!loaded->scenario.model) {
    return usage({ErrorCode::invalid_input,
                  "--split: " + one.scenario.file + " has no training step that is given as a model",
                  "sweep it by itself, without --split"});
  }
  auto listed = list_splits(splits, *loaded->scenario.model);
  if (!listed) return usage(listed.error());
  for (const scenario::Parallelism& parallelism : listed->possible) {
    one.parallelism = parallelism;
    cases.push_back(one);
  }
  return {};
}

/// The single failures of the machine of a case. A scenario tells ranks apart that a symmetry of the machine does not:
/// all of them are listed.
OrStop<std::vector<std::string>> list_failures(const Console& console, const ScenarioCase& one,
                                               const sweep::FailureKinds& kinds) {
  const auto loaded = load_scenario(console, one.topology, one.scenario);
  if (!loaded) return tl::unexpected(Stop{{}, loaded.error() == ExitCode::wrong_usage, true});
  const Topology& topology = loaded->scenario.topology;
  std::vector<std::string> names;
  if (kinds.hosts) {
    std::set<std::string> hosts;
    for (const Node& node : topology.nodes()) {
      if (!node.host.empty() && hosts.insert(node.host).second) names.push_back(node.host);
    }
  }
  if (!kinds.links && !kinds.nodes && !kinds.ranks) return names;
  for (const planners::Failure& failure : planners::single_failures(topology, {kinds.ranks, Rank()})) {
    const bool is_link = failure.parts.nodes.empty();
    const bool is_rank = !is_link && topology.node(failure.parts.nodes.front()).is_rank;
    if (is_link ? !kinds.links : is_rank ? !kinds.ranks : !kinds.nodes) continue;
    names.insert(names.end(), failure.alike.begin(), failure.alike.end());
  }
  return names;
}

/// Adds to the cases, of whole machines, what fails: the parts that --without names, and single ones.
OrStop<void> add_failures(const Console& console, const SweepFlags& flags, std::vector<ScenarioCase>& cases) {
  const auto kinds = sweep::parse_failure_kinds(flags.failures);
  if (!kinds) return usage({kinds.error().code, "--failures: " + kinds.error().message, kinds.error().help});
  std::vector<ScenarioCase> all;
  for (const ScenarioCase& whole : cases) {
    std::vector<std::string> failures = {""};  // The whole machine takes part, too.
    failures.insert(failures.end(), flags.without.begin(), flags.without.end());
    if (!flags.failures.empty()) {
      const auto single = list_failures(console, whole, *kinds);
      if (!single) return tl::unexpected(single.error());
      failures.insert(failures.end(), single->begin(), single->end());
    }
    std::set<std::string> seen;
    for (const std::string& failure : failures) {
      if (!seen.insert(failure).second) continue;
      all.push_back(whole);
      all.back().topology.without = sweep::split_list(failure);
    }
  }
  cases = std::move(all);
  return {};
}

}  // namespace

OrStop<std::vector<ScenarioCase>> list_cases(const Console& console, const SweepFlags& flags,
                                             const SplitFlags& splits) {
  const auto parameters = combine_parameters(flags.parameters);
  if (!parameters) return usage(parameters.error());
  const auto models = values_of("--models", flags.models, sweep::parse_models);
  if (!models) return tl::unexpected(models.error());
  const auto seeds = values_of("--seeds", flags.seeds, sweep::parse_seeds);
  if (!seeds) return tl::unexpected(seeds.error());
  ScenarioCase common;
  common.topology.slow = flags.slow;
  std::vector<ScenarioCase> cases = {common};
  combine(cases, flags.scenarios, [](ScenarioCase& one, const std::string& file) { one.scenario.file = file; });
  combine(cases, flags.topologies, [](ScenarioCase& one, const std::string& name) { one.topology.argument = name; });
  combine(cases, *parameters, [](ScenarioCase& one, const auto& values) { one.topology.parameters = values; });
  if (auto added = add_failures(console, flags, cases); !added) return tl::unexpected(added.error());
  combine(cases, sweep::split_list(flags.profiles),
          [](ScenarioCase& one, const std::string& profile) { one.scenario.profile.name = profile; });
  combine(cases, *models, [](ScenarioCase& one, sim::ModelKind model) { one.scenario.model = sim::to_string(model); });
  combine(cases, *seeds, [](ScenarioCase& one, std::uint64_t seed) { one.scenario.seed = seed; });
  if (!splits.are_given()) return cases;
  std::vector<ScenarioCase> all;
  for (ScenarioCase& one : cases) {
    if (auto added = add_splits(console, std::move(one), splits, all); !added) return tl::unexpected(added.error());
  }
  return all;
}

std::vector<ScenarioCase> keep_shard(const sweep::Shard& shard, const std::vector<ScenarioCase>& all) {
  std::vector<ScenarioCase> cases;
  for (std::size_t i = shard.number - 1; i < all.size(); i += shard.count) cases.push_back(all[i]);
  return cases;
}

}  // namespace espalier::cli
