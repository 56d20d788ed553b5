#include "engine/shm/input_exchange.h"

#include <algorithm>

namespace espalier::engine {

InputExchange::InputExchange(ShmGroup& group, const RankProgram& program, DeviceQueue& queue)
    : group_(group), queue_(queue), bytes_(program.send_bytes) {
  inputs_.reserve(group.peers().size());
}

Result<void> InputExchange::begin(const StreamCall& call, Recorder*) {
  call_ = &call;
  inputs_.clear();
  std::byte* place = group_.own_call(call.header->sequence).input.data();
  if (!fits_in_call()) {
    const auto ring = group_.inputs();
    if (!ring) return tl::unexpected(ring.error());
    offset_ = group_.place_input(bytes_);
    place = ring->data + offset_;
  }
  shown_ = place;
  queue_.copy(place, call.buffers->base[static_cast<std::size_t>(Place::send)], static_cast<std::size_t>(bytes_));
  mark_ = queue_.mark();
  step_ = Step::show;
  if (queue_.is_done(mark_)) publish();
  return {};
}

void InputExchange::publish() {
  group_.own_call(call_->header->sequence).header = *call_->header;
  group_.publish(call_->header->sequence);
  group_.mark_all();
  step_ = Step::collect;
}

bool InputExchange::collect() {
  const auto peers = group_.peers();
  while (inputs_.size() < peers.size()) {
    ShmPeer* peer = peers[inputs_.size()].get();
    if (peer == nullptr) {
      inputs_.push_back(shown_);
      continue;
    }
    if (!peer->has_entered(*call_)) return false;
    if (fits_in_call()) {
      inputs_.push_back(peer->call(call_->header->sequence).input.data());
      continue;
    }
    const auto ring = peer->shown_inputs();
    if (!ring) {
      call_->error->set_broken(ring.error());
      return false;
    }
    inputs_.push_back(*ring + offset_);
  }
  return true;
}

WholeCall::Progress InputExchange::advance() {
  if (step_ == Step::show) {
    if (!queue_.is_done(mark_)) return Progress::none;
    publish();
  }
  if (step_ == Step::collect) {
    const std::size_t before = inputs_.size();
    if (!collect()) return inputs_.size() != before ? Progress::some : Progress::none;
    void* const target = call_->buffers->base[static_cast<std::size_t>(Place::receive)];
    queue_.reduce(call_->header->type, call_->header->operation, std::span(&target, 1), inputs_.front(),
                  std::span(inputs_).subspan(1), call_->header->count);
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
