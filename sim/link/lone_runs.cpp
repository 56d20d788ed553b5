#include "sim/link/lone_runs.h"

#include <algorithm>
#include <tuple>

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

/// Whether each of its transfers needs both of its two ranks.
bool LoneRuns::is_message(const CompiledSchedule& compiled) {
  constexpr std::uint32_t both = 2;
  const Schedule& schedule = compiled.schedule();
  if (schedule.collective.rank_count != both || schedule.transfers.empty()) return false;
  const auto [at, is_new] = messages_.try_emplace(&compiled);
  if (is_new) {
    at->second = std::ranges::all_of(schedule.transfers, [&](const Transfer& transfer) {
      return schedule.src(transfer).index() < both && schedule.dst(transfer).index() < both;
    });
  }
  return at->second;
}

void LoneRuns::put_aside(RunId run, const CompiledSchedule& compiled, const RunOptions& options, bool waits) {
  Lone& lone = lones_[run];
  lone.member = {&compiled, options};
  lone.waits = waits;
  lone.is_message = is_message(compiled);
}

std::vector<LoneRuns::GroupId> LoneRuns::groups_past(const CompiledSchedule& compiled, std::int64_t time) {
  std::vector<GroupId> found;
  for (const std::uint32_t resource : resources_of(compiled)) {
    const GroupId holder = holders_[resource];
    if (holder == no_group || std::ranges::find(found, holder) != found.end()) continue;
    if (groups_.contains(holder) && end_of(holder) > time) found.push_back(holder);
  }
  return found;
}

std::optional<std::vector<LoneRuns::GroupId>> LoneRuns::groups_met(const CompiledSchedule& compiled, std::int64_t time,
                                                                   const std::vector<Server>& servers) {
  auto met = groups_past(compiled, time);
  for (const std::uint32_t resource : resources_of(compiled)) {
    const bool is_held = std::ranges::find(met, holders_[resource]) != met.end();
    if (users_[resource] > 0 || (!is_held && servers[resource].free_at > time)) return {};
  }
  return met;
}

bool LoneRuns::may_join(const std::vector<GroupId>& groups) const {
  constexpr std::size_t max_runs = 128;
  constexpr std::size_t max_entries = 2'048;
  std::size_t runs = 1;
  std::size_t entries = 0;
  for (const GroupId id : groups) {
    runs += groups_.at(id).runs.size();
    entries += groups_.at(id).entries.size();
  }
  return groups.empty() || (runs <= max_runs && entries <= max_entries);
}

/// What is known of a group is looked for from its beginning: others have come to it that had their own.
void LoneRuns::restart(Group& group) {
  group.root = answers_.root();
  group.answer = group.root.get();
  group.walked = group.members = group.next_end = 0;
}

bool LoneRuns::join(RunId run, const std::vector<GroupId>& groups, std::int64_t now, Replay& replay) {
  const GroupId id = groups.empty() ? ++latest_group_ : groups.front();
  Group& group = groups_[id];
  if (groups.empty()) restart(group);
  const bool is_simulated = std::ranges::any_of(groups, [&](GroupId each) { return groups_.at(each).is_simulated; });
  for (const GroupId each : groups) {
    const Group& met = groups_.at(each);
    if (is_simulated && !met.is_simulated) add_to_replay(met, replay);
    if (groups.size() > 1) end_writing(each, met, now - entry_of(met));
  }
  group.is_simulated = is_simulated;
  for (const GroupId other : groups) {
    if (other == id) continue;
    const Group& merged = groups_.at(other);
    for (const RunId each : merged.runs) {
      Lone& lone = lones_.at(each);
      lone.group = id;
      lone.slot = static_cast<std::uint32_t>(group.runs.size());
      group.runs.push_back(each);
    }
    group.entries.insert(group.entries.end(), merged.entries.begin(), merged.entries.end());
    group.told.insert(group.told.end(), merged.told.begin(), merged.told.end());
    group.noted.insert(group.noted.end(), merged.noted.begin(), merged.noted.end());
    group.ranks_left += merged.ranks_left;
    groups_.erase(other);
  }
  if (groups.size() > 1) {
    std::ranges::stable_sort(group.entries, {}, &Entry::turn);
    std::erase_if(group.noted, [&](const RankEnd& end) { return end.time <= now; });
    restart(group);
  }
  Lone& lone = lones_.at(run);
  lone.group = id;
  lone.slot = static_cast<std::uint32_t>(group.runs.size());
  group.runs.push_back(run);
  group.ranks_left += lone.member.compiled->schedule().collective.rank_count;
  if (is_simulated) {
    replay.runs.emplace_back(run, lone.member.compiled);
    if (lone.early) replay.entries.push_back(*lone.early);
    std::ranges::stable_sort(replay.entries, {}, &Entry::turn);
  }
  for (const RunId each : group.runs) {
    for (const std::uint32_t resource : resources_of(*lones_.at(each).member.compiled)) holders_[resource] = id;
  }
  return is_simulated;
}

