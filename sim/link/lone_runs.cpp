#include "sim/link/lone_runs.h"

#include <algorithm>

#include "base/check.h"

namespace espalier::sim {

const std::vector<std::uint32_t>& LoneRuns::resources_of(const CompiledSchedule& compiled) {
  const auto [at, is_new] = resources_.try_emplace(&compiled);
  if (is_new) {
    at->second = compiled.steps();
    std::ranges::sort(at->second);
    at->second.erase(std::unique(at->second.begin(), at->second.end()), at->second.end());
  }
  return at->second;
}

void LoneRuns::put_aside(RunId run, const CompiledSchedule& compiled, bool waits) {
  Aside& aside = asides_[run];
  aside.compiled = &compiled;
  aside.waits = waits;
}

LoneRuns::Aside LoneRuns::take_back(RunId run) {
  const auto at = asides_.find(run);
  ESPALIER_CHECK(at != asides_.end(), "what is taken back was put aside");
  Aside aside = std::move(at->second);
  asides_.erase(at);
  std::erase(entering_, run);
  for (const std::uint32_t resource : resources_of(*aside.compiled)) {
    if (holders_[resource] == run) holders_[resource] = RunId();
  }
  come(*aside.compiled);
  return aside;
}

void LoneRuns::come(const CompiledSchedule& compiled) {
  for (const std::uint32_t resource : resources_of(compiled)) ++users_[resource];
}

void LoneRuns::leave(const CompiledSchedule& compiled) {
  for (const std::uint32_t resource : resources_of(compiled)) --users_[resource];
}

void LoneRuns::hold(RunId run, const CompiledSchedule& compiled, std::int64_t entry) {
  Aside& aside = asides_.at(run);
  aside.entry = entry;
  if (!aside.waits) entering_.push_back(run);
  for (const std::uint32_t resource : resources_of(compiled)) holders_[resource] = run;
}

void LoneRuns::know(RunId run, const LoneRun& known) {
  Aside& aside = asides_.at(run);
  aside.known = &known;
  std::erase(entering_, run);
  ends_.push({aside.entry + known.ends.front().first, run});
}

bool LoneRuns::are_used(const CompiledSchedule& compiled) {
  return std::ranges::any_of(resources_of(compiled), [&](std::uint32_t resource) { return users_[resource] > 0; });
}

std::vector<RunId> LoneRuns::holders_past(const CompiledSchedule& compiled, std::int64_t time) {
  std::vector<RunId> found;
  for (const std::uint32_t resource : resources_of(compiled)) {
    const RunId holder = holders_[resource];
    if (holder.is_none() || std::ranges::find(found, holder) != found.end()) continue;
    const Aside* const aside = find(holder);
    if (aside != nullptr && aside->end() > time) found.push_back(holder);
  }
  return found;
}

std::int64_t LoneRuns::next_entry() const {
  std::int64_t next = never;
  for (const RunId run : entering_) next = std::min(next, asides_.at(run).entry);
  return next;
}

std::vector<RunId> LoneRuns::entering_by(std::int64_t time) const {
  std::vector<RunId> found;
  for (const RunId run : entering_) {
    if (asides_.at(run).entry <= time) found.push_back(run);
  }
  std::ranges::sort(found);
  return found;
}

/// Of those that were taken back the ends do not count any more.
std::int64_t LoneRuns::next_end() {
  while (!ends_.empty() && find(ends_.top().run) == nullptr) ends_.pop();
  return ends_.empty() ? never : ends_.top().time;
}

void LoneRuns::take_ends(std::int64_t time, std::vector<RankEnd>& ended, std::vector<RunId>& over) {
  while (next_end() == time) {
    const RunId run = ends_.top().run;
    ends_.pop();
    Aside& aside = asides_.at(run);
    const auto& ends = aside.known->ends;
    while (aside.ended < ends.size() && aside.entry + ends[aside.ended].first == time) {
      ended.push_back({run, ends[aside.ended++].second, time});
    }
    if (aside.ended < ends.size()) {
      ends_.push({aside.entry + ends[aside.ended].first, run});
      continue;
    }
    ++over_[aside.known];
    events_ += aside.known->events;
    asides_.erase(run);
    over.push_back(run);
  }
}

void LoneRuns::add_uses(std::vector<LinkUse>& links) const {
  for (const auto& [known, times] : over_) {
    for (const LoneRun::Use& each : known->uses) {
      if (each.resource >= links.size()) continue;  // no link
      links[each.resource].bytes += each.use.bytes * static_cast<std::int64_t>(times);
      links[each.resource].busy.count += each.use.busy.count * static_cast<std::int64_t>(times);
    }
  }
}

}  // namespace espalier::sim
