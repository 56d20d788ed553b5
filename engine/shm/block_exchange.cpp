#include "engine/shm/block_exchange.h"

#include <algorithm>
#include <array>
#include <utility>

namespace espalier::engine {

BlockExchange::BlockExchange(ShmGroup& group, const RankProgram& program, DeviceQueue& queue)
    : group_(group),
      queue_(queue),
      element_size_(static_cast<std::size_t>(program.element_size)),
      block_bytes_(exchanged_block_bytes(static_cast<std::uint32_t>(group.peers().size()))),
      blocks_(group.peers().size()) {
  const auto peers = group.peers();
  self_ = static_cast<std::size_t>(std::ranges::find_if(peers, [](const auto& peer) { return peer == nullptr; }) -
                                   peers.begin());
  sources_.reserve(peers.size());
}

Result<void> BlockExchange::begin(const StreamCall& call, Recorder*) {
  const auto own = group_.blocks();
  if (!own) return tl::unexpected(own.error());
  call_ = &call;
  blocks_[self_] = own->data;
  first_block_ = group_.blocks_exchanged;
  members_entered_ = 0;
  is_attached_ = false;
  const std::size_t count = call.header->count;
  const std::size_t most = static_cast<std::size_t>(block_bytes_) / element_size_;
  block_count_ = (count + most - 1) / most;
  block_elements_ = (count + block_count_ - 1) / block_count_;
  shown_ = added_ = taken_ = 0;
  members_seen_ = shares_taken_ = 0;
  step_ = Step::none;
  group_.enter(call);
  is_private_ = !shares_all(group_.own_call(call.header->sequence));
  return {};
}

bool BlockExchange::all_entered() {
  const auto peers = group_.peers();
  for (; members_entered_ < peers.size(); ++members_entered_) {
    const auto& peer = peers[members_entered_];
    if (peer && !peer->has_entered(*call_)) return false;
  }
  return true;
}

Result<void> BlockExchange::attach() {
  const auto peers = group_.peers();
  for (std::size_t member = 0; member < peers.size(); ++member) {
    if (member == self_) continue;
    const auto mapped = peers[member]->shown_blocks();
    if (!mapped) return tl::unexpected(mapped.error());
    blocks_[member] = *mapped;
  }
  is_attached_ = true;
  return {};
}

WholeCall::Progress BlockExchange::advance() {
  if (!is_attached_) {
    // With private memory it is decided, and the others may see what there is before all have entered.
    const bool moved = is_private_ && advance_steps();
    if (!all_entered()) return moved ? Progress::some : Progress::none;
    const std::uint64_t sequence = call_->header->sequence;
    const auto shares = [&](const auto& peer) { return !peer || peer->shares_buffers(sequence); };
    if (!is_private_ && std::ranges::all_of(group_.peers(), shares)) return Progress::declined;
    if (const auto attached = attach(); !attached) {
      call_->error->set_broken(attached.error());
      return Progress::none;
    }
    return Progress::some;
  }
  if (!advance_steps()) return Progress::none;
  bytes_moved_ += block_bytes_;  // About: a step may be a part of that.
  return is_done() ? Progress::done : Progress::some;
}

void BlockExchange::close() {
  group_.blocks_exchanged += block_count_;
  group_.note_exchanged(call_->header->sequence);
}

Stall BlockExchange::find_stall() const {
  if (!is_attached_) {
    const std::size_t missing = std::min(members_entered_, blocks_.size() - 1);
    return {Rank(static_cast<std::uint32_t>(missing)), "has not entered the call", true};
  }
  const std::size_t member = added_ == taken_ ? std::min(members_seen_, blocks_.size() - 1) : next_member();
  return {Rank(static_cast<std::uint32_t>(member)), "has not come as far in this call"};
}

BlockExchange::Range BlockExchange::block(std::uint64_t index) const {
  const std::size_t begin = static_cast<std::size_t>(index) * block_elements_;
  return {begin, std::min<std::size_t>(block_elements_,
                                       call_->header->count - std::min<std::size_t>(begin, call_->header->count))};
}

BlockExchange::Range BlockExchange::share(std::uint64_t index, std::size_t member) const {
  constexpr std::size_t line = 64;  // No two ranks write one line.
  const std::size_t count = block(index).count;
  const std::size_t step = std::max<std::size_t>(1, line / element_size_);
  const std::size_t lines = (count + step - 1) / step;
  const std::size_t each = (lines + blocks_.size() - 1) / blocks_.size() * step;
  const std::size_t begin = std::min(count, member * each);
  return {begin, std::min(count, begin + each) - begin};
}

std::byte* BlockExchange::shown_at(std::size_t member, std::uint64_t index, std::size_t element) const {
  const std::uint64_t place = (first_block_ + index) % places;
  return blocks_[member] + place * static_cast<std::uint64_t>(block_bytes_) + bytes(element);
}

bool BlockExchange::advance_steps() {
  bool moved = false;
  while (!is_done()) {
    if (step_ == Step::none) {
      if (!begin_step()) return moved;
      moved = true;
    }
    if (!queue_.is_done(mark_)) return moved;
    finish_step();
    moved = true;
  }
  return moved;
}

bool BlockExchange::begin_step() {
  if (shown_ < block_count_ && shown_ < taken_ + 2) {
    const Range range = block(shown_);
    queue_.copy(shown_at(self_, shown_, 0), at(Place::send, range.begin), bytes(range.count));
    step_ = Step::show;
  } else if (!is_attached_) {
    return false;
  } else if (added_ == taken_) {
    if (!begin_add()) return false;
    step_ = Step::add;
  } else {
    if (!begin_take()) return false;
    step_ = Step::take;
  }
  mark_ = queue_.mark();
  return true;
}

bool BlockExchange::begin_add() {
  for (; members_seen_ < blocks_.size(); ++members_seen_) {
    const auto& peer = group_.peers()[members_seen_];
    if (peer && peer->blocks_shown() < first_block_ + added_ + 1) return false;
  }
  const Range own = share(added_, self_);
  if (own.count == 0) return true;
  sources_.clear();
  for (std::size_t member = 0; member < blocks_.size(); ++member) {
    sources_.push_back(shown_at(member, added_, own.begin));
  }
  const std::array<void*, 2> targets = {at(Place::receive, block(added_).begin + own.begin),
                                        shown_at(self_, added_, own.begin)};
  queue_.reduce(call_->header->type, call_->header->operation, targets, sources_.front(),
                std::span(sources_).subspan(1), own.count);
  return true;
}

bool BlockExchange::begin_take() {
  const std::size_t member = next_member();
  if (group_.peers()[member]->blocks_added() < first_block_ + taken_ + 1) return false;
  const Range theirs = share(taken_, member);
  if (theirs.count > 0) {
    queue_.copy(at(Place::receive, block(taken_).begin + theirs.begin), shown_at(member, taken_, theirs.begin),
                bytes(theirs.count));
  }
  return true;
}

void BlockExchange::finish_step() {
  const Step done = std::exchange(step_, Step::none);
  if (done == Step::take) {
    if (++shares_taken_ < blocks_.size() - 1) return;
    shares_taken_ = 0;
    members_seen_ = 0;
    ++taken_;
    return;
  }
  if (done == Step::show) {
    group_.control().blocks_shown.store(first_block_ + ++shown_, std::memory_order_release);
  } else {
    group_.control().blocks_added.store(first_block_ + ++added_, std::memory_order_release);
  }
  group_.mark_all();
}

}  // namespace espalier::engine
