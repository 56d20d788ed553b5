#include "engine/executor/execution.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "engine/executor/clock.h"
#include "engine/reduction/copy.h"

namespace espalier::engine {

Execution::Execution(const Program& program, std::vector<StreamEnds> ends) : program_(program) {
  ESPALIER_CHECK(ends.size() == program.streams.size(), "every stream has its end");
  ends_.resize(ends.size());
  for (std::size_t i = 0; i < ends.size(); ++i) {
    ends_[i].sender = ends[i].sender;
    ends_[i].receiver = ends[i].receiver;
    ends_[i].call = {&program, &program.streams[i], &header_, {}, &trouble_};
  }
  for (const bool outgoing : {true, false}) {
    for (std::uint32_t i = 0; i < ends_.size(); ++i) {
      if ((ends_[i].sender != nullptr) == outgoing) order_.push_back(i);
    }
    if (outgoing) sender_count_ = static_cast<std::uint32_t>(order_.size());
  }
  std::uint32_t largest = 1;
  for (const Fusion& fusion : program.fusions) largest = std::max(largest, fusion.member_count);
  sources_.resize(largest);
  source_pointers_.resize(largest);
  begun_ns_.resize(ends_.size());
}

void Execution::begin(const CallHeader& header, const Buffers& buffers, Recorder* recorder) {
  header_ = header;
  buffers_ = buffers;
  recorder_ = recorder;
  reduce_ = find_reduce(header.type, header.operation);
  unfinished_ = static_cast<std::uint32_t>(ends_.size());
  owes_own_results_ = !program_.local_copies.empty();
  if (owes_own_results_) ++unfinished_;
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    End& end = ends_[i];
    end.call.buffers = buffers;
    end.next = 0;
    end.done = 0;
    end.is_open = false;
    if (recorder != nullptr) begun_ns_[i].resize(end.call.stream->op_count);
  }
  if (recorder != nullptr) recorder->reserve(2 * program_.ops.size());
}

bool Execution::may_begin(const Op& op) const {
  for (std::uint32_t i = 0; i < op.wait_count; ++i) {
    const LocalWait& wait = program_.waits[op.first_wait + i];
    if (ends_[wait.stream].done < wait.count) return false;
  }
  return true;
}

bool Execution::advance() {
  bool moved = false;
  for (std::uint32_t i = 0; i < sender_count_; ++i) moved |= advance_end(ends_[order_[i]]);
  const std::uint32_t receivers = static_cast<std::uint32_t>(order_.size()) - sender_count_;
  for (std::uint32_t i = 0; i < receivers; ++i) {
    const std::uint32_t receiver = (next_receiver_ + i) % receivers;
    const std::int64_t before = bytes_moved_;
    moved |= advance_end(ends_[order_[sender_count_ + receiver]]);
    if (bytes_moved_ == before) continue;
    next_receiver_ = receiver;  // What arrived may be sent on first, while it is in the cache.
    break;
  }
  if (owes_own_results_ && !moved) {
    copy_own_results();
    moved = true;
  }
  return moved;
}

bool Execution::advance_end(End& end) {
  if (!end.is_open) {
    end.is_open = end.sender != nullptr ? end.sender->open(end.call) : end.receiver->open(end.call);
    if (!end.is_open) return false;
  } else if (end.done == end.call.stream->op_count) {
    return false;
  }
  return end.sender != nullptr ? advance_sender(end) : advance_receiver(end);
}

bool Execution::note_done(End& end, std::uint32_t done) {
  if (done == end.done) return false;
  if (recorder_ != nullptr) {
    const std::int64_t now = now_ns();
    const auto stream = static_cast<std::size_t>(&end - ends_.data());
    const Phase phase = end.sender != nullptr ? Phase::send : Phase::recv;
    for (std::uint32_t i = end.done; i < done; ++i) {
      const Op& op = end.call.op(i);
      recorder_->add({op.transfer, op.chunk, phase, begun_ns_[stream][i], now});
    }
  }
  end.done = done;
  if (done == end.call.stream->op_count) --unfinished_;
  return true;
}

