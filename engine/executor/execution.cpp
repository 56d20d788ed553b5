#include "engine/executor/execution.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace espalier::engine {

Execution::Execution(const RankProgram& program, std::vector<StreamEnds> ends, DeviceQueue& queue)
    : program_(program), queue_(queue) {
  ESPALIER_CHECK(ends.size() == program.streams.size(), "every stream has its end");
  ends_.resize(ends.size());
  for (std::size_t i = 0; i < ends.size(); ++i) {
    ends_[i].sender = ends[i].sender;
    ends_[i].receiver = ends[i].receiver;
    ends_[i].call = {&program, &program.streams[i], &header_, &buffers_, &error_, &bytes_passed_, &queue};
  }
  for (const bool outgoing : {true, false}) {
    for (std::uint32_t i = 0; i < ends_.size(); ++i) {
      if ((ends_[i].sender != nullptr) == outgoing) order_.push_back(i);
    }
    if (outgoing) sender_count_ = static_cast<std::uint32_t>(order_.size());
  }
  std::size_t max_members = 1;
  std::size_t max_forwards = 0;
  for (const FusedReduction& fused : program.fused_reductions) {
    max_members = std::max<std::size_t>(max_members, fused.member_count);
    max_forwards = std::max<std::size_t>(max_forwards, fused.forward_count);
  }
  for (DeviceWork& work : in_flight_) {
    work.members.reserve(max_members);
    work.forwards.reserve(max_forwards);
  }
  sources_.resize(max_members);
  targets_.resize(max_forwards + 1);
  if (program.has_counts) {
    for (End& end : ends_) end.call.header = &end.header;
  }
  begun_.resize(ends_.size());
  call_ = {&program, nullptr, &header_, &buffers_, &error_, &bytes_passed_, &queue};
}

void Execution::begin(const CallHeader& header, const Buffers& buffers, Recorder* recorder) {
  header_ = header;
  buffers_ = buffers;
  recorder_ = recorder;
  if (program_.has_counts) set_counts();
  begin_program();
}

void Execution::set_counts() {
  for (End& end : ends_) {
    end.header = header_;
    end.header.count = static_cast<std::uint64_t>(end.call.stream->block.bytes / program_.element_size);
    end.header.shares = static_cast<std::uint64_t>(end.call.stream->bytes_back / program_.element_size);
  }
}

void Execution::begin_program() {
  whole_ = nullptr;
  unfinished_ = 0;
  begin_streams();
  owes_own_results_ = !program_.local_copies.empty();
  if (owes_own_results_) ++unfinished_;
}

void Execution::begin_streams() {
  owes_own_results_ = false;
  copies_own_results_ = false;
  in_flight_count_ = 0;
  if (!serves_streams()) return;
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    End& end = ends_[i];
    if (!serves(end)) continue;
    ++unfinished_;
    end.next = 0;
    end.done = 0;
    end.in_flight = 0;
    end.is_open = false;
    if (recorder_ != nullptr) begun_[i].resize(end.call.stream->op_count);
  }
  if (recorder_ != nullptr) recorder_->reserve(2 * program_.ops.size());
}

Result<void> Execution::begin_whole(const CallHeader& header, const Buffers& buffers, Recorder* recorder,
                                    WholeCall& whole) {
  header_ = header;
  buffers_ = buffers;
  recorder_ = recorder;
  whole_ = &whole;
  whole_state_ = WholeState::begun;
  unfinished_ = 1;
  begin_streams();
  if (recorder != nullptr) recorder->reserve(2 * program_.ops.size());
  whole_begin_ = moment();
  return whole.begin(call_, recorder);
}

bool Execution::advance_whole() {
  if (whole_state_ == WholeState::done) return false;
  const WholeCall::Progress progress = whole_->advance();
  if (progress == WholeCall::Progress::some) whole_state_ = WholeState::runs;
  if (progress == WholeCall::Progress::done) {
    whole_state_ = WholeState::done;
    --unfinished_;
    if (recorder_ != nullptr && !whole_->records_chunks()) record_whole();
  } else if (progress == WholeCall::Progress::declined) {
    begin_program();
  }
  return progress != WholeCall::Progress::none;
}

void Execution::record_whole() {
  const std::int64_t finish = moment();
  for (const End& end : ends_) {
    for (std::uint32_t i = 0; i < end.call.stream->op_count; ++i) {
      const Op& op = end.call.op(i);
      recorder_->add(op.transfer, op.chunk, end.sender != nullptr ? Phase::send : Phase::recv, whole_begin_, finish);
    }
  }
}

