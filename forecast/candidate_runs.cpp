#include "forecast/candidate_runs.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "base/parallel.h"

namespace espalier::forecast {

CandidateRuns::CandidateRuns(const Topology& topology, const planners::Candidates& candidates, RunOptions options)
    : topology_(&topology), candidates_(&candidates), options_(std::move(options)), link_times_(*this) {}

const Result<CandidateSimulator>& CandidateRuns::find_simulator(const planners::Candidate& candidate) {
  KnownSimulator* known = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    known = &simulators_[&candidate];
  }
  std::call_once(known->once, [&] {
    known->made = CandidateSimulator::make(candidate, *topology_, options_.circumstances.endpoints.engines());
  });
  return *known->made;
}

sim::Conditions CandidateRuns::steady() const {
  sim::Conditions conditions = options_.circumstances.conditions;
  conditions.jitter_ppm = 0;
  return conditions;
}

CandidateRuns::Run CandidateRuns::run_of(const planners::Candidate& candidate, Bytes size, const Pacing& pacing,
                                         const sim::Conditions& conditions) {
  sim::Options options = options_.at(size, pacing);
  options.conditions = conditions;
  const KnownRuns::Key key{&candidate, size.count, pacing.chunk.count, pacing.ahead, conditions.jitter_ppm > 0};
  return {key, [this, &candidate, options](Picoseconds deadline) -> Result<std::optional<sim::Report>> {
            if (options_.on_run) options_.on_run();
            const auto& simulator = find_simulator(candidate);
            if (!simulator) return tl::unexpected(simulator.error());
            return simulator->run_until(options, deadline);
          }};
}

Result<sim::Report> CandidateRuns::simulate(const planners::Candidate& candidate, Bytes size, const Pacing& pacing,
                                            const sim::Conditions& conditions) {
  const Run run = run_of(candidate, size, pacing, conditions);
  const sim::Conditions& own = options_.circumstances.conditions;
  if (conditions.jitter_ppm == 0 || (conditions.jitter_ppm == own.jitter_ppm && conditions.seed == own.seed)) {
    return runs_.run(run.key, run.simulate);
  }
  auto report = run.simulate(no_deadline);  // One of many seeds, which nobody asks for again.
  if (!report) return tl::unexpected(report.error());
  return **std::move(report);
}

Result<std::optional<RunReport>> CandidateRuns::evaluate(const planners::Candidate& candidate, Bytes size,
                                                         const Pacing& pacing, Picoseconds deadline) {
  const Run run = run_of(candidate, size, pacing, steady());
  return runs_.run_until(run.key, deadline, run.simulate);
}

planners::FixedPacing CandidateRuns::fixed_for(const planners::Candidate& candidate, Bytes size) const {
  planners::FixedPacing fixed = options_.pacing;
  sim::Options of_run = options_.at(size, {size, 0});
  of_run.conditions = steady();
  fixed.parts = sim::simulated_parts(candidate.schedule, *topology_, options_.circumstances.endpoints.engines(),
                                     candidate.symmetry.get(), of_run);
  return fixed;
}

planners::CandidateTimes& CandidateRuns::times() {
  if (options_.profile) return profiled();
  return link_times_;
}

Result<Pacing> CandidateRuns::find_pacing(const planners::Candidate& candidate, Bytes size) {
  planners::Trial trial{&candidate, tl::unexpected(planners::NoRun::unsupported), 0};
  if (auto ran = link_times_.run(trial, size, std::nullopt); !ran) return tl::unexpected(ran.error());
  return Pacing{trial.run->chunk, trial.run->ahead};
}

ProfiledRuns& CandidateRuns::profiled() {
  const std::scoped_lock lock(mutex_);
  if (!profiled_) {
    const Software& chosen = *options_.profile;
    ProfiledRuns::Options options{chosen.profile,
                                  chosen.launch,
                                  chosen.protocol,
                                  options_.element_size,
                                  options_.pacing,
                                  options_.model,
                                  options_.circumstances.conditions,
                                  options_.communicators};
    profiled_ = std::make_unique<ProfiledRuns>(*topology_, *candidates_, options);
  }
  return *profiled_;
}

Result<CandidateRun> CandidateRuns::run_profiled(const std::string& algorithm, Bytes size) {
  auto ran = profiled().run(algorithm, size);
  if (!ran) return tl::unexpected(ran.error());
  CandidateRun result{size, algorithm, ran->candidate, std::move(ran->report), std::move(ran->why), nullptr, {}};
  result.setting = ran->setting;
  result.protocol = sim::to_string(ran->protocol);
  return result;
}

Result<planners::Choice> CandidateRuns::choose_as_nccl(Bytes size) {
  auto picked = run_profiled("nccl", size);
  if (!picked) return tl::unexpected(picked.error());
  planners::Choice choice{picked->candidate, picked->report, std::move(picked->why), {}};
  choice.trials.push_back({choice.candidate, choice.run, 0});
  for (const planners::Candidate& candidate : candidates_->made) {
    if (&candidate == choice.candidate) continue;
    const auto ran = run_profiled(candidate.planner, size);
    planners::Trial trial{&candidate, tl::unexpected(planners::NoRun::unsupported), 0};
    if (ran) trial.run = static_cast<const RunReport&>(ran->report);
    choice.trials.push_back(std::move(trial));
  }
  return choice;
}

