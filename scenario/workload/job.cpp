#include "scenario/workload/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/check.h"

namespace espalier::scenario {

GroupId Job::add_group(std::vector<Rank> ranks) {
  std::ranges::sort(ranks);
  ESPALIER_CHECK(!ranks.empty() && std::ranges::adjacent_find(ranks) == ranks.end(), "a group names each rank once");
  const auto [at, is_new] = group_by_ranks_.emplace(ranks, GroupId(group_count()));
  if (is_new) {
    group_ranks_.insert(group_ranks_.end(), ranks.begin(), ranks.end());
    group_begins_.push_back(static_cast<std::uint32_t>(group_ranks_.size()));
  }
  return at->second;
}

LabelId Job::add_label(std::string_view text) {
  const auto [at, is_new] = label_by_text_.emplace(std::string(text), LabelId(labels_.size()));
  if (is_new) labels_.emplace_back(text);
  return at->second;
}

CallId Job::add_call(const Call& call) {
  calls_.push_back(call);
  return CallId(calls_.size() - 1);
}

MatrixId Job::add_matrix(std::vector<std::int64_t> blocks) {
  matrices_.push_back(std::move(blocks));
  return MatrixId(matrices_.size() - 1);
}

TaskId Job::add_task(const Task& task, std::span<const TaskId> after) {
  tasks_.push_back(task);
  after_.insert(after_.end(), after.begin(), after.end());
  after_begins_.push_back(static_cast<std::uint32_t>(after_.size()));
  return TaskId(tasks_.size() - 1);
}

void Job::reserve(std::size_t times) {
  if (tasks_.size() > max_tasks / times) return;
  const auto room_for = [&](auto& list) { list.reserve(list.size() * times * 17 / 16); };
  room_for(tasks_);
  room_for(after_begins_);
  room_for(after_);
  room_for(calls_);
}

Rank Job::rank_in(GroupId group, Rank rank) const {
  const auto members = ranks(group);
  // Ranks of most groups are evenly spaced.
  if (members.front() <= rank && rank <= members.back()) {
    const std::size_t span = members.back().index() - members.front().index() + 1;
    const std::size_t likely = (rank.index() - members.front().index()) * members.size() / span;
    if (members[likely] == rank) return Rank(likely);
  }
  const auto at = std::ranges::lower_bound(members, rank);
  return at == members.end() || *at != rank ? Rank() : Rank(static_cast<std::size_t>(at - members.begin()));
}

std::string Job::describe(TaskId id, const Topology& topology) const {
  const Task& task = tasks_[id.index()];
  return fmt::format("task {} '{}' of {}", id.value(), label(task.label), topology.rank_name(task.rank));
}

CallParts::CallParts(const Job& job) : begins_{0} {
  for (const Call& call : job.calls()) {
    begins_.push_back(begins_.back() + static_cast<std::uint32_t>(job.ranks(call.group).size()));
  }
  tasks_.resize(begins_.back());
  for (std::size_t i = 0; i < job.tasks().size(); ++i) {
    const Task& task = job.tasks()[i];
    if (task.kind != TaskKind::call) continue;
    tasks_[index(task.call, job.rank_in(job.call(task.call).group, task.rank))] = TaskId(i);
  }
}

namespace {

tl::unexpected<Error> bad_job(std::string message, std::string help = {}) {
  return fail(ErrorCode::invalid_input, std::move(message), std::move(help));
}

/// Checks each matrix once, however many calls share it.
class CheckedMatrices {
 public:
  std::optional<std::string> why_bad(const Job& job, const Call& call) {
    if (call.matrix.is_none()) return std::nullopt;
    if (call.matrix.index() >= job.matrix_count()) return "its matrix does not exist";
    const Collective collective{call.kind, static_cast<std::uint32_t>(job.ranks(call.group).size()), {}, {}};
    if (!has_blocks(call.kind)) return fmt::format("{} has no blocks for a matrix", to_string(call.kind));
    if (static_cast<std::int64_t>(job.matrix(call.matrix).size()) != collective.part_count()) {
      return "its matrix is of another number of ranks";
    }
    if (!good_.insert(call.matrix).second) return std::nullopt;
    return why_bad_shares({collective.kind, collective.rank_count, {}, job.matrix(call.matrix)});
  }

