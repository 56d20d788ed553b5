#include "cli/measured/relatives.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <vector>

#include "cli/flags/inputs.h"
#include "cli/jobs/chosen_profile.h"
#include "cli/jobs/predict_rows.h"
#include "cli/measured/too_fast_for.h"
#include "compare/compare_results.h"
#include "espalier/software.h"

namespace espalier::cli {
namespace {

using SharedSoftware = std::shared_ptr<const forecast::Software>;

/// One thing to try.
struct Variant {
  std::string machine;
  std::shared_ptr<const Topology> topology;
  SharedSoftware software;
  std::string profile;    ///< As --profile takes it, without the launch.
  std::string launch;     ///< Empty: the profile's first.
  std::string version;    ///< Empty: the profile's.
  std::string protocol;   ///< Empty: all.
  std::string algorithm;  ///< "nccl", ...

  [[nodiscard]] std::string shown() const {
    std::string text = profile + (launch.empty() ? "" : ":" + launch);
    if (!version.empty()) text += " as of " + version;
    if (!protocol.empty()) text += ", " + protocol + " alone";
    return algorithm == "nccl" ? text : text + ", " + algorithm + " alone";
  }
  [[nodiscard]] std::string options() const {
    std::string text = "--profile " + profile + (launch.empty() ? "" : ":" + launch);
    if (!version.empty()) text += " --nccl-version " + version;
    if (!protocol.empty()) text += " --protocol " + protocol;
    return algorithm == "nccl" ? text : text + " -a " + algorithm;
  }
};

struct Trial {
  Variant variant;
  compare::Judgement judgement;
  bool is_possible = true;