Result<planners::Choice> CandidateRuns::choose(Bytes size) {
  const bool is_of_nccl = std::ranges::all_of(
      candidates_->made, [&](const planners::Candidate& candidate) { return !times().competes(candidate); });
  return is_of_nccl ? choose_as_nccl(size) : planners::choose(*candidates_, size, times());
}

Result<CandidateRun> CandidateRuns::run(const std::string& algorithm, Bytes size, const sim::Conditions& conditions) {
  if (options_.profile) return run_profiled(algorithm, size);
  if (algorithm == "auto") {
    const auto choice = choose(size);
    if (!choice) return tl::unexpected(choice.error());
    auto report = simulate(*choice->candidate, size, {choice->run.chunk, choice->run.ahead}, conditions);
    if (!report) return tl::unexpected(report.error());
    return CandidateRun{size, algorithm, choice->candidate, *std::move(report), choice->why, nullptr, {}};
  }
  const planners::Candidate* candidate = candidates_->find(algorithm);
  ESPALIER_CHECK(candidate != nullptr, "what runs was made");
  const auto pacing = find_pacing(*candidate, size);
  if (!pacing) return tl::unexpected(pacing.error());
  auto report = simulate(*candidate, size, *pacing, conditions);
  if (!report) return tl::unexpected(report.error());
  return CandidateRun{size, algorithm, candidate, *std::move(report), {}, nullptr, {}};
}

namespace {

/// The size between two at which two candidates are expected to take as long as each other, if the second's time over
/// the first's is off by a factor that does not depend on the size.
double expect_crossover(const planners::ChunkModel& from, const planners::ChunkModel& to, double factor, double below,
                        double above) {
  constexpr int steps = 20;
  for (int step = 0; step < steps; ++step) {
    const double middle = std::sqrt(below * above);
    const Bytes size{static_cast<std::int64_t>(middle)};
    (factor * to.pipelined_time(size) < from.pipelined_time(size) ? above : below) = middle;
  }
  return std::sqrt(below * above);
}

}  // namespace

Result<CandidateRuns::Pair> CandidateRuns::run_both(const std::string& from, const std::string& to, Bytes size) {
  std::array<std::optional<Result<CandidateRun>>, 2> runs;
  run_parallel(2, usable_threads(), [&](std::size_t i) { runs[i] = run(i == 0 ? from : to, size); });
  for (const auto& each : runs) {
    if (!*each) return tl::unexpected(each->error());
  }
  return Pair{(*runs[0])->report.elapsed.seconds(), (*runs[1])->report.elapsed.seconds()};
}

/// Between the ends, which ran for the table, mostly; one look where times that grow evenly meet, and as if they grew
/// evenly between it and the end on the other side.
Result<Crossover> CandidateRuns::find_dear_crossover(const std::string& from, const std::string& to, Bytes below,
                                                     Bytes above) {
  const auto at_below = run_both(from, to, below);
  const auto at_above = at_below ? run_both(from, to, above) : at_below;
  if (!at_above) return tl::unexpected(at_above.error());
  double loss = at_below->gap(), gain = -at_above->gap();
  const auto meet = [&] {
    const double part = loss + gain > 0 ? std::clamp(loss / (loss + gain), 0.0, 1.0) : 1;
    const auto bytes = static_cast<std::int64_t>(part * static_cast<double>((above - below).count));
    return Bytes{below.count + bytes / options_.element_size * options_.element_size};
  };
  Bytes size = meet();
  if (size <= below || size >= above) return Crossover{from, to, above};
  // Equal shards may be alike, and then a part is run for all of them.
  const std::int64_t shards = options_.element_size * candidates_->find(from)->collective().rank_count;
  if (const Bytes whole{size.count / shards * shards}; whole > below) size = whole;
  const auto there = run_both(from, to, size);
  if (!there) return tl::unexpected(there.error());
  (there->gap() < 0 ? above : below) = size;
  (there->gap() < 0 ? gain : loss) = std::abs(there->gap());
  return Crossover{from, to, meet()};
}

Result<Crossover> CandidateRuns::find_crossover(const std::string& from, const std::string& to, Bytes below,
                                                Bytes above) {
  const planners::ChunkModel& chunks_from = candidates_->find(from)->chunks;
  const planners::ChunkModel& chunks_to = candidates_->find(to)->chunks;
  if (planners::exceeds_hop_budget(chunks_from, above) || planners::exceeds_hop_budget(chunks_to, above)) {
    return find_dear_crossover(from, to, below, above);
  }
  constexpr double close_enough = 1.05, beside = 1.02;
  double factor = 1;
  for (int look = 0; static_cast<double>(above.count) > close_enough * static_cast<double>(below.count); ++look) {
    const auto low = static_cast<double>(below.count), high = static_cast<double>(above.count);
    double next = std::sqrt(low * high);
    if (look % 3 != 2) {  // else the middle, wherever it is expected
      const double expected = expect_crossover(chunks_from, chunks_to, factor, low, high);
      next = std::clamp(expected < next ? expected * beside : expected / beside, low * beside, high / beside);
    }
    const Bytes size{static_cast<std::int64_t>(next) / options_.element_size * options_.element_size};
    if (size <= below || size >= above) break;
    const auto times = run_both(from, to, size);
    if (!times) return tl::unexpected(times.error());
    factor = times->to / times->from * chunks_from.pipelined_time(size) / chunks_to.pipelined_time(size);
    (times->gap() < 0 ? above : below) = size;
  }
  return Crossover{from, to, above};
}

}  // namespace espalier::forecast