void LoneRuns::enter(const Entry& entry) {
  Lone& lone = lones_.at(entry.run);
  ++lone.entered;
  if (lone.group == no_group) {
    lone.early = entry;
    return;
  }
  Group& group = groups_.at(lone.group);
  // Nothing of a message moved until now.
  if (lone.early) group.entries.push_back({entry.run, lone.early->rank, entry.time, entry.now, entry.turn});
  lone.early.reset();
  group.entries.push_back(entry);
  unwalked_.push_back(lone.group);
}

bool LoneRuns::is_complete(const Group& group) const {
  return std::ranges::all_of(group.runs, [&](RunId run) { return lones_.at(run).is_complete(); });
}

/// Finds what is known after all entries so far; or the place for it, where the group is simulated.
void LoneRuns::walk(GroupId id) {
  Group& group = groups_.at(id);
  if (group.walked == group.entries.size()) return;
  const auto may_end = [&](RunId run) { return !lones_.at(run).waits || lones_.at(run).is_complete(); };
  if (std::ranges::none_of(group.runs, may_end)) return;
  const std::int64_t first = entry_of(group);
  const std::int64_t now = group.entries[group.walked].now;
  end_writing(id, group, now - first);
  std::erase_if(group.noted, [&](const RankEnd& end) { return end.time <= now; });
  const std::size_t known = std::exchange(group.members, group.runs.size());
  std::vector<LoneMember> members;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; known < group.runs.size() && i < group.runs.size(); ++i) {
    const RunId run = group.runs[i];
    members.push_back(lones_.at(run).member);
    if (i < known) continue;
    const auto is_before = [&](RunId each) { return each < run; };
    places.push_back(static_cast<std::size_t>(std::ranges::count_if(std::span(group.runs).first(i), is_before)));
  }
  std::vector<LoneEntry> entries;
  for (; group.walked < group.entries.size(); ++group.walked) {
    const Entry& entry = group.entries[group.walked];
    entries.push_back({lones_.at(entry.run).slot, entry.rank, entry.time - first, entry.now - first, entry.turn});
  }
  group.answer = &answers_.step(*group.answer, members, std::min(known, members.size()), places, std::move(entries));
  group.next_end = 0;
  if (group.is_simulated) {
    begin_writing(id, group);
  } else {
    if (group.answer->readers.size() == group.answer->readers.capacity()) forget_who_left(*group.answer);
    group.answer->readers.push_back(id);
    wakeups_.push({next_of(group), id});
  }
}

void LoneRuns::begin_writing(GroupId id, Group& group) {
  if (group.answer->writer != no_group || group.answer->horizon == never) return;
  group.answer->writer = id;
  for (const RankEnd& end : group.noted) write(group, end);
  tell_readers(group);
}

void LoneRuns::write(const Group& group, const RankEnd& end) {
  LoneAnswer& answer = *group.answer;
  const LoneEnd written{end.time - entry_of(group), lones_.at(end.run).slot, end.rank};
  // One that wrote here before may have known it, too.
  if (written.time <= answer.horizon || std::ranges::find(answer.ends, written) != answer.ends.end()) return;
  answer.ends.insert(std::ranges::upper_bound(answer.ends, written.time, {}, &LoneEnd::time), written);
  tell_readers(group);
}

/// What was written is all up to `time`.
void LoneRuns::end_writing(GroupId id, const Group& group, std::int64_t time) {
  if (group.answer->writer != id) return;
  group.answer->writer = no_group;
  group.answer->horizon = std::max(group.answer->horizon, time);
  tell_readers(group);
}

void LoneRuns::forget_who_left(LoneAnswer& answer) const {
  std::erase_if(answer.readers, [&](GroupId reader) {
    const auto at = groups_.find(reader);
    return at == groups_.end() || at->second.is_simulated || at->second.answer != &answer;
  });
}

void LoneRuns::tell_readers(const Group& group) {
  forget_who_left(*group.answer);
  for (const GroupId reader : group.answer->readers) wakeups_.push({next_of(groups_.at(reader)), reader});
}

bool LoneRuns::reads_along(const Group& group) const {
  const GroupId writer = group.answer->writer;
  return writer != no_group && entry_of(groups_.at(writer)) <= entry_of(group);
}

bool LoneRuns::knows_next(const Group& group) const {
  const LoneAnswer& answer = *group.answer;
  return group.next_end < answer.ends.size() &&
         (answer.ends[group.next_end].time <= answer.horizon || reads_along(group));
}

/// When somebody of a group that is not simulated is through, or it is not known who is.
std::int64_t LoneRuns::next_of(const Group& group) const {
  const LoneAnswer& answer = *group.answer;
  if (knows_next(group)) return entry_of(group) + answer.ends[group.next_end].time;
  if (answer.horizon == never || reads_along(group)) return never;
  if (answer.horizon == LoneAnswer::nothing) return std::max<std::int64_t>(0, group.entries.back().now);
  return entry_of(group) + answer.horizon + 1;
}

/// When all of a group's runs are over; `never`: that is not known yet.
std::int64_t LoneRuns::end_of(GroupId id) {
  const Group& group = groups_.at(id);
  if (group.is_simulated || !is_complete(group)) return never;
  walk(id);
  const LoneAnswer& answer = *group.answer;
  return answer.horizon == never && !answer.ends.empty() ? entry_of(group) + answer.ends.back().time : never;
}

