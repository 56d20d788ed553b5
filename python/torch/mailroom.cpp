#include "python/torch/mailroom.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "python/torch/store_meeting.h"
#include "python/torch/tensor_elements.h"

namespace espalier::python {
namespace {

void expect(const Result<void>& result) {
  if (!result) raise_runtime_error(result.error());
}

/// What arrived, in the tensor of the receive; every message ends the receive that it fits.
void deliver(GroupWork& work, const StagedTensor& staged, const at::Tensor& bytes, std::uint32_t from) {
  work.set_source(static_cast<int>(from));
  work.run([&] {
    const at::NoGradGuard no_gradients;
    const at::Tensor& tensor = staged.tensor;
    if (bytes.numel() != static_cast<std::int64_t>(tensor.nbytes())) {
      throw std::runtime_error("rank " + std::to_string(from) + " sent " + std::to_string(bytes.numel()) +
                               " bytes, and the tensor to receive into has " + std::to_string(tensor.nbytes()));
    }
    unpack(bytes, {staged.stage->writes(tensor)});
    staged.stage->copy_out();
  });
}

}  // namespace

Mailroom::Mailroom(std::uint32_t self, std::uint32_t size, Join join)
    : self_(self), size_(size), join_(std::move(join)) {}

Mailroom::~Mailroom() {
  const auto why = std::make_exception_ptr(std::runtime_error("the process group was destroyed"));
  std::list<Posted> open;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    open.swap(posted_);
    for (auto* directions : {&to_, &from_}) {
      for (auto& [peer, direction] : *directions) {
        const bool is_idle = directions == &to_ && !direction.is_sending && direction.outgoing.empty();
        if (direction.ranks && !is_idle) direction.ranks->abort("it destroyed its process group");
      }
    }
    changed_.notify_all();
  }
  for (Posted& posted : open) posted.work->fail(why);
  for (auto* directions : {&to_, &from_}) {
    for (auto& [peer, direction] : *directions) {
      if (direction.thread.joinable()) direction.thread.join();
    }
  }
}

void Mailroom::send(c10::intrusive_ptr<GroupWork> work, StagedTensor tensor, std::uint32_t to, int tag) {
  const std::lock_guard lock(mutex_);
  Direction& direction = to_[to];
  if (direction.failure) {
    work->fail(direction.failure);
    return;
  }
  direction.outgoing.push_back({std::move(work), std::move(tensor), tag});
  if (!direction.thread.joinable()) direction.thread = std::thread([this, to, &direction] { send_all(to, direction); });
  changed_.notify_all();
}

void Mailroom::receive(c10::intrusive_ptr<GroupWork> work, StagedTensor tensor, std::optional<std::uint32_t> from,
                       int tag) {
  std::unique_lock lock(mutex_);
  std::exception_ptr failure;
  bool may_come = false;
  for (std::uint32_t peer = 0; peer < size_; ++peer) {
    if (peer == self_ || (from && *from != peer)) continue;
    Direction& direction = from_[peer];
    const auto found = std::ranges::find(direction.arrived, tag, &Arrived::tag);
    if (found != direction.arrived.end()) {
      const at::Tensor bytes = found->bytes;
      direction.arrived.erase(found);
      lock.unlock();
      deliver(*work, tensor, bytes, peer);
      return;
    }
    if (direction.failure) failure = direction.failure;
    may_come = may_come || !direction.failure;
  }
  if (!may_come) {
    work->fail(failure);
    return;
  }
  posted_.push_back({std::move(work), std::move(tensor), from, tag});
  for (auto& [peer, direction] : from_) {
    if ((from && *from != peer) || direction.thread.joinable()) continue;
    direction.thread = std::thread([this, source = peer, &room = direction] { receive_all(source, room); });
  }
  changed_.notify_all();
}

void Mailroom::abort(std::optional<std::uint32_t> peer, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  for (auto* directions : {&to_, &from_}) {
    for (auto& [other, direction] : *directions) {
      if ((!peer || *peer == other) && direction.ranks) direction.ranks->abort(reason);
    }
  }
}

std::shared_ptr<Communicator> Mailroom::open(Direction& direction, std::uint32_t from, std::uint32_t to) {
  if (direction.ranks) return direction.ranks;  // Only this thread sets it.
  std::shared_ptr<Communicator> ranks = join_(from, to, is_over_);
  const std::lock_guard lock(mutex_);
  if (is_over_) throw std::runtime_error("the process group was destroyed");
  direction.ranks = ranks;
  return ranks;
}