bool Execution::may_begin(const End& end, std::uint32_t index) const {
  if (whole_ != nullptr) return index < whole_->permitted(stream_of(end));
  const Op& op = end.call.op(index);
  for (std::uint32_t i = 0; i < op.wait_count; ++i) {
    const LocalWait& wait = program_.waits[op.first_wait + i];
    if (ends_[wait.stream].done < wait.count) return false;
  }
  return true;
}

void Execution::move_window() {
  std::uint32_t lowest = UINT32_MAX - program_.ahead;
  for (std::uint32_t i = 0; i < sender_count_; ++i) {
    const End& end = ends_[order_[i]];
    if (!serves(end) || !end.call.stream->keeps_step || end.done == end.call.stream->op_count) continue;
    lowest = std::min(lowest, end.call.op(end.done).level);
  }
  last_level_ = lowest + program_.ahead;
}

bool Execution::advance() {
  const bool whole_moved = whole_ != nullptr && advance_whole();
  const bool is_beside = whole_ != nullptr && whole_state_ != WholeState::begun && whole_->leaves_streams();
  if (whole_moved || (whole_ != nullptr && !is_beside)) return whole_moved;
  if (program_.ahead > 0) move_window();
  const std::uint64_t passed = bytes_passed_;
  bool moved = in_flight_count_ > 0 && finish_device_work();
  for (std::uint32_t i = 0; i < sender_count_; ++i) moved |= advance_end(ends_[order_[i]]);
  const std::uint32_t receivers = static_cast<std::uint32_t>(order_.size()) - sender_count_;
  for (std::uint32_t i = 0; i < receivers; ++i) {
    const std::uint32_t receiver = (next_receiver_ + i) % receivers;
    const std::int64_t before = bytes_moved_;
    moved |= advance_end(ends_[order_[sender_count_ + receiver]]);
    if (bytes_moved_ == before) continue;
    next_receiver_ = (receiver + 1) % receivers;  // What arrived may be sent on first, while it is in the cache.
    break;
  }
  moved |= bytes_passed_ != passed;
  if (owes_own_results_ && !moved) moved = copy_own_results();
  return moved;
}

bool Execution::advance_end(End& end) {
  if (!serves(end)) return false;
  if (!end.is_open) {
    end.is_open = end.sender != nullptr ? end.sender->open(end.call) : end.receiver->open(end.call);
    if (!end.is_open) return false;
  } else if (end.done == end.call.stream->op_count) {
    return false;
  }
  return end.sender != nullptr ? advance_sender(end) : advance_receiver(end);
}

void Execution::note_begun(const End& end, std::uint32_t index, std::int64_t begin) {
  begun_[stream_of(end)][index] = begin;
}

bool Execution::note_done(End& end, std::uint32_t done, std::int64_t known_now) {
  if (done == end.done) return false;
  if (recorder_ != nullptr) {
    const std::int64_t now = known_now != 0 ? known_now : recorder_->now();
    const std::uint32_t stream = stream_of(end);
    const Phase phase = end.sender != nullptr ? Phase::send : Phase::recv;
    for (std::uint32_t i = end.done; i < done; ++i) {
      const Op& op = end.call.op(i);
      recorder_->add(op.transfer, op.chunk, phase, begun_[stream][i], now);
    }
  }
  end.done = done;
  if (whole_ != nullptr) whole_->note_done(stream_of(end), done);
  if (done == end.call.stream->op_count) --unfinished_;
  return true;
}

bool Execution::advance_sender(End& end) {
  bool moved = false;
  while (end.next < end.call.stream->op_count) {
    const Op& op = end.call.op(end.next);
    if (!may_begin(end, end.next) || (end.call.stream->keeps_step && op.level > last_level_)) break;
    if (recorder_ != nullptr) note_begun(end, end.next, recorder_->now());
    if (!end.sender->post(end.next)) break;
    ++end.next;
    bytes_moved_ += op.bytes;
    moved = true;
  }
  return note_done(end, end.sender->departed()) || moved;
}

bool Execution::advance_receiver(End& end) {
  bool moved = false;
  while (end.next < end.call.stream->op_count) {
    const Op& op = end.call.op(end.next);
    if (!may_begin(end, end.next)) break;
    if (end.receiver->places(end.next)) {
      if (end.in_flight > 0) break;  // What the device has may be where this one goes: a stream keeps its order.
      if (recorder_ != nullptr) note_begun(end, end.next, recorder_->now());
      if (!end.receiver->allow(end.next)) break;
      ++end.next;
    } else {
      moved |= take(end, op);
      break;  // One at a time.
    }
    moved = true;
  }
  return note_done(end, end.receiver->arrived()) || moved;
}

