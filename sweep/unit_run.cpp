#include "sweep/unit_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "planners/bounds/bound.h"
#include "planners/nccl/nccl.h"
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
    if (wants_auto || std::ranges::any_of(unit.keys, is_asked)) planners.push_back(planner);
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
  auto collective = make_collective(unit_.collective, topology_->rank_count(), root);
  if (!collective) return tl::unexpected(collective.error());
  collective_ = std::move(*collective);
  auto bound = planners::compute_bound(*topology_, collective_);
  if (!bound) return tl::unexpected(bound.error());
  bound_ = std::move(*bound);
  return {};
}

void UnitRun::open() {
  if (auto opened = try_open(); !opened) {
    trouble_ = opened.error();
    return;
  }
  for (planners::Planner& planner : planners_of(unit_, wants_auto_))
    planned_.push_back({.planner = std::move(planner)});
}

void UnitRun::plan(std::size_t planner) {
  Planned& planned = planned_[planner];
  const Stopwatch watch;
  if (planned.planner.name == "ring") planned.rings = plan_walks();
  if (planned.rings && !wants_auto_) {
    planned.seconds = watch.seconds();
    return;
  }
  planners::CandidateOptions options;
  options.for_choice = wants_auto_;
  // Software adds to every hop, so under a profile low trees may win at any size.
  if (!has_profile())
    options.least_size = std::ranges::min(unit_.keys, {}, [](const Key& key) { return key.size; }).size;
  const auto paths = has_profile() ? spec_.machines[unit_.machine].costs->paths : planners::Paths::any;
  const planners::ParallelLinks network(*topology_, paths);
  auto made = planners::make_candidates_by(planned.planner, network, collective_, bound_, options);
  planned.seconds = watch.seconds();
  if (made) {
    planned.candidates = std::move(*made);
  } else {
    planned.refusal = made.error();
  }
}

/// The rings, where they give for every key just what their stored schedule would, or less time than what is stored of
/// them where it has too many transfers.
std::optional<planners::WalkedRings> UnitRun::plan_walks() const {
  const std::size_t ranks = topology_->rank_count();
  if (has_profile() || ranks < planners::least_walked_ranks) return std::nullopt;
  auto rings = planners::plan_ring_walks(*topology_, collective_);
  if (!rings) return std::nullopt;
  for (const Key& key : unit_.keys) {
    if (key.algorithm != "ring" && key.algorithm != "auto") continue;
    if (model_of(spec_, key) != sim::ModelKind::link) return std::nullopt;
    const auto walked = walk(*rings, key);
    const bool is_better = rings->is_dealt && circumstances_of(key, true).are_plain();
    const bool may_walk = walked && (walked->is_stored_form || is_better || ranks >= planners::most_stored_ranks);
    if (!may_walk) return std::nullopt;
  }
  return *std::move(rings);
}

Result<sim::RingReport> UnitRun::walk(const planners::WalkedRings& rings, const Key& key) const {
  const sim::Circumstances circumstances = circumstances_of(key, true);
  const auto run = [&](const Cut& cut, bool with_jitter) {
    sim::Options options = options_of(key, cut);
    options.set(with_jitter ? circumstances : circumstances_of(key, false));
    return sim::simulate_rings(rings.walks, *topology_, options, circumstances.endpoints.engines());
  };
  const planners::FixedCut fixed{key.chunk, std::nullopt, circumstances.endpoints.payload_ppm / 1e6};
  const auto best = planners::find_best_cut(rings.chunks, key.size, fixed, [&](const Cut& cut, Picoseconds) {
    return run(cut, false).map([](const auto& walked) -> RunReport { return walked.report; });
  });
  if (!best) return tl::unexpected(best.error());
  return run({best->chunk, best->ahead}, true);
}

sim::Circumstances UnitRun::circumstances_of(const Key& key, bool with_jitter) const {
  const auto protocol = sim::parse_protocol(key.protocol);
  ESPALIER_CHECK(protocol.has_value(), "a key's protocol is one of the spec's");
  sim::Circumstances circumstances{sim::preset(*protocol), {}};
  circumstances.endpoints.copy_engines = key.copy_engines;
  if (with_jitter) {
    circumstances.conditions.jitter_ppm = key.jitter_ppm;
    circumstances.conditions.seed = key.seed;
  }
  return circumstances;
}

