#include "forecast/sources/advisor.h"

#include <algorithm>
#include <vector>

#include "sim/simulate.h"

namespace espalier::forecast {
namespace {

/// Message sizes are whole numbers of the largest element; the choice hardly depends on it.
constexpr std::int64_t element_size = 1;

/// Of the candidates that take as long as this one, to within so much, the one that has to wait least often.
const planners::Candidate& shallowest_of_equals(const planners::Candidates& candidates,
                                                const planners::Candidate& fastest, Bytes size) {
  constexpr double about = 1.02;
  const double longest = about * fastest.chunks.pipelined_time(size);
  const auto latency = [](const planners::Candidate& candidate) { return candidate.chunks.latency(); };
  const planners::Candidate* best = &fastest;
  for (const planners::Candidate& candidate : candidates.made) {
    const bool is_equal = candidate.chunks.pipelined_time(size) <= longest;
    if (is_equal && latency(candidate) < latency(*best)) best = &candidate;
  }
  return *best;
}

/// The quickest; of those within a tenth of it, which predictions hardly tell apart, the first planner's of those that
/// load links least.
Result<const planners::Candidate*> fastest_there(const planners::Candidates& candidates, Bytes size,
                                                 const AdvisorOptions& options) {
  constexpr double about = 1.1;
  constexpr double equal_load = 1.01;
  struct Known {
    const planners::Candidate* candidate = nullptr;
    double seconds = 0;
    double load = 0;
  };
  std::vector<Known> known;
  std::optional<Error> refused;
  for (const planners::Candidate& candidate : candidates.made) {
    const auto seconds = options.seconds_there(candidate, size);
    if (!seconds && seconds.error().code != ErrorCode::unsupported) return tl::unexpected(seconds.error());
    if (seconds) known.push_back({&candidate, *seconds, candidate.chunks.load_time(size)});
    if (!seconds && !refused) refused = seconds.error();
  }
  if (known.empty()) return tl::unexpected(*refused);
  const double least = std::ranges::min_element(known, {}, &Known::seconds)->seconds;
  std::erase_if(known, [&](const Known& one) { return one.seconds > about * least; });
  const double min_load = std::ranges::min_element(known, {}, &Known::load)->load;
  std::erase_if(known, [&](const Known& one) { return one.load > equal_load * min_load; });
  return known.front().candidate;
}

}  // namespace

Result<Advisor::Planned*> Advisor::plan_once(const Collective& collective) {
  const auto known =
      std::ranges::find_if(planned_, [&](const Planned& planned) { return planned.collective == collective; });
  if (known != planned_.end()) return &*known;
  const bool is_choice = options_.algorithm == "auto";
  if (!is_choice) {
    if (const auto known = planners::find_planner(options_.algorithm); !known) return tl::unexpected(known.error());
  }
  RunOptions how{.element_size = element_size};
  if (options_.profile) {
    const profile::Profile& costs = *options_.profile;
    how.profile = std::make_shared<const Software>(Software{costs.name, costs, costs.launches.front().second, {}});
  }
  auto made = plan({.machine = &topology_,
                    .collective = collective,
                    .algorithms = {options_.algorithm},
                    .how = how,
                    .forms = PlanForms::schedules});
  if (!made) return tl::unexpected(made.error());
  // Switches that take part are no ranks that could run their part of a schedule.
  std::erase_if(made->made, [](const planners::Candidate& candidate) { return !candidate.schedule.relays.empty(); });
  // Where three ranks or more add inputs each in an order of its own, the last bits of a sum differ from rank to rank:
  // that is for those who name the planner.
  const auto adds_apart = [&](const planners::Candidate& candidate) {
    return is_choice && collective.rank_count > 2 && candidate.schedule.reads_inputs();
  };
  if (!std::ranges::all_of(made->made, adds_apart)) std::erase_if(made->made, adds_apart);
  if (made->made.empty()) {
    if (made->refused.empty()) {
      return fail(ErrorCode::unsupported, "only switches that reduce or copy could run this schedule",
                  "use -a ring, tree or packing");
    }
    return tl::unexpected(made->refused.front().error);
  }
  auto candidates = std::make_shared<const planners::Candidates>(std::move(*made));
  Planned& planned = planned_.emplace_back(Planned{collective, std::move(candidates), nullptr});
  planned.runs = std::make_unique<CandidateRuns>(topology_, *planned.candidates, how);
  return &planned;
}

Result<SourcedSchedule> Advisor::advise(const Collective& collective, Bytes size) {
  const std::lock_guard lock(mutex_);
  const auto planned = plan_once(collective);
  if (!planned) return tl::unexpected(planned.error());
  const std::shared_ptr<const planners::Candidates> candidates = (*planned)->candidates;
  const planners::Candidate* best = &candidates->made.front();
  Pacing pacing{best->chunks.choose(size), 0};
  if (candidates->made.size() > 1 && options_.seconds_there) {
    const auto fastest = fastest_there(*candidates, size, options_);
    if (!fastest) return tl::unexpected(fastest.error());
    best = *fastest;
    pacing = {best->chunks.choose(size), 0};
  } else if (candidates->made.size() > 1) {
    const auto choice = (*planned)->runs->choose(size);
    if (!choice) return tl::unexpected(choice.error());
    best = choice->candidate;
    pacing = {choice->run.chunk, choice->run.ahead};
    if (options_.shares_memory) {
      best = &shallowest_of_equals(*candidates, *best, size);
      if (best != choice->candidate) pacing = {best->chunks.choose(size), 0};
    }
  }
  if (options_.leaves_chunk_to_engine) pacing.chunk = Bytes{};
  return SourcedSchedule{std::shared_ptr<const Schedule>(candidates, &best->schedule),
                         options_.chunk.value_or(pacing.chunk), options_.may_be_replaced,
                         options_.ahead.value_or(pacing.ahead)};
}

ScheduleSource Advisor::source(std::shared_ptr<Advisor> advisor) {
  return [advisor = std::move(advisor)](const Collective& collective, Bytes size) {
    return advisor->advise(collective, size);
  };
}

}  // namespace espalier::forecast
