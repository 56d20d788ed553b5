#include "cli/measured/diagnosis_runs.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/parallel.h"
#include "cli/flags/algorithm_flags.h"
#include "cli/jobs/predict_rows.h"
#include "diagnose/setting.h"
#include "planners/nccl/search/nccl_box.h"
#include "planners/planner.h"
#include "planners/symmetric/symmetric_plan.h"
#include "profile/nccl_choices.h"
#include "topology/names/group.h"
#include "topology/slow.h"

namespace espalier::cli {
namespace {

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// What a row says that it ran, or what is taken for it.
std::string algorithm_of(const compare::Measurement& row, const std::string& otherwise) {
  return row.algorithm.empty() ? otherwise : row.algorithm;
}

/// The software with this protocol alone; empty: as it is.
std::shared_ptr<const forecast::Software> with_protocol(const std::shared_ptr<const forecast::Software>& software,
                                                        const std::string& name) {
  if (software == nullptr || name.empty()) return software;
  auto alone = *software;
  if (const auto protocol = sim::parse_protocol(name)) alone.protocol = *protocol;
  return std::make_shared<const forecast::Software>(std::move(alone));
}

/// Whether software that reads what links say of themselves sees a difference.
bool is_seen(const Topology& faulty, const Topology& machine) {
  return !std::ranges::equal(faulty.links(), machine.links(), {}, &Link::seen_rate, &Link::seen_rate);
}

}  // namespace

OrStop<std::vector<diagnose::Evidence>> evidence_of(const compare::Measurements& table, const Topology& tested,
                                                    const std::string& ranks, const std::string& algorithm) {
  if (const auto equal = check_equal(table, "diagnose"); !equal) return tl::unexpected(equal.error());
  if (const auto checked = sizes_by_collective(table, tested); !checked) return tl::unexpected(checked.error());
  std::map<diagnose::Question, std::map<std::int64_t, std::vector<double>>> series;
  for (const compare::Measurement& row : table.rows) {
    if (row.size.count < 1 || !(row.seconds > 0)) continue;
    const diagnose::Question question{ranks, row.collective, algorithm_of(row, algorithm)};
    series[question][row.size.count].push_back(row.seconds);
  }
  std::vector<diagnose::Evidence> evidence;
  for (auto& [question, sizes] : series) {
    diagnose::Evidence& one = evidence.emplace_back();
    one.file = table.file;
    one.question = question;
    for (auto& [size, times] : sizes) one.points.push_back({{size}, median_of(std::move(times))});
  }
  if (evidence.empty()) {
    return stop({ErrorCode::invalid_input, table.file + " has no row of some bytes that takes time", {}});
  }
  return evidence;
}

Result<planners::Candidates> DiagnosisRuns::plan(const Topology& on, const Collective& collective,
                                                 const std::string& algorithm, unsigned threads) const {
  const auto algorithms = parse_algorithms(algorithm, true);
  if (!algorithms) return tl::unexpected(algorithms.error());
  auto candidates = forecast::plan({.machine = &on,
                                    .collective = collective,
                                    .algorithms = *algorithms,
                                    .how = {.profile = software_},
                                    .threads = threads});
  if (candidates && candidates->made.empty()) return tl::unexpected(candidates->refused.front().error);
  return candidates;
}

/// Of NCCL's schedules alone no bound is asked: it takes longer than they do, for every way in which a machine may be
/// damaged.
Result<planners::Candidates> DiagnosisRuns::plan_again(const Topology& on, const Collective& collective,
                                                       const std::string& algorithm) const {
  const auto algorithms = parse_algorithms(algorithm, true);
  if (!algorithms) return tl::unexpected(algorithms.error());
  const bool is_small = collective.rank_count < planners::min_symmetric_ranks;
  if (!is_small || !std::ranges::all_of(*algorithms, forecast::is_nccl_algorithm)) {
    return plan(on, collective, algorithm, 1);
  }
  const planners::BundledNetwork network(on, forecast::paths_of(software_));
  planners::CandidateOptions options;
  std::optional<planners::NcclEra> era;
  if (software_ != nullptr && software_->profile.tuner) {
    era = profile::era_of(*software_->profile.tuner);
    options.context.nccl = &*era;
  }
  planners::Candidates candidates;
  for (const planners::Planner& planner : forecast::planners_for(*algorithms, collective)) {
    auto made = planners::make_candidates_by(planner, network, collective, {}, options);
    if (made) std::ranges::move(*made, std::back_inserter(candidates.made));
    if (!made) candidates.refused.push_back({std::string(planner.name), made.error()});
  }
  if (candidates.made.empty() && !candidates.refused.empty()) return tl::unexpected(candidates.refused.front().error);
  return candidates;
}

std::unique_ptr<DiagnosisRuns> DiagnosisRuns::with_launch(std::shared_ptr<const forecast::Software> software) const {
  auto other = std::make_unique<DiagnosisRuns>(machine_, std::move(software));
  for (const auto& [question, known] : healthy_) other->planned_[question] = known->planned;
  return other;
}

Result<DiagnosisRuns::Planned> DiagnosisRuns::plan_healthy(const diagnose::Question& question, bool with_bound) const {
  Result<Topology> machine = machine_;
  if (!question.ranks.empty()) {
    const auto nodes = find_rank_nodes(machine_, question.ranks);
    if (!nodes) return tl::unexpected(nodes.error());
    machine = with_ranks(machine_, *nodes);
    if (!machine) return tl::unexpected(machine.error());
  }
  const auto collective = default_collective(question.collective, *machine);
  if (!collective) return tl::unexpected(collective.error());
  auto candidates = with_bound ? plan(*machine, *collective, question.algorithm, usable_threads())
                               : plan_again(*machine, *collective, question.algorithm);
  if (!candidates) return tl::unexpected(candidates.error());
  return Planned{*std::move(machine), *collective, *std::move(candidates)};
}

Result<DiagnosisRuns::Healthy*> DiagnosisRuns::healthy(const diagnose::Question& question, bool with_bound) {
  const std::scoped_lock lock(mutex_);
  const auto found = healthy_.find(question);
  if (found != healthy_.end()) return found->second.get();
  std::shared_ptr<const Planned>& planned = planned_[question];
  if (planned == nullptr) {
    auto made = plan_healthy(question, with_bound);
    if (!made) return tl::unexpected(made.error());
    planned = std::make_shared<const Planned>(*std::move(made));
  }
  auto made = std::make_unique<Healthy>();
  made->planned = planned;
  forecast::RunOptions options;
  options.profile = with_protocol(software_, question.protocol);
  made->runs = std::make_unique<forecast::CandidateRuns>(planned->machine, planned->candidates, options);
  return healthy_.emplace(question, std::move(made)).first->second.get();
}

Result<const forecast::CandidateRun*> DiagnosisRuns::healthy_run(Healthy& of, const std::string& algorithm,
                                                                 Bytes size) {
  {
    const std::scoped_lock lock(mutex_);
    const auto known = of.of_size.find(size.count);
    if (known != of.of_size.end()) return &known->second;
  }
  auto run = of.runs->run(algorithm, size);  // By several threads at once, of which the first one's is kept.
  if (!run) return tl::unexpected(run.error());
  const std::scoped_lock lock(mutex_);
  return &of.of_size.emplace(size.count, *std::move(run)).first->second;
}

Result<std::vector<double>> DiagnosisRuns::run_healthy(Healthy& of, const diagnose::Question& question,
                                                       std::span<const Bytes> sizes) {
  std::vector<double> times;
  for (const Bytes size : sizes) {
    const auto run = healthy_run(of, question.algorithm, predictable_size(size, of.planned->collective));
    if (!run) return tl::unexpected(run.error());
    times.push_back((*run)->report.elapsed.seconds());
  }
  return times;
}

Result<std::vector<double>> DiagnosisRuns::run_as_before(Healthy& of, const diagnose::Question& question,
                                                         const Topology& faulty, std::span<const Bytes> sizes) {
  std::map<AsBefore, std::unique_ptr<forecast::CandidateRuns>> runs;
  std::vector<double> times;
  for (const Bytes asked : sizes) {
    const Bytes size = predictable_size(asked, of.planned->collective);
    const auto before = healthy_run(of, question.algorithm, size);
    if (!before) return tl::unexpected(before.error());
    const forecast::CandidateRun& run = **before;
    const bool picks_its_chunk = forecast::is_nccl_algorithm(run.planner());
    const AsBefore as{run.planner(), run.protocol, picks_its_chunk ? 0 : run.report.chunk.count,
                      picks_its_chunk ? 0 : run.report.ahead};
    std::unique_ptr<forecast::CandidateRuns>& alike = runs[as];
    if (!alike) {
      forecast::RunOptions options;
      options.profile = with_protocol(software_, run.protocol);
      if (!picks_its_chunk) {
        options.pacing.chunk = run.report.chunk;
        options.pacing.ahead = static_cast<std::uint32_t>(run.report.ahead);
      }
      alike = std::make_unique<forecast::CandidateRuns>(faulty, of.planned->candidates, options);
    }
    const auto again = alike->run(run.planner(), size);
    if (!again) return tl::unexpected(again.error());
    times.push_back(again->report.elapsed.seconds());
  }
  return times;
}

Result<std::shared_ptr<const planners::Candidates>> DiagnosisRuns::plan_around(const Healthy& of,
                                                                               const diagnose::Question& question,
                                                                               const Topology& faulty) {
  if (!forecast::is_nccl_algorithm(question.algorithm)) {
    auto made = plan_again(faulty, of.planned->collective, question.algorithm);
    if (!made) return tl::unexpected(made.error());
    return std::make_shared<const planners::Candidates>(*std::move(made));
  }
  const std::pair key(question, seen_text(faulty));
  {
    const std::scoped_lock lock(mutex_);
    const auto known = planned_around_.find(key);
    if (known != planned_around_.end()) return known->second;
  }
  auto made = plan_again(faulty, of.planned->collective, question.algorithm);
  if (!made) return tl::unexpected(made.error());
  const std::scoped_lock lock(mutex_);
  return planned_around_.emplace(key, std::make_shared<const planners::Candidates>(*std::move(made))).first->second;
}

Result<std::vector<double>> DiagnosisRuns::run_planned_around(const Healthy& of, const diagnose::Question& question,
                                                              const Topology& faulty, std::span<const Bytes> sizes) {
  const auto candidates = plan_around(of, question, faulty);
  if (!candidates) return tl::unexpected(candidates.error());
  forecast::RunOptions options;
  options.profile = with_protocol(software_, question.protocol);
  options.communicators = communicators_;
  forecast::CandidateRuns runs(faulty, **candidates, options);
  std::vector<double> times;
  for (const Bytes size : sizes) {
    const auto run = runs.run(question.algorithm, predictable_size(size, of.planned->collective));
    if (!run) return tl::unexpected(run.error());
    times.push_back(run->report.elapsed.seconds());
  }
  return times;
}

Result<std::vector<double>> DiagnosisRuns::predict(const diagnose::Question& asked,
                                                   std::span<const diagnose::Fault> faults,
                                                   std::span<const Bytes> sizes) {
  using Kind = diagnose::Fault::Kind;
  const diagnose::Question question = diagnose::with_settings(asked, faults);
  const auto of = healthy(question);
  if (!of) return tl::unexpected(of.error());
  const auto faulty = diagnose::with_faults((*of)->planned->machine, faults);
  if (!faulty) return tl::unexpected(faulty.error());
  if (faulty->rank_count() != (*of)->planned->machine.rank_count()) {
    return fail(ErrorCode::infeasible, "a rank is gone");
  }
  const bool is_known = std::ranges::any_of(faults, &diagnose::Fault::is_planned_around);
  const bool is_other = std::ranges::any_of(
      faults, [](const diagnose::Fault& fault) { return fault.kind == Kind::gone || diagnose::is_of_machine(fault); });
  const bool is_whole =
      !is_other && std::ranges::none_of(faults, [](const diagnose::Fault& fault) { return fault.kind == Kind::slow; });
  const bool reads_links = forecast::is_nccl_algorithm(question.algorithm);
  const bool is_planned_around = is_other || (is_known && (!reads_links || is_seen(*faulty, (*of)->planned->machine)));
  auto times = is_whole            ? run_healthy(**of, question, sizes)
               : is_planned_around ? run_planned_around(**of, question, *faulty, sizes)
                                   : run_as_before(**of, question, *faulty, sizes);
  if (!times) return times;
  for (double& time : *times) time += diagnose::delay_of(faults);
  return times;
}

const LoadResponse& DiagnosisRuns::response_of(Healthy& of, const forecast::CandidateRun& run) {
  const std::scoped_lock lock(mutex_);
  const std::pair key(run.candidate, run.setting);
  const auto known = of.responses.find(key);
  if (known != of.responses.end()) return known->second;
  const Topology& ran_on = run.setting != nullptr ? run.setting->topology : of.planned->machine;
  return of.responses.emplace(key, LoadResponse(run.candidate->schedule, ran_on, of.planned->machine)).first->second;
}

Result<std::vector<double>> DiagnosisRuns::estimate(const diagnose::Question& question,
                                                    std::span<const diagnose::Fault> faults,
                                                    std::span<const Bytes> sizes) {
  using Kind = diagnose::Fault::Kind;
  const auto is_unknown = [](const diagnose::Fault& fault) {
    return fault.kind == Kind::late || (fault.kind == Kind::slow && !fault.is_planned_around);
  };
  if (!std::ranges::all_of(faults, is_unknown)) {
    return fail(ErrorCode::unsupported, "what is planned around is not estimated");
  }
  const auto of = healthy(question);
  if (!of) return tl::unexpected(of.error());
  const auto faulty = diagnose::with_faults((*of)->planned->machine, faults);
  if (!faulty) return tl::unexpected(faulty.error());
  std::vector<double> times;
  for (const Bytes asked : sizes) {
    const Bytes size = predictable_size(asked, (*of)->planned->collective);
    const auto run = healthy_run(**of, question.algorithm, size);
    if (!run) return tl::unexpected(run.error());
    if (!(*run)->candidate->is_stored()) return fail(ErrorCode::unsupported, "a plan that is not stored");
    const double added = faults.empty() ? 0 : response_of(**of, **run).added_per_byte(*faulty);
    times.push_back((*run)->report.elapsed.seconds() + added * static_cast<double>(size.count) +
                    diagnose::delay_of(faults));
  }
  return times;
}

double DiagnosisRuns::bound_per_byte(const diagnose::Question& question) {
  const auto of = healthy(question, true);
  return of ? to_double((*of)->planned->candidates.bound.time_per_byte) : 0;
}

}  // namespace espalier::cli