sim::Options UnitRun::options_of(const Key& key, const Cut& cut) const {
  sim::Options options;
  options.size = key.size;
  options.set(cut);
  options.element_size = size_of(spec_.type);
  return options;
}

void UnitRun::seal() {
  candidates_.bound = bound_;
  for (Planned& planned : planned_) {
    if (planned.rings) rings_ = &*planned.rings;
    if (planned.refusal) candidates_.refused.push_back({std::string(planned.planner.name), *planned.refusal});
    std::ranges::move(planned.candidates, std::back_inserter(candidates_.made));
    planned.candidates.clear();
  }
  for (std::size_t i = 0; i < candidates_.made.size(); ++i) {
    for (const std::uint32_t engines : spec_.copy_engines) ready_[{i, engines}] = std::make_unique<Ready>();
  }
}

Result<const sim::Simulator*> UnitRun::find_simulator(const Taken& taken, const Key& key) {
  const auto index = static_cast<std::size_t>(taken.candidate - candidates_.made.data());
  Ready& ready = *ready_.at({index, key.copy_engines});
  std::call_once(ready.once, [&] {
    ready.simulator = sim::Simulator::make_unverified(taken.candidate->schedule, *topology_,
                                                      circumstances_of(key, false).endpoints.engines());
  });
  if (!*ready.simulator) return tl::unexpected(ready.simulator->error());
  return &**ready.simulator;
}

Result<sim::Report> UnitRun::simulate(const Taken& taken, const Key& key, sim::ModelKind model) {
  const auto simulator = find_simulator(taken, key);
  if (!simulator) return tl::unexpected(simulator.error());
  sim::Options options = options_of(key, taken.cut);
  options.model = model;
  options.set(circumstances_of(key, true));
  return (*simulator)->run(options);
}

/// The choice knows nothing of the jitter that is to come.
Result<UnitRun::Taken> UnitRun::decide(const Key& key, sim::ModelKind model) {
  const double payload = circumstances_of(key, false).endpoints.payload_ppm / 1e6;
  const planners::FixedCut fixed{key.chunk, std::nullopt, payload};
  const auto run = [&](const planners::Candidate& candidate, const Cut& cut,
                       Picoseconds deadline) -> Result<std::optional<RunReport>> {
    const auto simulator = find_simulator({&candidate, cut}, key);
    if (!simulator) return tl::unexpected(simulator.error());
    sim::Options options = options_of(key, cut);
    options.model = model;
    options.set(circumstances_of(key, false));
    return (*simulator)->run_until(options, deadline);
  };
  if (key.algorithm != "auto") {
    const auto named = find_named(key.algorithm);
    if (!named) return tl::unexpected(named.error());
    const auto best =
        planners::find_best_cut((*named)->chunks, key.size, fixed,
                                [&](const Cut& cut, Picoseconds deadline) { return run(**named, cut, deadline); });
    if (!best) return tl::unexpected(best.error());
    return Taken{*named, {best->chunk, best->ahead}};
  }
  if (candidates_.made.empty()) return tl::unexpected(candidates_.refused.front().error);
  const auto evaluate = [&](const Schedule& schedule, Bytes, const Cut& cut, Picoseconds deadline) {
    const auto of = std::ranges::find_if(candidates_.made,
                                         [&](const planners::Candidate& made) { return &made.schedule == &schedule; });
    return run(*of, cut, deadline);
  };
  const auto choice = planners::choose(candidates_, key.size, evaluate, fixed);
  if (!choice) return tl::unexpected(choice.error());
  return Taken{choice->candidate, {choice->run.chunk, choice->run.ahead}};
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

Result<UnitRun::Taken> UnitRun::find_taken(const Key& key, sim::ModelKind model) {
  Decision* decision = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    auto& place = decisions_[{key.algorithm, key.size.count, key.chunk ? key.chunk->count : -1, model, key.protocol,
                              key.copy_engines}];
    if (place == nullptr) place = std::make_unique<Decision>();
    decision = place.get();
  }
  std::call_once(decision->once, [&] { decision->taken = decide(key, model); });
  return *decision->taken;
}