  [[nodiscard]] bool fits() const { return is_possible && judgement.kind == compare::Judgement::Kind::as_predicted; }
  [[nodiscard]] bool is_better_than(const Trial& other) const {
    constexpr double clearly = 0.9;
    if (is_possible != other.is_possible) return is_possible;
    return judgement.distance < clearly * other.judgement.distance;
  }
};

std::optional<Trial> try_out(const Console& silent, const compare::Measurements& measured, Variant variant) {
  const auto predicted = predict_rows(silent, *variant.topology, measured, *variant.software, variant.algorithm);
  if (!predicted) return std::nullopt;
  const auto comparison = compare::compare_results(*predicted, measured);
  if (!comparison) return std::nullopt;
  const std::vector<compare::PredictedTime> times = compare::predicted_times(*comparison);
  if (times.empty()) return std::nullopt;
  Trial trial{std::move(variant), compare::judge(times), true};
  trial.is_possible = !find_impossible(*trial.variant.topology, measured);
  return trial;
}

std::vector<Variant> other_launches(const Variant& of) {
  std::vector<Variant> all;
  bool is_first = true;
  for (const auto& [name, launch] : of.software->profile.launches) {
    const std::string shown = std::exchange(is_first, false) ? "" : name;
    if (shown == of.launch) continue;
    Variant& other = all.emplace_back(of);
    auto software = *of.software;
    software.launch = launch;
    other.launch = shown;
    other.software = std::make_shared<const forecast::Software>(std::move(software));
  }
  return all;
}

/// Switches between GPUs alone, such as NVSwitches.
std::vector<std::size_t> gpu_switches(const Topology& machine) {
  std::vector<std::size_t> switches;
  for (std::size_t i = 0; i < machine.node_count(); ++i) {
    const NodeId node(i);
    if (machine.node(node).kind != NodeKind::switch_node || machine.out_links(node).empty()) continue;
    const bool is_of_gpus = std::ranges::all_of(machine.out_links(node), [&](LinkId link) {
      return !machine.rank_of(machine.link(link).head).is_none() &&
             machine.node(machine.link(link).head).kind == NodeKind::gpu;
    });
    if (is_of_gpus) switches.push_back(i);
  }
  return switches;
}

/// The machine whose switches between GPUs add and copy, or do neither.
std::vector<Variant> other_switches(const Variant& of) {
  const auto switches = gpu_switches(*of.topology);
  if (switches.empty()) return {};
  std::vector<Node> nodes(of.topology->nodes().begin(), of.topology->nodes().end());
  const bool has_nvls = nodes[switches.front()].reduction;
  for (const std::size_t i : switches) nodes[i].multicast = nodes[i].reduction = !has_nvls;
  const auto links = of.topology->links();
  auto machine = Topology::make(of.topology->name(), std::move(nodes), {links.begin(), links.end()});
  if (!machine) return {};
  Variant other = of;
  other.topology = std::make_shared<const Topology>(*std::move(machine));
  const std::string suffix = "-nvls";
  const std::string shipped = has_nvls && of.machine.ends_with(suffix)
                                  ? of.machine.substr(0, of.machine.size() - suffix.size())
                                  : of.machine + suffix;
  other.machine = is_shipped_machine(shipped) ? shipped
                  : has_nvls                  ? of.machine + " without NVLS"
                                              : of.machine + " with NVLS (multicast and reduction at its switches)";
  return {other};
}

/// Versions just before something of the profile came.
std::vector<Variant> other_versions(const Variant& of) {
  std::set<std::uint32_t> before;
  for (const auto& [key, way] : of.software->profile.ways) {
    if (way.since > 0) before.insert(way.since - 1);
  }
  std::vector<Variant> all;
  for (const std::uint32_t version : before) {
    auto software = *of.software;
    if (!software.profile.tuner || !software.profile.restrict_to(version)) continue;
    Variant& other = all.emplace_back(of);
    other.version = profile::version_text(version);
    other.software = std::make_shared<const forecast::Software>(std::move(software));
  }
  return all;
}

/// Simple alone, rings alone and trees alone: what NCCL_PROTO and NCCL_ALGO are set to most.
std::vector<Variant> other_choices(const Variant& of) {
  std::vector<Variant> all;
  if (of.protocol.empty()) {
    auto software = *of.software;
    software.protocol = sim::Protocol::simple;
    Variant& other = all.emplace_back(of);
    other.protocol = "simple";
    other.software = std::make_shared<const forecast::Software>(std::move(software));
  }
  if (of.algorithm != "nccl") return all;
  for (const char* algorithm : {"nccl/ring", "nccl/tree"}) all.emplace_back(of).algorithm = algorithm;
  return all;
}

/// Shipped machines of as many ranks, each under its own profile.
std::vector<Variant> other_machines(const Variant& of) {
  std::vector<Variant> all;
  Console silent;
  silent.quiet = true;
  for (const std::string& name : shipped_machines()) {
    if (name == of.machine) continue;
    TopologyFlags flags;
    flags.argument = name;
    auto machine = load_machine(silent, flags);
    if (!machine || machine->topology.rank_count() != of.topology->rank_count() || machine->profile.empty()) continue;
    const auto software = read_software(machine->profile, "the machine's profile");
    if (!software) continue;
    const auto shared = std::make_shared<const forecast::Software>(*software);
    const Variant other{
        name,  std::make_shared<const Topology>(std::move(machine->topology)), shared, machine->profile, {}, {}, {},
        "nccl"};
    all.push_back(other);
    std::ranges::move(other_launches(other), std::back_inserter(all));
  }
  return all;
}

Variant variant_of(const MeasuredMachine& given) {
  Variant variant{given.argument, std::make_shared<const Topology>(given.topology), given.software, {}, {}, {}, {},
                  given.algorithm};
  const std::string& shown = given.software->shown;
  const std::string named = shown.substr(0, shown.find(' '));  // Before " as of 2.20".
  const std::size_t colon = named.rfind(':');
  variant.profile = named.substr(0, colon);
  if (colon != std::string::npos) variant.launch = named.substr(colon + 1);
  constexpr std::string_view as_of = " as of ";
  if (const std::size_t at = shown.find(as_of); at != std::string::npos) {
    variant.version = shown.substr(at + as_of.size(), shown.find(' ', at + as_of.size()) - at - as_of.size());
  }
  if (given.software->protocol) variant.protocol = sim::to_string(*given.software->protocol);
  return variant;
}

}  // namespace

std::optional<Relative> find_relative(const Console& console, const MeasuredMachine& given,
                                      const compare::Judgement& own) {
  if (given.software == nullptr) return std::nullopt;
  Console silent = console;
  silent.quiet = true;
  const Trial start{variant_of(given), own, !find_impossible(given.topology, given.measured)};
  Trial best = start;
  using Step = std::vector<Variant> (*)(const Variant&);
  for (const Step step : {other_launches, other_switches, other_choices, other_versions, other_machines}) {
    if (best.fits()) break;
    if (step == Step{other_machines} && best.is_possible) break;
    const Variant from = best.variant;
    for (Variant& variant : step(from)) {
      auto trial = try_out(silent, given.measured, std::move(variant));
      if (trial && trial->is_better_than(best)) best = *std::move(trial);
    }
  }
  if (!best.is_better_than(start)) return std::nullopt;
  Relative found{best.variant.machine, best.variant.shown(), best.variant.options(), best.judgement, best.is_possible};
  Variant launched = start.variant;
  launched.launch = best.variant.launch;
  found.is_launch = launched.machine == found.machine && launched.shown() == found.software;
  return found;
}

}  // namespace espalier::cli