bool Execution::take(End& end, const Op& op) {
  if (in_flight_count_ == max_in_flight) return false;
  DeviceWork& work = in_flight_[(first_in_flight_ + in_flight_count_) % max_in_flight];
  work.members.clear();
  work.forwards.clear();
  // Beside a whole call each reduction is one by itself: the others' sources may be the whole call's.
  if (op.fused != not_fused && whole_ == nullptr) {
    const FusedReduction& fused = program_.fused_reductions[op.fused];
    if (!find_members(fused, work)) return false;
    choose_forwards(fused, work);
    work.begin = moment();
    reduce(work);
  } else {
    if (!end.receiver->is_ready(end.next)) return false;
    work.members.push_back({&end, end.next, &op});
    work.begin = moment();
    if (op.reduces) {
      reduce(work);
    } else {
      copy_in(end, op);
    }
  }
  work.mark = queue_.mark();
  ++in_flight_count_;
  for (const Cursor& member : work.members) {
    if (recorder_ != nullptr) note_begun(*member.end, member.index, work.begin);
    ++member.end->next;
    ++member.end->in_flight;
  }
  for (const Cursor& forward : work.forwards) {
    if (recorder_ != nullptr) note_begun(*forward.end, forward.index, work.begin);
    ++forward.end->next;
  }
  finish_device_work();
  return true;
}

bool Execution::find_members(const FusedReduction& fused, DeviceWork& work) {
  for (std::uint32_t i = 0; i < fused.member_count; ++i) {
    const OpPlace& member = program_.members[fused.first_member + i];
    End& end = ends_[member.stream];
    if (!end.is_open || end.next != member.index) return false;
    const Op& op = end.call.op(member.index);
    if (!may_begin(end, member.index) || !end.receiver->is_ready(member.index)) return false;
    work.members.push_back({&end, member.index, &op});
  }
  return true;
}

bool Execution::finish_device_work() {
  bool moved = false;
  while (in_flight_count_ > 0 && queue_.is_done(in_flight_[first_in_flight_].mark)) {
    const DeviceWork& work = in_flight_[first_in_flight_];
    first_in_flight_ = (first_in_flight_ + 1) % max_in_flight;
    --in_flight_count_;
    finish(work);
    moved = true;
  }
  return moved;
}

void Execution::finish(const DeviceWork& work) {
  const std::int64_t finish = moment();
  for (const Cursor& member : work.members) {
    End& end = *member.end;
    if (recorder_ != nullptr && member.op->fused != not_fused) {
      recorder_->add(member.op->transfer, member.op->chunk, Phase::reduce, work.begin, finish);
    }
    end.receiver->release(member.index);
    --end.in_flight;
    bytes_moved_ += member.op->bytes;
    note_done(end, end.receiver->arrived(), finish);
  }
  for (const Cursor& forward : work.forwards) {
    End& end = *forward.end;
    end.sender->placed(forward.index);
    bytes_moved_ += forward.op->bytes;
    note_done(end, end.sender->departed(), finish);
  }
}

void Execution::choose_forwards(const FusedReduction& fused, DeviceWork& work) {
  for (std::uint32_t i = 0; i < fused.forward_count; ++i) {
    const OpPlace& forward = program_.forwards[fused.first_forward + i];
    End& end = ends_[forward.stream];
    if (!end.is_open || end.next != forward.index) continue;
    const Op& op = end.call.op(forward.index);
    if (end.call.stream->keeps_step && op.level > last_level_) continue;
    bool waits_for_fused_only = true;
    for (std::uint32_t w = 0; w < op.wait_count && waits_for_fused_only; ++w) {
      const LocalWait& wait = program_.waits[op.first_wait + w];
      waits_for_fused_only =
          ends_[wait.stream].done >= wait.count || std::ranges::any_of(work.members, [&](const Cursor& member) {
            return member.end == &ends_[wait.stream] && member.index + 1 == wait.count;
          });
    }
    if (waits_for_fused_only && end.sender->can_place(forward.index)) {
      work.forwards.push_back({&end, forward.index, &op});
    }
  }
}

