#include "sweep/unit_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/check.h"
#include "forecast/walked_ring.h"
#include "planners/bounds/bound.h"
#include "planners/graph/rank_groups.h"
#include "planners/nccl/nccl.h"
#include "planners/symmetric/large_candidates.h"
#include "planners/symmetric/symmetric_plan.h"
#include "profile/nccl_choices.h"
#include "sim/core/utilisation.h"
#include "topology/without.h"

namespace espalier::sweep {
namespace {

class Stopwatch {
 public:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

sim::ModelKind model_of(const Spec& spec, const Key& key) {
  const auto found =
      std::ranges::find_if(spec.models, [&](sim::ModelKind kind) { return to_string(kind) == key.model; });
  ESPALIER_CHECK(found != spec.models.end(), "a key's model is one of the spec's");
  return *found;
}

std::vector<planners::Planner> planners_of(const Unit& unit, bool wants_auto) {
  std::vector<planners::Planner> planners;
  for (const planners::Planner& planner : planners::all_planners()) {
    const auto is_asked = [&](const Key& key) { return key.algorithm == planner.name; };
    const bool is_of_auto = wants_auto && (!planner.needs_matrix || !unit.blocks.empty());
    if (is_of_auto || std::ranges::any_of(unit.keys, is_asked)) planners.push_back(planner);
  }
  if (unit.keys.front().profile.empty()) return planners;
  for (const planners::Planner& planner : planners::nccl_planners()) {
    const auto is_asked = [&](const Key& key) { return key.algorithm == "nccl" || key.algorithm == planner.name; };
    if (std::ranges::any_of(unit.keys, is_asked)) planners.push_back(planner);
  }
  return planners;
}

}  // namespace

UnitRun::UnitRun(const Spec& spec, const Unit& unit)
    : spec_(spec),
      unit_(unit),
      wants_auto_(std::ranges::any_of(unit.keys, [](const Key& key) { return key.algorithm == "auto"; })) {}

Result<void> UnitRun::try_open() {
  if (!unit_.impossible.empty()) return espalier::fail(ErrorCode::invalid_input, unit_.impossible);
  const Topology& whole = spec_.machines[unit_.machine].topology;
  if (unit_.parts.nodes.empty() && unit_.parts.links.empty()) {
    topology_ = whole;
  } else {
    auto rest = without(whole, unit_.parts, unit_.keys.front().failure);
    if (!rest) return tl::unexpected(rest.error());
    topology_ = std::move(*rest);
  }
  std::optional<Rank> root;
  if (!unit_.root.is_none()) {
    const NodeId node = topology_->find_node(whole.rank_name(unit_.root));
    if (node.is_none()) {
      return espalier::fail(ErrorCode::infeasible, "the root " + whole.rank_name(unit_.root) + " has failed");
    }
    root = topology_->rank_of(node);
  }
  if (!unit_.blocks.empty() && topology_->rank_count() != whole.rank_count()) {
    return espalier::fail(ErrorCode::invalid_input, "a traffic matrix is of all ranks, and some of them have failed");
  }
  auto collective = make_collective(unit_.collective, topology_->rank_count(), root, unit_.blocks);
  if (!collective) return tl::unexpected(collective.error());
  collective_ = std::move(*collective);
  auto bound = planners::compute_bound(*topology_, collective_);
  if (!bound) return tl::unexpected(bound.error());
  bound_ = std::move(*bound);
  if (has_profile() && spec_.errors != nullptr) domains_ = planners::group_domains(*topology_).groups.size();
  return {};
}

void UnitRun::open() {
  if (auto opened = try_open(); !opened) {
    trouble_ = opened.error();
    return;
  }
  for (planners::Planner& planner : planners_of(unit_, wants_auto_))
    planned_.push_back({.planner = std::move(planner)});
  if (auto planned = plan_large(); !planned) trouble_ = planned.error();
}

/// Machines past the size whose plans are written down.
Result<void> UnitRun::plan_large() {
  const auto is_of_links = [&](const Key& key) { return model_of(spec_, key) == sim::ModelKind::link; };
  if (has_profile() || collective_.has_matrix() || topology_->rank_count() < planners::min_symmetric_ranks ||
      !std::ranges::all_of(unit_.keys, is_of_links)) {
    return {};
  }
  const Stopwatch watch;
  std::vector<planners::Planner> planners;
  for (const Planned& planned : planned_) planners.push_back(planned.planner);
  planners::CandidateOptions options;
  options.for_choice = wants_auto_;
  options.may_be_unstored = true;
  for (const Key& key : unit_.keys) options.named.push_back(key.algorithm);
  auto made = planners::make_large_candidates(*topology_, collective_, planners, options, {});
  if (!made) return {};
  if (!*made) return tl::unexpected(made->error());
  candidates_ = **std::move(made);
  bound_ = candidates_.bound;
  planned_.clear();
  seconds_of_all_ = watch.seconds();
  return {};
}

void UnitRun::plan(std::size_t planner) {
  Planned& planned = planned_[planner];
  const Stopwatch watch;
  if (planned.planner.name == "ring") {
    if (auto walked = plan_walked_ring()) {
      planned.candidates.push_back(*std::move(walked));
      planned.candidates.back().schedule.bound = bound_;
      planned.seconds = watch.seconds();
      return;
    }
  }
  planners::CandidateOptions options;
  options.for_choice = wants_auto_;
  // Software adds to every hop, so under a profile low trees may win at any size.
  if (!has_profile()) options.min_size = std::ranges::min(unit_.keys, {}, [](const Key& key) { return key.size; }).size;
  const auto paths = has_profile() ? spec_.machines[unit_.machine].costs->paths : planners::Paths::any;
  std::optional<planners::NcclEra> era;
  if (const Machine& machine = spec_.machines[unit_.machine]; has_profile() && machine.costs->tuner) {
    era = profile::era_of(*machine.costs->tuner);
    options.context.nccl = &*era;
  }
  const planners::BundledNetwork network(*topology_, paths);
  auto made = planners::make_candidates_by(planned.planner, network, collective_, bound_, options);
  planned.seconds = watch.seconds();
  if (made) {
    planned.candidates = std::move(*made);
  } else {
    planned.refusal = made.error();
  }
}

/// The rings that are walked for every key that runs them.
std::optional<planners::Candidate> UnitRun::plan_walked_ring() const {
  std::map<RunsKey, std::pair<const Key*, std::vector<Bytes>>> asked;
  for (const Key& key : unit_.keys) {
    if (key.algorithm != "ring" && key.algorithm != "auto") continue;
    auto& [first, sizes] = asked[runs_key(key)];
    if (first == nullptr || first->jitter_ppm < key.jitter_ppm) first = &key;
    sizes.push_back(key.size);
  }
  std::optional<planners::Candidate> walked;
  for (const auto& [runs, keys] : asked) {
    forecast::RunOptions options = options_of(*keys.first);
    options.circumstances.conditions.jitter_ppm = keys.first->jitter_ppm;
    walked = forecast::find_walked_ring(*topology_, collective_, keys.second, options);
    if (!walked) return std::nullopt;
  }
  return walked;
}

UnitRun::RunsKey UnitRun::runs_key(const Key& key) const {
  const bool shares_jitter = !has_profile();
  return {key.chunk ? key.chunk->count : -1,  model_of(spec_, key),        key.protocol, key.copy_engines,
          shares_jitter ? 0 : key.jitter_ppm, shares_jitter ? 0 : key.seed};
}

forecast::RunOptions UnitRun::options_of(const Key& key) const {
  const auto protocol = sim::parse_protocol(key.protocol);
  ESPALIER_CHECK(protocol.has_value(), "a key's protocol is one of the spec's");
  forecast::RunOptions options;
  options.element_size = size_of(spec_.type);
  options.pacing = {key.chunk, std::nullopt, 1};
  options.model = model_of(spec_, key);
  if (has_profile()) {
    options.circumstances.conditions.jitter_ppm = key.jitter_ppm;
    options.circumstances.conditions.seed = key.seed;
    const Machine& machine = spec_.machines[unit_.machine];
    options.profile = std::make_shared<const forecast::Software>(
        forecast::Software{machine.costs->name, *machine.costs, machine.launch,
                           *protocol == sim::Protocol::plain ? std::nullopt : std::optional(*protocol)});
    return options;
  }
  options.circumstances.endpoints = sim::preset(*protocol);
  options.circumstances.endpoints.copy_engines = key.copy_engines;
  options.pacing.payload = options.circumstances.endpoints.payload_ppm / 1e6;
  return options;
}

void UnitRun::seal() {
  candidates_.bound = bound_;
  for (Planned& planned : planned_) {
    if (planned.refusal) candidates_.refused.push_back({std::string(planned.planner.name), *planned.refusal});
    std::ranges::move(planned.candidates, std::back_inserter(candidates_.made));
    planned.candidates.clear();
  }
}

Result<forecast::CandidateRun> UnitRun::run_candidate(const Key& key) {
  const bool names_one = key.algorithm != "auto" && !(key.algorithm == "nccl" && has_profile());
  if (names_one) {
    if (const auto named = find_named(key.algorithm); !named) return tl::unexpected(named.error());
  }
  if (candidates_.made.empty()) return tl::unexpected(candidates_.refused.front().error);
  forecast::CandidateRuns* runs = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    runs = &runs_.try_emplace(runs_key(key), *topology_, candidates_, options_of(key)).first->second;
  }
  auto ran = runs->run(key.algorithm, key.size, {.jitter_ppm = key.jitter_ppm, .seed = key.seed});
  if (ran || !has_profile() || ran.error().code != ErrorCode::unsupported) return ran;
  return espalier::fail(ran.error().code, std::string(not_planned) + ran.error().message);
}

Result<const planners::Candidate*> UnitRun::find_named(const std::string& algorithm) const {
  const planners::Candidate* candidate = candidates_.find(algorithm);
  if (candidate != nullptr) return candidate;
  for (const planners::Refusal& refusal : candidates_.refused) {
    if (refusal.planner != algorithm) continue;
    const bool is_no_failure = refusal.error.code == ErrorCode::unsupported;
    return espalier::fail(refusal.error.code, (is_no_failure ? std::string(not_planned) : "") + refusal.error.message);
  }
  if (algorithm.starts_with("nccl")) {
    return espalier::fail(ErrorCode::unsupported, std::string(not_planned) + algorithm + " needs a profile");
  }
  return espalier::fail(ErrorCode::invalid_input, "there is no planner '" + algorithm + "'");
}

/// Between which times nine in ten measurements like it lay.
void UnitRun::add_range(const Key& key, Figures& figures) const {
  if (spec_.errors == nullptr) return;
  forecast::Predicted what;
  if (has_profile()) what.profile = spec_.machines[unit_.machine].costs->name;
  what.algorithm = key.algorithm;
  what.collective = collective_.kind;
  what.machines = domains_;
  what.ranks = collective_.rank_count;
  what.size = key.size;
  what.gpu = spec_.machines[unit_.machine].gpu;
  const forecast::ErrorRange range = spec_.errors->find(what);
  figures.outside = range.outside;
  if (range.of == nullptr) return;
  const auto times = [&](double factor) {
    return Picoseconds{std::llround(static_cast<double>(figures.elapsed.count) * factor)};
  };
  figures.low = times(range.of->low);
  figures.high = times(range.of->high);
}

Result<Figures> UnitRun::try_run(const Key& key) {
  if (trouble_) return tl::unexpected(*trouble_);
  const auto ran = run_candidate(key);
  if (!ran) return tl::unexpected(ran.error());
  const sim::Report& report = ran->report;
  Figures figures;
  figures.planner = ran->by();
  figures.ranks = collective_.rank_count;
  figures.chunk = report.chunk;
  figures.elapsed = report.elapsed;
  figures.algbw = report.algbw();
  figures.busbw = report.busbw(collective_);
  figures.of_bound = report.of_bound(bound_.time_per_byte, collective_);
  figures.bound = to_string(bound_.time_per_byte);
  if (const auto busiest = sim::busiest_links(report, *topology_, 1); !busiest.empty() && report.elapsed.count > 0) {
    figures.busiest = busiest.front().name;
    figures.busiest_share = busiest.front().share;
  }
  add_range(key, figures);
  return figures;
}

double UnitRun::planning_seconds(const std::string& algorithm) const {
  double seconds = seconds_of_all_;
  for (const Planned& planned : planned_) {
    const bool is_of_nccl = algorithm == "nccl" && planned.planner.name.starts_with("nccl/");
    if (algorithm == "auto" || is_of_nccl || algorithm == planned.planner.name) seconds += planned.seconds;
  }
  return seconds;
}

Row UnitRun::run(const Key& key) {
  const Stopwatch watch;
  auto figures = try_run(key);
  Row row{key, unit_.alike, std::nullopt, {}, Timing{planning_seconds(key.algorithm), watch.seconds()}};
  if (figures) {
    row.figures = std::move(*figures);
  } else {
    row.reason = figures.error().message;
  }
  return row;
}

}  // namespace espalier::sweep
