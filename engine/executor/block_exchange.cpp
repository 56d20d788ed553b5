#include "engine/executor/block_exchange.h"

#include <algorithm>
#include <array>
#include <utility>

namespace espalier::engine {

Result<void> BlockExchange::meet() {
  for (std::size_t member = 0; member < call_.members.size(); ++member) {
    if (member == self_) continue;
    const auto mapped = call_.members[member]->shown_blocks();
    if (!mapped) return tl::unexpected(mapped.error());
    blocks_[member] = *mapped;
  }
  has_met_ = true;
  return {};
}

void BlockExchange::begin(const Call& call) {
  call_ = call;
  self_ = static_cast<std::size_t>(
      std::ranges::find_if(call.members, [](const auto& peer) { return peer == nullptr; }) - call.members.begin());
  blocks_.resize(call.members.size());
  blocks_[self_] = call.own_blocks;
  has_met_ = false;
  const std::size_t most = static_cast<std::size_t>(call.block_bytes) / call.element_size;
  block_count_ = (call.header.count + most - 1) / most;
  block_elements_ = (call.header.count + block_count_ - 1) / block_count_;
  shown_ = added_ = taken_ = 0;
  members_seen_ = shares_taken_ = 0;
  step_ = Step::none;
}

BlockExchange::Range BlockExchange::block(std::uint64_t index) const {
  const std::size_t begin = static_cast<std::size_t>(index) * block_elements_;
  return {begin, std::min<std::size_t>(block_elements_,
                                       call_.header.count - std::min<std::size_t>(begin, call_.header.count))};
}

BlockExchange::Range BlockExchange::share(std::uint64_t index, std::size_t member) const {
  constexpr std::size_t line = 64;  // No two ranks write one line.
  const std::size_t count = block(index).count;
  const std::size_t step = std::max<std::size_t>(1, line / call_.element_size);
  const std::size_t lines = (count + step - 1) / step;
  const std::size_t each = (lines + call_.members.size() - 1) / call_.members.size() * step;
  const std::size_t begin = std::min(count, member * each);
  return {begin, std::min(count, begin + each) - begin};
}

std::byte* BlockExchange::shown_at(std::size_t member, std::uint64_t index, std::size_t element) const {
  const std::uint64_t place = (call_.first_block + index) % places;
  return blocks_[member] + place * static_cast<std::uint64_t>(call_.block_bytes) + bytes(element);
}

bool BlockExchange::advance(Device& device) {
  bool moved = false;
  while (!is_done()) {
    if (step_ == Step::none && !begin_step(device)) return moved;
    moved = true;
    if (!device.is_done(mark_)) return moved;
    finish_step();
  }
  return moved;
}

bool BlockExchange::begin_step(Device& device) {
  if (shown_ < block_count_ && shown_ < taken_ + 2) {
    const Range range = block(shown_);
    device.copy(shown_at(self_, shown_, 0), call_.send + bytes(range.begin), bytes(range.count));
    step_ = Step::show;
  } else if (!has_met_) {
    return false;
  } else if (added_ == taken_) {
    if (!begin_add(device)) return false;
    step_ = Step::add;
  } else {
    if (!begin_take(device)) return false;
    step_ = Step::take;
  }
  mark_ = device.mark();
  return true;
}

bool BlockExchange::begin_add(Device& device) {
  for (; members_seen_ < call_.members.size(); ++members_seen_) {
    const auto& peer = call_.members[members_seen_];
    if (peer && peer->blocks_shown() < call_.first_block + added_ + 1) return false;
  }
  const Range own = share(added_, self_);
  if (own.count == 0) return true;
  sources_.clear();
  for (std::size_t member = 0; member < call_.members.size(); ++member) {
    sources_.push_back(shown_at(member, added_, own.begin));
  }
  const std::array<void*, 2> targets = {call_.receive + bytes(block(added_).begin + own.begin),
                                        shown_at(self_, added_, own.begin)};
  device.reduce(call_.header.type, call_.header.operation, targets, sources_.front(), std::span(sources_).subspan(1),
                own.count);
  return true;
}

bool BlockExchange::begin_take(Device& device) {
  const std::size_t member = next_member();
  if (call_.members[member]->blocks_added() < call_.first_block + taken_ + 1) return false;
  const Range theirs = share(taken_, member);
  if (theirs.count > 0) {
    device.copy(call_.receive + bytes(block(taken_).begin + theirs.begin), shown_at(member, taken_, theirs.begin),
                bytes(theirs.count));
  }
  return true;
}

void BlockExchange::finish_step() {
  const Step done = std::exchange(step_, Step::none);
  if (done == Step::take) {
    if (++shares_taken_ < call_.members.size() - 1) return;
    shares_taken_ = 0;
    members_seen_ = 0;
    ++taken_;
    return;
  }
  if (done == Step::show) {
    call_.own->blocks_shown.store(call_.first_block + ++shown_, std::memory_order_release);
  } else {
    call_.own->blocks_added.store(call_.first_block + ++added_, std::memory_order_release);
  }
  for (const auto& peer : call_.members) {
    if (peer) peer->mark();
  }
}

std::uint32_t BlockExchange::awaited() const {
  const std::size_t member = added_ == taken_ ? std::min(members_seen_, call_.members.size() - 1) : next_member();
  return static_cast<std::uint32_t>(member);
}

}  // namespace espalier::engine
