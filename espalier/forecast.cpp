#include "espalier/forecast.h"

#include <algorithm>
#include <utility>

#include "espalier/software.h"
#include "forecast/answer.h"
#include "forecast/candidate_runs.h"
#include "forecast/question.h"

namespace espalier {

/// What runs point into stays where it is.
struct Forecast::State {
  Machine machine;
  Collective collective;
  ForecastOptions options;
  forecast::RunOptions how;
  planners::Candidates candidates;
  std::vector<std::string> algorithms;
  std::unique_ptr<forecast::CandidateRuns> runs;

  [[nodiscard]] forecast::Question question(std::vector<std::string> names, forecast::PlanForms forms) const {
    return {.machine = &machine.topology,
            .collective = collective,
            .algorithms = std::move(names),
            .how = how,
            .forms = forms,
            .threads = std::max(1U, options.threads)};
  }

  [[nodiscard]] Prediction prediction_of(const forecast::CandidateRun& run) const {
    const sim::Report& report = run.report;
    return {run.size,
            run.by(),
            report.elapsed.seconds(),
            report.algbw(),
            report.busbw(collective),
            report.of_bound(candidates.bound.time_per_byte, collective),
            report.chunk};
  }

  Result<forecast::CandidateRun> run(const std::string& algorithm, Bytes size) const {
    if (size.count < 0 || size > max_message_size) {
      return fail(ErrorCode::invalid_input, "a message has from 0 bytes to 1 PiB");
    }
    const std::int64_t whole = size.count / how.element_size * how.element_size;
    return runs->run(algorithm, {whole});
  }

  /// Of several the fastest; that one cannot run so is no error where another can.
  Result<forecast::CandidateRun> run_best(Bytes size) const {
    std::optional<forecast::CandidateRun> best;
    std::optional<Error> refused;
    for (const std::string& algorithm : algorithms) {
      auto one = run(algorithm, size);
      if (!one && one.error().code != ErrorCode::unsupported) return one;
      if (!one && !refused) refused = one.error();
      if (one && (!best || one->report.elapsed < best->report.elapsed)) best = *std::move(one);
    }
    if (best) return *std::move(best);
    return tl::unexpected(*refused);
  }
};

Forecast::Forecast(std::unique_ptr<State> state) : state_(std::move(state)) {}
Forecast::Forecast(Forecast&&) noexcept = default;
Forecast& Forecast::operator=(Forecast&&) noexcept = default;
Forecast::~Forecast() = default;

Result<Forecast> Forecast::make(Machine machine, const std::string& collective, const ForecastOptions& options) {
  const auto kind = parse_collective(collective);
  if (!kind) return tl::unexpected(kind.error());
  if (options.algorithms.empty() || options.element_size < 1) {
    return fail(ErrorCode::invalid_input, "a forecast has an algorithm and elements of at least one byte",
                "leave algorithms and element_size as they are");
  }
  auto made = make_collective(*kind, machine.topology.rank_count(), options.root, options.shares);
  if (!made) return tl::unexpected(made.error());
  auto state = std::make_unique<State>(State{std::move(machine), *std::move(made), options, {}, {}, {}, nullptr});
  state->how.element_size = options.element_size;
  const std::string& profile = options.profile.empty() ? state->machine.profile : options.profile;
  if (!profile.empty() && profile != "ideal") {
    auto software = read_software(profile, options.profile.empty() ? "the machine's profile" : "profile");
    if (!software) return tl::unexpected(software.error());
    state->how.profile = std::make_shared<const forecast::Software>(*std::move(software));
  }
  const auto nccl = std::ranges::find_if(options.algorithms, forecast::is_nccl_algorithm);
  if (!state->how.profile && nccl != options.algorithms.end()) {
    return fail(ErrorCode::invalid_input, *nccl + " is predicted under a profile alone",
                "such as ForecastOptions{.profile = \"nccl-hopper\"}");
  }
  // Not rings that are walked: they are for sizes that are known when it is planned.
  auto candidates = forecast::plan(state->question(options.algorithms, forecast::PlanForms::parts));
  if (!candidates) return tl::unexpected(candidates.error());
  state->candidates = *std::move(candidates);
  auto algorithms = forecast::made_algorithms(options.algorithms, state->candidates);
  if (!algorithms) return tl::unexpected(algorithms.error());
  state->algorithms = *std::move(algorithms);
  state->runs = std::make_unique<forecast::CandidateRuns>(state->machine.topology, state->candidates, state->how);
  return Forecast(std::move(state));
}

Result<Prediction> Forecast::best(Bytes size) const {
  return state_->run_best(size).map([&](const forecast::CandidateRun& run) { return state_->prediction_of(run); });
}

Result<Prediction> Forecast::predict(const std::string& algorithm, Bytes size) const {
  if (std::ranges::find(state_->algorithms, algorithm) == state_->algorithms.end()) {
    return fail(ErrorCode::invalid_input, "the forecast is not of '" + algorithm + "'",
                "name it in ForecastOptions::algorithms");
  }
  return state_->run(algorithm, size).map([&](const forecast::CandidateRun& run) {
    return state_->prediction_of(run);
  });
}

const std::vector<std::string>& Forecast::algorithms() const { return state_->algorithms; }
const Bound& Forecast::bound() const { return state_->candidates.bound; }
const Topology& Forecast::topology() const { return state_->machine.topology; }
const Collective& Forecast::collective() const { return state_->collective; }

double Forecast::busbw_limit() const {
  const double seconds_per_byte = to_double(bound().time_per_byte);
  return seconds_per_byte > 0 ? to_double(collective().busbw_factor()) / seconds_per_byte : 0;
}

Result<Schedule> Forecast::plan(Bytes size) const {
  const auto run = state_->run_best(size);
  if (!run) return tl::unexpected(run.error());
  if (forecast::is_nccl_algorithm(run->planner())) {
    return fail(ErrorCode::unsupported, "what NCCL does is predicted, not planned", "leave nccl out of the algorithms");
  }
  auto stored = run->candidate->is_stored()
                    ? Result<Schedule>(run->candidate->schedule)
                    : forecast::plan(state_->question({run->planner()}, forecast::PlanForms::schedules))
                          .map([&](planners::Candidates&& made) { return std::move(made.made.front().schedule); });
  if (!stored) return stored;
  stored->bound = bound();
  stored->pacing = SizedPacing{run->size, run->report.chunk, static_cast<std::uint32_t>(run->report.ahead)};
  return stored;
}

}  // namespace espalier