 private:
  std::set<MatrixId> good_;
};

Result<void> check_calls(const Job& job, const Topology& topology) {
  CheckedMatrices matrices;
  for (std::size_t i = 0; i < job.calls().size(); ++i) {
    const Call& call = job.calls()[i];
    if (call.group.index() >= job.group_count() || call.label.index() >= job.label_count()) {
      return bad_job(fmt::format("call {} has a group or label that does not exist", i));
    }
    const auto name = [&] { return fmt::format("call {} '{}'", i, job.label(call.label)); };
    const auto ranks = job.ranks(call.group);
    if (ranks.back().index() >= topology.rank_count()) {
      return bad_job(fmt::format("{} has rank {}, and {} has {} ranks", name(), ranks.back().value(), topology.name(),
                                 topology.rank_count()));
    }
    if (has_root(call.kind) ? call.root.index() >= ranks.size() : !call.root.is_none()) {
      return bad_job(fmt::format("{} is {} {} with a root that does not fit its {} ranks", name(),
                                 call.kind == CollectiveKind::all_reduce ? "an" : "a", to_string(call.kind),
                                 ranks.size()));
    }
    if (call.size.count < 0 || call.size > max_message_size || call.element_size == 0 ||
        call.size.count % call.element_size != 0) {
      return bad_job(
          fmt::format("{} has a size of {} bytes with elements of {}", name(), call.size.count, call.element_size),
          "a size is a whole number of elements, at most 1 PiB");
    }
    if (const auto why = matrices.why_bad(job, call)) return bad_job(fmt::format("{}: {}", name(), *why));
    if (call.is_eager && (call.kind != CollectiveKind::broadcast || ranks.size() != 2)) {
      return bad_job(name() + " is eager, which only messages between two ranks can be");
    }
    if (call.chunk.count < 0) return bad_job(name() + " has chunks of less than nothing");
  }
  return {};
}

Result<void> check_task(const Job& job, const Topology& topology, TaskId id) {
  const Task& task = job.task(id);
  if (task.rank.index() >= topology.rank_count() || task.label.index() >= job.label_count()) {
    return bad_job(fmt::format("task {} has a rank or label that does not exist", id.value()));
  }
  const auto name = [&] { return job.describe(id, topology); };
  if (task.duration < 0) return bad_job(name() + " lasts less than nothing");
  for (const TaskId before : job.after(id)) {
    if (before.index() >= job.tasks().size()) return bad_job(name() + " waits for a task that does not exist");
    if (job.task(before).rank != task.rank) {
      return bad_job(fmt::format("{} waits for {}", name(), job.describe(before, topology)),
                     "ranks wait for each other through calls only");
    }
  }
  if ((task.kind == TaskKind::call) == task.call.is_none())
    return bad_job(name() + ": calls, and only they, name a call");
  if (task.call.is_none()) return {};
  if (task.call.index() >= job.calls().size()) return bad_job(name() + " takes part in a call that does not exist");
  const Call& call = job.call(task.call);
  if (job.rank_in(call.group, task.rank).is_none()) {
    return bad_job(fmt::format("{} takes part in call {} '{}', whose group it is not in", name(), task.call.value(),
                               job.label(call.label)));
  }
  return {};
}

/// Each rank of each group takes part exactly once.
Result<void> check_parts(const Job& job, const Topology& topology) {
  std::vector<std::size_t> begins{0};
  for (const Call& call : job.calls()) begins.push_back(begins.back() + job.ranks(call.group).size());
  std::vector<bool> taken(begins.back(), false);
  for (std::size_t i = 0; i < job.tasks().size(); ++i) {
    const Task& task = job.tasks()[i];
    if (task.kind != TaskKind::call) continue;
    const std::size_t part = begins[task.call.index()] + job.rank_in(job.call(task.call).group, task.rank).index();
    if (taken[part]) {
      return bad_job(fmt::format("{} takes part a second time in call {} '{}'", job.describe(TaskId(i), topology),
                                 task.call.value(), job.label(job.call(task.call).label)));
    }
    taken[part] = true;
  }
  const auto missing = std::ranges::find(taken, false);
  if (missing == taken.end()) return {};
  const auto part = static_cast<std::size_t>(missing - taken.begin());
  const auto call = static_cast<std::size_t>(std::ranges::upper_bound(begins, part) - begins.begin()) - 1;
  const Rank rank = job.ranks(job.calls()[call].group)[part - begins[call]];
  return bad_job(fmt::format("{} never takes part in call {} '{}' of its group", topology.rank_name(rank), call,
                             job.label(job.calls()[call].label)));
}

/// Tasks in an order in which all can be done, or the first that waits for itself.
Result<void> check_order(const Job& job, const Topology& topology) {
  const std::size_t count = job.tasks().size();
  std::vector<std::uint32_t> pending(count, 0), begins(count + 1, 0);
  for (std::size_t i = 0; i < count; ++i) {
    for (const TaskId before : job.after(TaskId(i))) ++begins[before.index() + 1];
    pending[i] = static_cast<std::uint32_t>(job.after(TaskId(i)).size());
  }
  for (std::size_t i = 0; i < count; ++i) begins[i + 1] += begins[i];
  std::vector<std::uint32_t> next(begins.begin(), begins.end() - 1), followers(begins.back());
  for (std::size_t i = 0; i < count; ++i) {
    for (const TaskId before : job.after(TaskId(i))) followers[next[before.index()]++] = static_cast<std::uint32_t>(i);
  }
  std::vector<std::uint32_t> ready;
  for (std::size_t i = 0; i < count; ++i) {
    if (pending[i] == 0) ready.push_back(static_cast<std::uint32_t>(i));
  }
  std::size_t done = 0;
  for (; done < ready.size(); ++done) {
    for (std::uint32_t i = begins[ready[done]]; i < begins[ready[done] + 1]; ++i) {
      if (--pending[followers[i]] == 0) ready.push_back(followers[i]);
    }
  }
  if (done == count) return {};
  // Walking back along what is still awaited ends in the circle; one more walk names a task on it.
  std::size_t at =
      static_cast<std::size_t>(std::ranges::find_if(pending, [](auto n) { return n > 0; }) - pending.begin());
  for (std::size_t i = 0; i < count; ++i) {
    for (const TaskId before : job.after(TaskId(at))) {
      if (pending[before.index()] == 0) continue;
      at = before.index();
      break;
    }
  }
  return bad_job(job.describe(TaskId(at), topology) + " waits for itself, through what it waits for");
}

}  // namespace

Result<void> check_job(const Job& job, const Topology& topology) {
  if (job.tasks().size() > max_tasks) {
    return fail(ErrorCode::too_large,
                fmt::format("the job has {} tasks, and the most are {}", job.tasks().size(), max_tasks));
  }
  if (auto checked = check_calls(job, topology); !checked) return checked;
  std::size_t dependencies = 0;
  for (std::size_t i = 0; i < job.tasks().size(); ++i) {
    if (auto checked = check_task(job, topology, TaskId(i)); !checked) return checked;
    dependencies += job.after(TaskId(i)).size();
  }
  if (dependencies > max_dependencies) return fail(ErrorCode::too_large, "the job's tasks wait for too many others");
  if (auto checked = check_parts(job, topology); !checked) return checked;
  return check_order(job, topology);
}

}  // namespace espalier::scenario
