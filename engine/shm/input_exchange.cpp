#include "engine/shm/input_exchange.h"

#include <algorithm>

#include "engine/executor/pause.h"

namespace espalier::engine {
namespace {

constexpr std::size_t line = 64;

/// Fetches cache lines for writes to come, from the other cores too.
void expect_writes(const std::byte* begin, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += line) {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(begin[at]));  // What the compiler makes of the other fetches them to be read.
#else
    __builtin_prefetch(begin + at, 1);
#endif
  }
}

void expect_reads(const std::byte* begin, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += line) __builtin_prefetch(begin + at);
}

/// Up to here lines that are fetched too early cost less than those that are fetched too late.
constexpr std::int64_t max_fetched_early = 512;
/// Some tens of nanoseconds: about what ranks that begin together are apart.
constexpr int pauses_before_look = 2;

}  // namespace

InputExchange::InputExchange(ShmGroup& group, const RankProgram& program, DeviceQueue& queue, bool of_private)
    : group_(group), queue_(queue), bytes_(program.send_bytes), of_private_(of_private) {
  inputs_.reserve(group.peers().size());
}

Result<void> InputExchange::begin(const StreamCall& call, Recorder*) {
  call_ = &call;
  inputs_.clear();
  const auto place = find_place();
  if (!place) return tl::unexpected(place.error());
  shown_ = *place;
  SharedCall& own = group_.own_call(call.header->sequence);
  if (of_private_) {
    group_.describe(call);
    if (shares_all(own)) {
      group_.publish(call.header->sequence);
      group_.mark_all();
      step_ = Step::declined;
      return {};
    }
  } else {
    own.header = *call.header;
  }
  queue_.copy(*place, call.buffers->base[static_cast<std::size_t>(Place::send)], static_cast<std::size_t>(bytes_));
  mark_ = queue_.mark();
  step_ = Step::show;
  if (queue_.is_done(mark_)) publish();
  return {};
}

Result<std::byte*> InputExchange::find_place() {
  if (fits_in_call()) return group_.own_call(call_->header->sequence).input.data();
  const auto ring = group_.inputs();
  if (!ring) return tl::unexpected(ring.error());
  offset_ = group_.place_input(bytes_);
  return ring->data + offset_;
}

void InputExchange::publish() {
  group_.publish(call_->header->sequence);
  group_.mark_all();
  step_ = Step::collect;
  // The others have not read yet what is here, so they do not look for the next call, whose lines are this core's now.
  expect_writes(reinterpret_cast<const std::byte*>(&group_.own_call(call_->header->sequence + 1)), sizeof(SharedCall));
  if (!fits_in_call() && bytes_ <= max_fetched_early)
    expect_writes(shown_ + bytes_, static_cast<std::size_t>(bytes_) + line);
  // Who looks at a line that another is about to write takes it from that core, twice as long as to fetch it once it is
  // written: what has to be done anyway comes before the first look.
  group_.flush();
  for (int i = 0; i < pauses_before_look; ++i) pause();
}

void InputExchange::fetch_early(ShmPeer& peer) {
  if (fits_in_call() || bytes_ > max_fetched_early || !peer.has_shown_inputs()) return;
  if (const auto ring = peer.shown_inputs()) expect_reads(*ring + offset_, static_cast<std::size_t>(bytes_));
}

bool InputExchange::collect() {
  const auto peers = group_.peers();
  while (inputs_.size() < peers.size()) {
    ShmPeer* peer = peers[inputs_.size()].get();
    if (peer == nullptr) {
      inputs_.push_back(shown_);
      continue;
    }
    if (!peer->has_entered(*call_)) {
      fetch_early(*peer);
      return false;
    }
    if (of_private_ && peer->shares_buffers(call_->header->sequence)) {
      step_ = Step::declined;
      return false;
    }
    if (fits_in_call()) {
      inputs_.push_back(peer->call(call_->header->sequence).input.data());
      continue;
    }
    const auto ring = peer->shown_inputs();
    if (!ring) {
      call_->error->set_broken(ring.error());
      return false;
    }
    // Lines that only one core has move to who writes them next several times as fast as those that two have.
    if (of_private_) expect_writes(*ring + offset_, static_cast<std::size_t>(bytes_));
    inputs_.push_back(*ring + offset_);
  }
  return true;
}

void InputExchange::take_inputs() {
  std::byte* const target = call_->buffers->base[static_cast<std::size_t>(Place::receive)];
  if (call_->header->kind != CollectiveKind::all_to_all) {
    void* const sum = target;
    queue_.reduce(call_->header->type, call_->header->operation, std::span(&sum, 1), inputs_.front(),
                  std::span(inputs_).subspan(1), call_->header->count);
    return;
  }
  const auto peers = group_.peers();
  const auto self = static_cast<std::size_t>(
      std::ranges::find_if(peers, [](const auto& peer) { return peer == nullptr; }) - peers.begin());
  const std::size_t block = static_cast<std::size_t>(bytes_) / peers.size();
  for (std::size_t member = 0; member < peers.size(); ++member) {
    const auto* const input = static_cast<const std::byte*>(inputs_[member]);
    queue_.copy(target + member * block, input + self * block, block);
  }
}

WholeCall::Progress InputExchange::advance() {
  if (step_ == Step::show) {
    if (!queue_.is_done(mark_)) return Progress::none;
    publish();
  }
  if (step_ == Step::declined) return Progress::declined;
  if (step_ == Step::collect) {
    const std::size_t before = inputs_.size();
    if (!collect()) {
      if (step_ == Step::declined) return Progress::declined;
      return inputs_.size() != before ? Progress::some : Progress::none;
    }
    take_inputs();
    mark_ = queue_.mark();
    step_ = Step::add;
  }
  if (!queue_.is_done(mark_)) return Progress::none;
  bytes_moved_ += bytes_;
  return Progress::done;
}

Stall InputExchange::find_stall() const {
  const std::size_t missing = std::min(inputs_.size(), group_.peers().size() - 1);
  return {Rank(static_cast<std::uint32_t>(missing)), "has not entered the call", true};
}

}  // namespace espalier::engine
