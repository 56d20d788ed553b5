#include "sim/core/running_model.h"

#include <utility>

#include "base/check.h"

namespace espalier::sim {

RunningModel::RunningModel(ModelKind kind, const Network& network, const Conditions& conditions)
    : network_(network), kind_(kind), limit_(conditions) {}

/// How a schedule is cut for these options, and what that amounts to: found once, as jobs make the same call thousands
/// of times.
Result<const RunningModel::Cut*> RunningModel::find_cut(const CompiledSchedule& compiled, const RunOptions& options) {
  const CutKey key{&compiled,           options.size.count, options.chunk.count, options.element_size,
                   options.payload_ppm, options.ahead};
  if (const auto known = cuts_.find(key); known != cuts_.end()) return &known->second;
  auto chunking = cut_into_chunks(compiled.schedule(), options);
  if (!chunking) return tl::unexpected(chunking.error());
  const auto work = check_workload(compiled, network_, *chunking, options.payload_ppm, max_chunk_steps);
  if (!work) return tl::unexpected(work.error());
  return &cuts_.emplace(key, Cut{*std::move(chunking), *work}).first->second;
}

Result<RunId> RunningModel::add(const CompiledSchedule& compiled, const RunOptions& options) {
  const auto cut = find_cut(compiled, options);
  if (!cut) return tl::unexpected(cut.error());
  if (auto added = limit_.add((*cut)->work); !added) return tl::unexpected(added.error());
  if (next_order_ + compiled.schedule().transfers.size() > max_run_transfers) {
    return fail(ErrorCode::too_large, "all runs together have more than 2^32 transfers", "simulate fewer runs");
  }
  const RunId id(runs_.size());
  if (!put_aside(id, compiled, options)) {
    return add_checked(compiled, (*cut)->chunking, options.payload_ppm, options.ahead);
  }
  runs_.push_back(nullptr);
  aside_[id] = {*cut, options.payload_ppm, options.ahead, static_cast<std::uint32_t>(next_order_),
                compiled.schedule().collective.rank_count};
  next_order_ += compiled.schedule().transfers.size();
  return id;
}

RunId RunningModel::add_checked(const CompiledSchedule& compiled, Chunking chunking, std::int32_t payload_ppm,
                                std::uint32_t ahead) {
  const RunId id(runs_.size());
  runs_.push_back(nullptr);
  begin(id, compiled, std::move(chunking), payload_ppm, ahead, static_cast<std::uint32_t>(next_order_));
  next_order_ += compiled.schedule().transfers.size();
  return id;
}

Run& RunningModel::begin(RunId id, const CompiledSchedule& compiled, Chunking chunking, std::int32_t payload_ppm,
                         std::uint32_t ahead, std::uint32_t first_order) {
  std::unique_ptr<Run>& place = runs_[id.index()];
  if (spare_.empty()) {
    place = std::make_unique<Run>();
  } else {
    place = std::move(spare_.back());
    spare_.pop_back();
  }
  ++under_way_;
  Run& run = *place;
  run.begin(id, compiled, std::move(chunking), ahead, first_order);
  run.payload_ppm = static_cast<std::uint32_t>(payload_ppm);
  note_added(run);
  return run;
}

Run& RunningModel::begin_aside(RunId id, const CompiledSchedule& compiled) {
  const auto at = aside_.find(id);
  const Added added = at->second;
  aside_.erase(at);
  return begin(id, compiled, added.cut->chunking, added.payload_ppm, added.ahead, added.first_order);
}

Result<void> RunningModel::record(RunId id) {
  if (runs_[id.index()] == nullptr) take_back(id);
  Run& run = *runs_[id.index()];
  const auto payload = static_cast<std::int32_t>(run.payload_ppm);
  const auto work = check_workload(run.compiled(), network_, run.chunking(), payload, max_recorded_steps);
  if (!work) return tl::unexpected(work.error());
  auto& history = histories_[id];
  history = std::make_unique<History>(id, run.compiled(), run.chunking(), payload, network_, kind_);
  run.history = history.get();
  return {};
}

std::unique_ptr<History> RunningModel::take_history(RunId id) {
  const auto at = histories_.find(id);
  ESPALIER_CHECK(at != histories_.end(), "what is taken was recorded");
  if (runs_[id.index()] != nullptr) runs_[id.index()]->history = nullptr;
  auto history = std::move(at->second);
  histories_.erase(at);
  return history;
}

/// Null when the run was given up: then nobody enters it any more.
Run* RunningModel::find_to_enter(RunId id, std::int64_t time) {
  ESPALIER_CHECK(time >= now_ && time <= latest_entry, "ranks enter now or later");
  Run* run = runs_[id.index()].get();
  ESPALIER_CHECK(run != nullptr, "ranks enter runs that are not over");
  return run->is_aborted ? nullptr : run;
}

void RunningModel::enter(RunId id, Rank rank, std::int64_t time) {
  if (runs_[id.index()] == nullptr && enter_aside(id, rank, time)) return;
  Run* run = find_to_enter(id, time);
  if (run == nullptr) return;
  note_entry(id, rank, time);
  run->enter(rank, time, ended_, [&](LaneIndex lane) { hand_over(*run, lane); });
  let_go_if_over(*run);
}

void RunningModel::enter_all(RunId id, std::int64_t time) {
  if (const auto aside = aside_.find(id); aside != aside_.end()) {
    const std::uint32_t ranks = aside->second.ranks;
    for (std::uint32_t i = 0; i < ranks; ++i) enter(id, Rank(i), time);
    return;
  }
  Run* run = find_to_enter(id, time);
  if (run == nullptr) return;
  run->enter_all(time, ended_, [&](LaneIndex lane) { hand_over(*run, lane); });
  let_go_if_over(*run);
}

void RunningModel::abort(RunId id) {
  if (aside_.contains(id)) take_back(id);
  Run* run = runs_[id.index()].get();
  if (run == nullptr) return;
  run->is_aborted = true;
  note_given_up(*run);
  if (run->chunks_moving == 0) let_go(*run);
}

void RunningModel::drop_chunk(Run& run) {
  --run.chunks_moving;
  if (run.is_aborted && run.chunks_moving == 0) let_go(run);
}

}  // namespace espalier::sim