void Mailroom::send_all(std::uint32_t to, Direction& direction) {
  const at::NoGradGuard no_gradients;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return is_over_ || !direction.outgoing.empty(); });
    if (direction.outgoing.empty()) return;
    Outgoing next = std::move(direction.outgoing.front());
    direction.outgoing.pop_front();
    std::exception_ptr failure = direction.failure;
    direction.is_sending = true;
    lock.unlock();
    try {
      if (failure) std::rethrow_exception(failure);
      const auto ranks = open(direction, self_, to);
      const at::Tensor bytes = dense(next.staged.stage->reads(next.staged.tensor));
      const Header header{next.tag, static_cast<std::int64_t>(bytes.nbytes())};
      expect(ranks->send(&header, sizeof header, ElementType::uint8, 1));
      if (header.bytes > 0) expect(ranks->send(bytes.data_ptr(), bytes.nbytes(), ElementType::uint8, 1));
    } catch (...) {
      failure = std::current_exception();
    }
    if (failure) {
      next.work->fail(failure);
    } else {
      next.work->succeed();
    }
    next = {};  // Before the lock: tensors may take Python's.
    lock.lock();
    direction.is_sending = false;
    direction.failure = failure;
  }
}

bool Mailroom::has_posted(std::uint32_t from) const {
  return std::ranges::any_of(posted_, [from](const Posted& posted) { return !posted.from || *posted.from == from; });
}

std::optional<Mailroom::Posted> Mailroom::take_posted(std::uint32_t from, std::int64_t tag) {
  const auto found = std::ranges::find_if(
      posted_, [&](const Posted& posted) { return posted.tag == tag && (!posted.from || *posted.from == from); });
  if (found == posted_.end()) return std::nullopt;
  Posted taken = std::move(*found);
  posted_.erase(found);
  return taken;
}

void Mailroom::receive_one(std::uint32_t from, Direction& direction) {
  const auto ranks = open(direction, from, self_);
  Header header;
  expect(ranks->receive(&header, sizeof header, ElementType::uint8, 0));
  std::unique_lock lock(mutex_);
  std::optional<Posted> posted = take_posted(from, header.tag);
  lock.unlock();
  const bool fits = posted && is_dense(posted->staged.tensor) &&
                    static_cast<std::int64_t>(posted->staged.tensor.nbytes()) == header.bytes;
  at::Tensor bytes = fits ? posted->staged.stage->writes(posted->staged.tensor) : at::empty({header.bytes}, at::kByte);
  try {
    if (header.bytes > 0) {
      expect(ranks->receive(bytes.data_ptr(), static_cast<std::size_t>(header.bytes), ElementType::uint8, 0));
    }
  } catch (...) {
    if (posted) posted->work->fail(std::current_exception());
    throw;
  }
  if (fits) {
    posted->work->set_source(static_cast<int>(from));
    posted->work->run([&] { posted->staged.stage->copy_out(); });
    return;
  }
  if (!posted) {  // A receive may have come meanwhile; while it was not there, it looked for what arrived.
    lock.lock();
    posted = take_posted(from, header.tag);
    if (!posted) {
      direction.arrived.push_back({header.tag, std::move(bytes)});
      return;
    }
    lock.unlock();
  }
  deliver(*posted->work, posted->staged, bytes, from);
}

void Mailroom::receive_all(std::uint32_t from, Direction& direction) {
  const at::NoGradGuard no_gradients;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return is_over_ || has_posted(from); });
    if (is_over_) return;
    lock.unlock();
    try {
      receive_one(from, direction);
    } catch (...) {
      fail_direction(from, direction, std::current_exception());
      return;
    }
    lock.lock();
  }
}

void Mailroom::fail_direction(std::uint32_t from, Direction& direction, const std::exception_ptr& why) {
  std::list<Posted> failed;
  {
    const std::lock_guard lock(mutex_);
    direction.failure = why;
    for (auto it = posted_.begin(); it != posted_.end();) {
      const auto next = std::next(it);
      if (it->from && *it->from == from) failed.splice(failed.end(), posted_, it);
      it = next;
    }
  }
  for (Posted& posted : failed) posted.work->fail(why);
}

}  // namespace espalier::python