void Execution::copy_in(const End& end, const Op& op) {
  std::int64_t skipped = 0;
  std::int64_t placed = end.receiver->already_placed(end.next);
  for (std::uint32_t i = 0; i < op.piece_count; ++i) {
    const Piece& piece = end.call.pieces(op)[i];
    const std::int64_t begin = std::min(placed, piece.length);
    if (begin < piece.length) {
      queue_.copy(buffers_.at(piece.target) + begin, end.receiver->source(piece, skipped) + begin,
                  static_cast<std::size_t>(piece.length - begin));
    }
    placed -= begin;
    skipped += piece.length;
  }
}

void Execution::Cursor::advance(std::int64_t bytes) {
  in_piece += bytes;
  if (in_piece < current().length) return;
  skipped += in_piece;
  in_piece = 0;
  ++piece;
}

void Execution::reduce(DeviceWork& work) {
  const Cursor& first = work.members.front();
  while (first.piece < first.op->piece_count) {
    std::int64_t length = INT64_MAX;  // What lies in one piece everywhere.
    for (const Cursor& member : work.members) length = std::min(length, member.left());
    for (const Cursor& forward : work.forwards) length = std::min(length, forward.left());
    for (std::size_t i = 0; i < work.members.size(); ++i) {
      const Cursor& member = work.members[i];
      sources_[i] = member.end->receiver->source(member.current(), member.skipped) + member.in_piece;
    }
    const Piece& own = first.current();
    targets_[0] = buffers_.at(own.target) + first.in_piece;
    for (std::size_t i = 0; i < work.forwards.size(); ++i) {
      const Cursor& forward = work.forwards[i];
      targets_[i + 1] = forward.end->sender->target(forward.current(), forward.skipped) + forward.in_piece;
    }
    queue_.reduce(header_.type, header_.operation, std::span(targets_).first(work.forwards.size() + 1),
                  buffers_.at(own.first) + first.in_piece, std::span(sources_).first(work.members.size()),
                  static_cast<std::size_t>(length / program_.element_size));
    for (Cursor& member : work.members) member.advance(length);
    for (Cursor& forward : work.forwards) forward.advance(length);
  }
}

bool Execution::copy_own_results() {
  const bool begins = !copies_own_results_;
  if (begins) {
    for (const LocalCopy& copy : program_.local_copies) {
      std::byte* to = buffers_.at(copy.to);
      const std::byte* from = buffers_.at(copy.from);
      if (to != from) queue_.copy(to, from, static_cast<std::size_t>(copy.length));
      bytes_moved_ += copy.length;
    }
    own_results_mark_ = queue_.mark();
    copies_own_results_ = true;
  }
  if (!queue_.is_done(own_results_mark_)) return begins;
  owes_own_results_ = false;
  --unfinished_;
  return true;
}

void Execution::check_device() {
  if (!queue_.has_failed()) return;
  const Error& error = queue_.error();
  error_.set({error.code, fmt::format("the device '{}' failed: {}", device_name(), error.message), error.help});
}

void Execution::close() {
  if (whole_ != nullptr) whole_->close();
  if (!serves_streams()) return;
  for (End& end : ends_) {
    if (!serves(end)) continue;
    if (end.sender != nullptr) {
      end.sender->close();
    } else {
      end.receiver->close();
    }
  }
}

Stall Execution::find_stall() const {
  if (whole_ != nullptr && whole_state_ == WholeState::begun) return whole_->find_stall();
  const End* stalled = nullptr;
  for (const std::uint32_t i : order_) {
    const End& end = ends_[i];
    if (!serves(end) || (end.is_open && end.done == end.call.stream->op_count)) continue;
    if (!end.is_open) return {end.call.stream->peer, "has not entered the call", true};
    const bool waits_for_peer = end.done < end.next || may_begin(end, end.next);
    const bool waited_before =
        stalled != nullptr && (stalled->done < stalled->next || may_begin(*stalled, stalled->next));
    if (stalled == nullptr || (waits_for_peer && !waited_before)) stalled = &end;
  }
  if (stalled == nullptr && whole_ != nullptr) return whole_->find_stall();
  ESPALIER_CHECK(stalled != nullptr, "a call that is not done waits for something");
  const Stream& stream = *stalled->call.stream;
  const Op& op = stalled->call.op(std::min(stalled->done, stream.op_count - 1));
  const char* what = stalled->sender != nullptr ? "has not taken" : "has not sent";
  return {stream.peer, fmt::format("{} transfer {} chunk {} ({} bytes, {} of {} on this stream done)", what,
                                   op.transfer.value(), op.chunk, op.bytes, stalled->done, stream.op_count)};
}

}  // namespace espalier::engine