bool Execution::advance_sender(End& end) {
  bool moved = false;
  while (end.next < end.call.stream->op_count) {
    const Op& op = end.call.op(end.next);
    if (!may_begin(op)) break;
    if (recorder_ != nullptr) begun_ns_[static_cast<std::size_t>(&end - ends_.data())][end.next] = now_ns();
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
    if (!may_begin(op)) break;
    if (end.receiver->places(end.next)) {
      if (recorder_ != nullptr) begun_ns_[static_cast<std::size_t>(&end - ends_.data())][end.next] = now_ns();
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
  if (op.fusion != no_fusion) return take_fused(program_.fusions[op.fusion]);
  if (!end.receiver->is_ready(end.next)) return false;
  const std::int64_t begin = recorder_ != nullptr ? now_ns() : 0;
  apply(end, op);
  if (recorder_ != nullptr) {
    begun_ns_[static_cast<std::size_t>(&end - ends_.data())][end.next] = begin;
    if (op.reduces) recorder_->add({op.transfer, op.chunk, Phase::reduce, begin, now_ns()});
  }
  end.receiver->release(end.next);
  ++end.next;
  bytes_moved_ += op.bytes;
  return true;
}

bool Execution::take_fused(const Fusion& fusion) {
  for (std::uint32_t i = 0; i < fusion.member_count; ++i) {
    const FusionMember& member = program_.members[fusion.first_member + i];
    End& end = ends_[member.stream];
    if (!end.is_open || end.next != member.index || !may_begin(end.call.op(member.index)) ||
        !end.receiver->is_ready(member.index)) {
      return false;
    }
  }
  const std::int64_t begin = recorder_ != nullptr ? now_ns() : 0;
  apply_fused(fusion);
  const std::int64_t finish = recorder_ != nullptr ? now_ns() : 0;
  for (std::uint32_t i = 0; i < fusion.member_count; ++i) {
    const FusionMember& member = program_.members[fusion.first_member + i];
    End& end = ends_[member.stream];
    const Op& op = end.call.op(member.index);
    if (recorder_ != nullptr) {
      begun_ns_[member.stream][member.index] = begin;
      recorder_->add({op.transfer, op.chunk, Phase::reduce, begin, finish});
    }
    end.receiver->release(member.index);
    ++end.next;
    bytes_moved_ += op.bytes;
    note_done(end, end.receiver->arrived());
  }
  return true;
}

void Execution::apply(const End& end, const Op& op) {
  std::int64_t skipped = 0;
  for (std::uint32_t i = 0; i < op.piece_count; ++i) {
    const Piece& piece = end.call.pieces(op)[i];
    const void* source = end.receiver->source(piece, skipped);
    skipped += piece.length;
    if (op.reduces) {
      reduce_(buffers_.at(piece.target), buffers_.at(piece.first), &source, 1,
              static_cast<std::size_t>(piece.length / program_.element_size));
    } else {
      copy_bytes(buffers_.at(piece.target), source, static_cast<std::size_t>(piece.length));
    }
  }
}

void Execution::apply_fused(const Fusion& fusion) {
  // The members move the same bytes, but each may have them in other pieces: the shortest runs count.
  for (std::uint32_t i = 0; i < fusion.member_count; ++i) {
    const FusionMember& member = program_.members[fusion.first_member + i];
    const End& end = ends_[member.stream];
    sources_[i] = {&end, &end.call.op(member.index), 0, 0, 0};
  }
  const auto piece_of = [](const Source& source) -> const Piece& {
    return source.end->call.pieces(*source.op)[source.piece];
  };
  while (sources_[0].piece < sources_[0].op->piece_count) {
    std::int64_t length = INT64_MAX;
    for (std::uint32_t i = 0; i < fusion.member_count; ++i) {
      length = std::min(length, piece_of(sources_[i]).length - sources_[i].in_piece);
    }
    for (std::uint32_t i = 0; i < fusion.member_count; ++i) {
      const Source& source = sources_[i];
      source_pointers_[i] = source.end->receiver->source(piece_of(source), source.skipped) + source.in_piece;
    }
    const Piece& target = piece_of(sources_[0]);
    reduce_(buffers_.at(target.target) + sources_[0].in_piece, buffers_.at(target.first) + sources_[0].in_piece,
            source_pointers_.data(), fusion.member_count, static_cast<std::size_t>(length / program_.element_size));
    for (std::uint32_t i = 0; i < fusion.member_count; ++i) {
      Source& source = sources_[i];
      source.in_piece += length;
      if (source.in_piece < piece_of(source).length) continue;
      source.skipped += source.in_piece;
      source.in_piece = 0;
      ++source.piece;
    }
  }
}

void Execution::copy_own_results() {
  for (const LocalCopy& copy : program_.local_copies) {
    std::byte* to = buffers_.at(copy.to);
    const std::byte* from = buffers_.at(copy.from);
    if (to != from) copy_bytes(to, from, static_cast<std::size_t>(copy.length));
    bytes_moved_ += copy.length;
  }
  owes_own_results_ = false;
  --unfinished_;
}

void Execution::close() {
  for (End& end : ends_) {
    if (end.sender != nullptr) {
      end.sender->close();
    } else {
      end.receiver->close();
    }
  }
}

Execution::Stall Execution::find_stall() const {
  const End* stalled = nullptr;
  for (const std::uint32_t i : order_) {
    const End& end = ends_[i];
    if (end.is_open && end.done == end.call.stream->op_count) continue;
    const bool waits_for_peer = !end.is_open || end.done < end.next || may_begin(end.call.op(end.next));
    if (stalled == nullptr || waits_for_peer) stalled = &end;
    if (waits_for_peer) break;
  }
  ESPALIER_CHECK(stalled != nullptr, "a call that is not done waits for something");
  const Stream& stream = *stalled->call.stream;
  if (!stalled->is_open) return {stream.peer, "has not entered the call"};
  const Op& op = stalled->call.op(std::min(stalled->done, stream.op_count - 1));
  const char* what = stalled->sender != nullptr ? "has not taken" : "has not sent";
  return {stream.peer, fmt::format("{} transfer {} chunk {} ({} bytes, {} of {} on this stream done)", what,
                                   op.transfer.value(), op.chunk, op.bytes, stalled->done, stream.op_count)};
}

}  // namespace espalier::engine