Result<Figures> UnitRun::try_run(const Key& key) {
  if (trouble_) return tl::unexpected(*trouble_);
  const sim::ModelKind model = model_of(spec_, key);
  Figures figures;
  std::optional<Result<sim::Report>> ran;
  if (has_profile()) {
    ran = run_profiled(key, model, figures.planner);
  } else if (key.algorithm == "ring" && rings_ != nullptr) {
    figures.planner = "ring";
    auto walked = walk(*rings_, key);
    ran = walked ? Result<sim::Report>(std::move(walked->report)) : tl::unexpected(walked.error());
  } else {
    const auto taken = find_taken(key, model);
    if (!taken) return tl::unexpected(taken.error());
    figures.planner = taken->candidate->planner;
    ran = simulate(*taken, key, model);
    // What is stored of the rings may be slower than they are.
    auto walked = rings_ != nullptr && key.algorithm == "auto" ? std::optional(walk(*rings_, key)) : std::nullopt;
    if (walked && *walked && *ran && (*walked)->report.elapsed < (*ran)->elapsed) {
      figures.planner = "ring";
      ran = std::move((*walked)->report);
    }
  }
  const Result<sim::Report>& report = *ran;
  if (!report) return tl::unexpected(report.error());
  figures.ranks = collective_.rank_count;
  figures.chunk = report->chunk;
  figures.elapsed = report->elapsed;
  figures.algbw = report->algbw();
  figures.busbw = report->busbw(collective_);
  figures.of_bound = report->of_bound(bound_.time_per_byte, collective_);
  figures.bound = to_string(bound_.time_per_byte);
  if (const auto busiest = sim::busiest_links(*report, *topology_, 1); !busiest.empty() && report->elapsed.count > 0) {
    figures.busiest = busiest.front().name;
    figures.busiest_share = busiest.front().share;
  }
  return figures;
}

forecast::ProfiledRuns& UnitRun::find_profiled(const Key& key, sim::ModelKind model) {
  const std::scoped_lock lock(mutex_);
  auto& place = profiled_[{key.chunk ? key.chunk->count : -1, model, key.protocol, key.jitter_ppm, key.seed}];
  if (place != nullptr) return *place;
  const Machine& machine = spec_.machines[unit_.machine];
  const auto protocol = sim::parse_protocol(key.protocol);
  ESPALIER_CHECK(protocol.has_value(), "a key's protocol is one of the spec's");
  forecast::ProfiledRuns::Options options{*machine.costs,
                                          machine.launch,
                                          *protocol == sim::Protocol::plain ? std::nullopt : std::optional(*protocol),
                                          size_of(spec_.type),
                                          {key.chunk, std::nullopt, 1},
                                          model,
                                          circumstances_of(key, true).conditions};
  place = std::make_unique<forecast::ProfiledRuns>(*topology_, candidates_, options);
  return *place;
}

Result<sim::Report> UnitRun::run_profiled(const Key& key, sim::ModelKind model, std::string& planner) {
  if (key.algorithm != "auto" && key.algorithm != "nccl") {
    if (const auto named = find_named(key.algorithm); !named) return tl::unexpected(named.error());
  }
  if (key.algorithm == "auto" && candidates_.made.empty()) return tl::unexpected(candidates_.refused.front().error);
  auto ran = find_profiled(key, model).run(key.algorithm, key.size);
  if (!ran) {
    const bool is_no_failure = ran.error().code == ErrorCode::unsupported;
    return espalier::fail(ran.error().code, (is_no_failure ? std::string(not_planned) : "") + ran.error().message);
  }
  planner = fmt::format("{}/{}", ran->candidate->planner, sim::to_string(ran->protocol));
  return std::move(ran->report);
}

double UnitRun::planning_seconds(const std::string& algorithm) const {
  double seconds = 0;
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
