#include "python/torch/mailroom.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "python/torch/tensor_elements.h"

namespace espalier::python {
namespace {

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
    staged.stage->run([&] { unpack(bytes, {staged.stage->writes(tensor)}); });
  });
}

}  // namespace

Mailroom::Mailroom(Engine& engine, std::uint32_t self, std::uint32_t size, DeviceTensors device_tensors, Join join)
    : engine_(engine), self_(self), size_(size), device_tensors_(device_tensors), join_(std::move(join)) {}

Mailroom::~Mailroom() {
  const auto why = std::make_exception_ptr(std::runtime_error("the process group was destroyed"));
  std::list<Posted> open;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    open.swap(posted_);
    for (auto* directions : {&to_, &from_}) {
      for (auto& [peer, direction] : *directions) {
        // Where nothing is under way here, the other end may still be at the end of its last call, which goes well.
        if (direction.is_busy || !direction.outgoing.empty()) direction.abort("it destroyed its process group");
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
      if (!peer || *peer == other) direction.abort(reason);
    }
  }
}

std::shared_ptr<EngineJob> Mailroom::open(Direction& direction, std::uint32_t from, std::uint32_t to) {
  if (direction.ranks) return direction.ranks;  // Only this thread sets it.
  std::shared_ptr<EngineJob> ranks = join_(from, to, is_over_, nullptr);
  const std::lock_guard lock(mutex_);
  if (is_over_) throw std::runtime_error("the process group was destroyed");
  direction.ranks = ranks;
  return ranks;
}

void Mailroom::agree_on_gpu(Direction& direction, std::uint32_t from, std::uint32_t to,
                            std::optional<c10::Device> device) {
  enum : std::uint8_t { never, not_now, now };
  Owned<EngineGpu> gpu;
  std::uint8_t can = not_now;
  std::string why;
  if (device && wants_engine(device_tensors_, *device)) {
    try {
      gpu = open_gpu(engine_, *device);
    } catch (const std::runtime_error& error) {
      why = error.what();
    }
    can = gpu ? now : never;
  }
  expect(
      direction.ranks->run({EngineCollective::all_reduce, &can, &can, 1, EngineElement::uint8, EngineOperation::min}));
  direction.asks_for_gpu = can == not_now;
  if (can == never && device_tensors_ == DeviceTensors::engine) {
    throw std::runtime_error("ESPALIER_DEVICE_TENSORS=engine: rank " + std::to_string(from) + " or rank " +
                             std::to_string(to) + " cannot work on its GPU" + (why.empty() ? "" : ": " + why));
  }
  if (can != now) return;
  auto made = std::make_shared<DeviceCommunicator>(join_(from, to, is_over_, std::move(gpu)), *device);
  const std::lock_guard lock(mutex_);
  if (is_over_) throw std::runtime_error("the process group was destroyed");
  direction.gpu = std::move(made);
}

void Mailroom::end_call(Direction& direction) {
  const std::lock_guard lock(mutex_);
  direction.is_busy = false;
}

void Mailroom::send_one(std::uint32_t to, Direction& direction, const Outgoing& message) {
  const auto ranks = open(direction, self_, to);
  DeviceStage& stage = *message.staged.stage;
  const at::Tensor& tensor = message.staged.tensor;
  Header header{message.tag, static_cast<std::int64_t>(tensor.nbytes()), Path::host};
  if (header.bytes > 0 && wants_engine(device_tensors_, stage.device())) {
    if (direction.gpu && direction.gpu->device() == stage.device()) header.path = Path::gpu;
    if (!direction.gpu && direction.asks_for_gpu) header.path = Path::ask;
  }
  expect(ranks->send(&header, sizeof header, 1));
  if (header.path == Path::ask) agree_on_gpu(direction, self_, to, stage.device());
  const bool is_by_gpu = header.path != Path::host && direction.gpu;
  if (is_by_gpu) stage.stay_on_device();
  stage.run([&] {
    const at::Tensor bytes = dense(stage.reads(tensor));
    if (header.bytes == 0) return;
    if (is_by_gpu) {
      direction.gpu->send(bytes, 1, stage);
    } else {
      expect(ranks->send(bytes.data_ptr(), bytes.nbytes(), 1));
    }
  });
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
    direction.is_busy = true;
    lock.unlock();
    try {
      if (failure) std::rethrow_exception(failure);
      next.work->begin_range();
      send_one(to, direction, next);
    } catch (...) {
      failure = std::current_exception();
    }
    end_call(direction);
    if (failure) {
      next.work->fail(failure);
    } else {
      next.work->succeed();
    }
    next = {};  // Before the lock: tensors may take Python's.
    lock.lock();
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

at::Tensor Mailroom::receive_bytes(const Header& header, Direction& direction, const at::Tensor& host) {
  const auto bytes = static_cast<std::size_t>(header.bytes);
  if (header.path != Path::host && direction.gpu) return direction.gpu->receive(bytes, 0);
  if (bytes > 0) expect(direction.ranks->receive(host.data_ptr(), bytes, 0));
  return host;
}

void Mailroom::receive_one(std::uint32_t from, Direction& direction) {
  const auto ranks = open(direction, from, self_);
  Header header;
  expect(ranks->receive(&header, sizeof header, 0));
  std::unique_lock lock(mutex_);
  std::optional<Posted> posted = take_posted(from, header.tag);
  lock.unlock();
  if (posted) posted->work->begin_range();
  const StagedTensor staged = posted ? posted->staged : StagedTensor{};
  at::Tensor bytes;
  bool is_there = false;  // Where the receive wants it, but for the way back to the device.
  try {
    if (header.path == Path::ask) {
      agree_on_gpu(direction, from, self_, posted ? std::optional(staged.stage->device()) : std::nullopt);
    }
    const bool is_by_gpu = header.path != Path::host && direction.gpu;
    is_there = posted && !is_by_gpu && is_dense(staged.tensor) &&
               static_cast<std::int64_t>(staged.tensor.nbytes()) == header.bytes;
    at::Tensor host;
    if (!is_by_gpu) host = is_there ? staged.stage->writes(staged.tensor) : at::empty({header.bytes}, at::kByte);
    bytes = receive_bytes(header, direction, host);
    if (is_by_gpu && posted && staged.stage->device() == bytes.device()) staged.stage->stay_on_device();
    if (is_by_gpu && (!posted || staged.stage->device() != bytes.device())) bytes = bytes.cpu();
  } catch (...) {
    end_call(direction);
    if (posted) posted->work->fail(std::current_exception());
    throw;
  }
  end_call(direction);
  if (is_there) {
    posted->work->set_source(static_cast<int>(from));
    posted->work->run([&] { staged.stage->copy_out(); });
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
    direction.is_busy = true;
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