void LoneRuns::note_end(const RankEnd& end) {
  const auto at = lones_.find(end.run);
  if (at == lones_.end() || at->second.group == no_group) return;
  const GroupId id = at->second.group;
  Group& group = groups_.at(id);
  walk(id);
  group.noted.push_back(end);
  if (group.answer->writer == id) write(group, end);
  if (--group.ranks_left > 0) return;
  end_writing(id, group, never);
  for (const RunId run : group.runs) {
    if (!lones_.at(run).is_over) {
      for (const std::uint32_t resource : resources_of(*lones_.at(run).member.compiled)) ++users_[resource];
    }
    lones_.erase(run);
  }
  groups_.erase(id);
}

void LoneRuns::note_over(RunId run, const CompiledSchedule& compiled) {
  if (const auto at = lones_.find(run); at != lones_.end()) {
    at->second.is_over = true;
    return;
  }
  for (const std::uint32_t resource : resources_of(compiled)) --users_[resource];
}

void LoneRuns::add_to_replay(const Group& group, Replay& replay) const {
  for (const RunId run : group.runs) replay.runs.emplace_back(run, lones_.at(run).member.compiled);
  replay.entries.insert(replay.entries.end(), group.entries.begin(), group.entries.end());
  replay.told.insert(replay.told.end(), group.told.begin(), group.told.end());
}

LoneRuns::Replay LoneRuns::watch(GroupId id) const {
  Replay replay;
  add_to_replay(groups_.at(id), replay);
  return replay;
}

LoneRuns::Replay LoneRuns::give_up_group(GroupId id) {
  const auto at = groups_.find(id);
  Replay replay;
  if (!at->second.is_simulated) add_to_replay(at->second, replay);
  end_writing(id, at->second, LoneAnswer::nothing);
  for (const RunId run : at->second.runs) {
    const auto lone = lones_.find(run);
    if (!lone->second.is_over) {
      for (const std::uint32_t resource : resources_of(*lone->second.member.compiled)) ++users_[resource];
    }
    lones_.erase(lone);
  }
  groups_.erase(at);
  return replay;
}

LoneRuns::Replay LoneRuns::give_up(RunId run) {
  const auto at = lones_.find(run);
  if (at == lones_.end()) return {};
  if (at->second.group != no_group) return give_up_group(at->second.group);
  Replay replay;
  replay.runs.emplace_back(run, at->second.member.compiled);
  if (at->second.early) replay.entries.push_back(*at->second.early);
  for (const std::uint32_t resource : resources_of(*at->second.member.compiled)) ++users_[resource];
  lones_.erase(at);
  return replay;
}

/// What was pushed before more was known of a group does not count any more.
std::int64_t LoneRuns::next_time() {
  for (const GroupId id : unwalked_) {
    if (groups_.contains(id)) walk(id);
  }
  unwalked_.clear();
  while (!wakeups_.empty()) {
    const Wakeup& next = wakeups_.top();
    const auto at = groups_.find(next.group);
    const bool counts =
        at != groups_.end() && !at->second.is_simulated && at->second.walked > 0 && next_of(at->second) == next.time;
    if (counts) break;
    wakeups_.pop();
  }
  return wakeups_.empty() ? never : wakeups_.top().time;
}

void LoneRuns::take_ends(std::int64_t time, std::vector<RankEnd>& ended, std::vector<RunId>& over,
                         std::vector<GroupId>& unknown) {
  while (next_time() <= time) {
    const GroupId id = wakeups_.top().group;
    wakeups_.pop();
    Group& group = groups_.at(id);
    if (!knows_next(group)) {
      group.is_simulated = true;
      begin_writing(id, group);
      unknown.push_back(id);
      continue;
    }
    for (; knows_next(group) && next_of(group) <= time; ++group.next_end) {
      const LoneEnd& end = group.answer->ends[group.next_end];
      ended.push_back({group.runs[end.member], end.rank, next_of(group)});
      group.told.emplace_back(group.runs[end.member], end.rank);
      --group.ranks_left;
    }
    if (group.ranks_left == 0) {
      dissolve(id, over);
    } else {
      wakeups_.push({next_of(group), id});
    }
  }
}

void LoneRuns::dissolve(GroupId id, std::vector<RunId>& over) {
  const auto at = groups_.find(id);
  for (const RunId run : at->second.runs) {
    const auto lone = lones_.find(run);
    const LoneLoad& load = answers_.load(lone->second.member);
    ++over_[&load];
    events_ += load.events;
    lones_.erase(lone);
    over.push_back(run);
  }
  groups_.erase(at);
}

void LoneRuns::add_uses(std::vector<LinkUse>& links) const {
  for (const auto& [load, times] : over_) {
    for (const LoneLoad::Use& each : load->uses) {
      if (each.resource >= links.size()) continue;  // no link
      links[each.resource].bytes += each.use.bytes * static_cast<std::int64_t>(times);
      links[each.resource].busy.count += each.use.busy.count * static_cast<std::int64_t>(times);
    }
  }
}

}  // namespace espalier::sim
