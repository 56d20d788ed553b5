#include <Python.h>

// Python's header comes first.
#include <algorithm>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <utility>

#include "python/torch/call_record.h"
#include "python/torch/process_group.h"

namespace espalier::python {
namespace {

/// The groups of this process, for its end.
struct OpenGroups {
  std::mutex mutex;
  std::vector<ProcessGroupEspalier*> groups;
};

OpenGroups& open_groups() {
  static OpenGroups open;
  return open;
}

StagedTensor staged(const at::Tensor& tensor) { return {tensor, std::make_shared<DeviceStage>(tensor.device())}; }

}  // namespace

void GroupJobs::add(std::shared_ptr<EngineJob> on_devices) {
  const std::lock_guard lock(mutex_);
  if (aborted_) on_devices->abort(aborted_->c_str());
  on_devices_ = std::move(on_devices);
}

void GroupJobs::abort(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  aborted_ = reason;
  host_->abort(reason.c_str());
  if (on_devices_) on_devices_->abort(reason.c_str());
}

ProcessGroupEspalier::ProcessGroupEspalier(Engine& engine, c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                                           std::chrono::milliseconds timeout, const BackendSettings& settings,
                                           bool is_whole_job)
    : BackendBase(rank, size), terms_{engine, std::move(store), timeout, settings, {}}, is_whole_job_(is_whole_job) {
  init();
  const auto self = static_cast<std::uint32_t>(rank);
  const auto world = static_cast<std::uint32_t>(size);
  auto [job, session] = terms_.meet({"group", self, world, false, is_whole_job});
  jobs_ = std::make_shared<GroupJobs>(std::move(job));
  terms_.session = std::move(session);
  for (std::uint32_t peer = 0; peer < world; ++peer) transports_.emplace_back(jobs_->host().transport(peer));
  bool shares_memory = false;
  for (std::uint32_t peer = 0; peer < world; ++peer) {
    shares_memory = shares_memory || (peer != self && transports_[peer] == "shm");
  }
  if (shares_memory) shared_ = std::make_unique<SharedTensors>(jobs_->host());
  mailroom_ = std::make_shared<Mailroom>(
      engine, self, world, terms_.settings.device_tensors,
      [terms = terms_, self](std::uint32_t from, std::uint32_t to, const std::atomic<bool>& is_over,
                             Owned<EngineGpu> gpu) {
        const std::string name = "pair/" + std::to_string(from) + ">" + std::to_string(to) + (gpu ? "/devices" : "");
        return terms.meet({name, self == from ? 0U : 1U, 2, true}, &is_over, std::move(gpu)).job;
      });
  {
    const std::lock_guard lock(mutex_);
    put_in_charge();
  }
  const std::lock_guard lock(open_groups().mutex);
  open_groups().groups.push_back(this);
}

ProcessGroupEspalier::~ProcessGroupEspalier() {
  const auto close = [this] {
    {
      const std::lock_guard lock(open_groups().mutex);
      std::erase(open_groups().groups, this);
    }
    leave();
  };
  if (Py_IsInitialized() != 0 && PyGILState_Check() != 0) {  // Calls under way may need it to end.
    PyThreadState* const state = PyEval_SaveThread();
    close();
    PyEval_RestoreThread(state);
  } else {
    close();
  }
}

void ProcessGroupEspalier::leave_all(const std::string& reason) {
  const std::lock_guard lock(open_groups().mutex);
  for (ProcessGroupEspalier* const group : open_groups().groups) {
    if (!reason.empty()) group->abort_all(reason);
    group->leave();
  }
}

Meeting::Joined JobTerms::meet(const Members& members, const std::atomic<bool>* is_over, Owned<EngineGpu> gpu) const {
  const std::string device_tensors = to_string(settings.device_tensors);
  std::vector<EnginePlan> plans;
  EngineJoin join;
  join.settings.transport = settings.transport.c_str();
  join.settings.device_tensors = device_tensors.c_str();
  if (!members.is_pair) {
    for (const auto& plan : settings.plans) plans.push_back({plan.path.c_str(), plan.least, plan.most});
    join.settings.algorithm = settings.algorithm.c_str();
    join.settings.topology = settings.topology.c_str();
    join.settings.plans = plans.data();
    join.settings.plan_count = plans.size();
  }
  join.rank = members.rank;
  join.world = members.world;
  join.timeout_ms = timeout.count();
  join.is_whole_job = members.is_whole_job;
  const std::string name = "espalier/" + (session.empty() ? "" : session + "/") + members.name;
  return Meeting{engine, store, name, is_over}.join(join, std::move(gpu));
}

void ProcessGroupEspalier::leave() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    changed_.notify_all();
  }
  for (Worker& worker : workers_) {  // No call, so no other, comes from now on.
    if (worker.thread.joinable()) worker.thread.join();
  }
  shared_.reset();
  on_devices_.reset();
  std::shared_ptr<Mailroom> mailroom;
  std::shared_ptr<GroupJobs> jobs;
  const std::lock_guard lock(mutex_);
  mailroom.swap(mailroom_);
  jobs.swap(jobs_);
}

void ProcessGroupEspalier::setTimeout(std::chrono::milliseconds timeout) { limit_ = timeout; }

c10::intrusive_ptr<BackendBase::Options> ProcessGroupEspalier::getBackendOptions() {
  return c10::make_intrusive<BackendBase::Options>("espalier", terms_.timeout);
}

c10::intrusive_ptr<BackendBase> ProcessGroupEspalier::split(const c10::intrusive_ptr<c10d::Store>& store,
                                                            const std::vector<int>& ranks,
                                                            const c10::intrusive_ptr<BackendBase::Options>& options) {
  const auto found = std::ranges::find(ranks, getRank());
  if (found == ranks.end()) return nullptr;
  const auto timeout = options ? options->timeout : terms_.timeout;
  return c10::make_intrusive<ProcessGroupEspalier>(terms_.engine, store, static_cast<int>(found - ranks.begin()),
                                                   static_cast<int>(ranks.size()), timeout, terms_.settings, false);
}

void ProcessGroupEspalier::abort_all(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (jobs_) jobs_->abort(reason);
  if (mailroom_) mailroom_->abort(std::nullopt, reason);
}

std::vector<std::string> ProcessGroupEspalier::transports() const { return transports_; }

c10::intrusive_ptr<GroupWork> ProcessGroupEspalier::make_work(const Kind& kind, const Tensors& inputs, Outputs outputs,
                                                              std::function<void(const std::string&)> give_up) {
  const auto limit = kind.timeout == c10d::kUnsetTimeout ? limit_.load() : kind.timeout;
  return c10::make_intrusive<GroupWork>(getRank(), kind.type, kind.title, inputs, std::move(outputs), limit,
                                        std::move(give_up));
}

c10::intrusive_ptr<GroupWork> ProcessGroupEspalier::make_message(c10d::OpType type, const char* title,
                                                                 const Tensors& tensors,
                                                                 std::optional<std::uint32_t> peer) {
  if (!mailroom_) throw std::runtime_error("this process group was destroyed");
  Outputs outputs;
  if (type != c10d::OpType::SEND) outputs.tensors = tensors;
  record_call(*this, {type, tensors, tensors, ++messages_, true, getRank(), getSize(), is_whole_job_});
  return make_work({type, title, terms_.timeout}, tensors, std::move(outputs),
                   [room = std::weak_ptr(mailroom_), peer](const std::string& reason) {
                     if (const auto still = room.lock()) still->abort(peer, reason);
                   });
}

ProcessGroupEspalier::Work ProcessGroupEspalier::start(const Kind& kind, const Tensors& inputs, Outputs outputs,
                                                       std::shared_ptr<DeviceStage> stage, CarryOut carry_out) {
  const Tensors written = outputs.tensors;
  auto work = make_work(kind, inputs, std::move(outputs), [jobs = std::weak_ptr(jobs_)](const std::string& reason) {
    if (const auto still = jobs.lock()) still->abort(reason);
  });
  const std::lock_guard lock(mutex_);
  if (is_ending_) throw std::runtime_error("this process group was destroyed");
  const auto number = static_cast<std::int64_t>(++sequence_);
  record_call(*this, {kind.type, inputs, written, number, false, getRank(), getSize(), is_whole_job_});
  calls_.push_back({work, std::move(stage), std::move(carry_out)});
  if (workers_.back().thread.get_id() == std::this_thread::get_id()) put_in_charge();
  changed_.notify_all();
  return work;
}

void ProcessGroupEspalier::put_in_charge() {
  std::erase_if(workers_, [](Worker& worker) {
    if (worker.has_ended) worker.thread.join();
    return worker.has_ended;
  });
  Worker& worker = workers_.emplace_back();
  worker.thread = std::thread([this, &worker] { work_off(worker); });
}

void ProcessGroupEspalier::work_off(Worker& self) {
  const at::NoGradGuard no_gradients;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_ending_ || !calls_.empty(); });
    if (calls_.empty()) return;
    Call call = std::move(calls_.front());
    calls_.pop_front();
    lock.unlock();
    call.work->run([&] {
      stage_ = call.stage.get();
      in_use_ = on_device(stage_->device());
      if (in_use_ != nullptr) stage_->stay_on_device();
      stage_->run([&] { call.carry_out(*stage_); });
    });
    call = {};  // Before the lock: tensors may take Python's.
    lock.lock();
    if (&workers_.back() != &self) {
      self.has_ended = true;
      return;
    }
  }
}

DeviceCommunicator* ProcessGroupEspalier::on_device(c10::Device device) {
  if (!wants_engine(terms_.settings.device_tensors, device)) return nullptr;
  if (!has_looked_for_devices_) join_on_devices(device);
  has_looked_for_devices_ = true;
  if (on_devices_ && on_devices_->device() != device) {
    throw std::runtime_error("a rank's tensors are on one GPU in all calls of a group: this one is on " + device.str() +
                             ", earlier ones were on " + on_devices_->device().str());
  }
  return on_devices_.get();
}

/// Collective. All ranks work on GPUs, or none.
void ProcessGroupEspalier::join_on_devices(c10::Device device) {
  Owned<EngineGpu> gpu;
  std::exception_ptr why;
  try {
    gpu = open_gpu(terms_.engine, device);
  } catch (const std::runtime_error&) {
    why = std::current_exception();
  }
  std::uint8_t can = gpu ? 1 : 0;
  expect(jobs_->host().run({EngineCollective::all_reduce, &can, &can, 1, EngineElement::uint8, EngineOperation::min}));
  if (can == 0) {
    if (terms_.settings.device_tensors == DeviceTensors::automatic) return;
    if (why) std::rethrow_exception(why);
    throw std::runtime_error("ESPALIER_DEVICE_TENSORS=engine: another rank cannot work on its GPU");
  }
  const auto self = static_cast<std::uint32_t>(getRank());
  const auto world = static_cast<std::uint32_t>(getSize());
  std::shared_ptr<EngineJob> ranks = terms_.meet({"group/devices", self, world}, nullptr, std::move(gpu)).job;
  jobs_->add(ranks);
  on_devices_ = std::make_unique<DeviceCommunicator>(std::move(ranks), device);
}

void ProcessGroupEspalier::run(EngineCall call, const at::Tensor& send, const at::Tensor& receive) {
  if (in_use_ != nullptr) {
    in_use_->run(call, send, receive, *stage_);
    return;
  }
  call.send = send.defined() ? send.data_ptr() : nullptr;
  call.receive = receive.defined() ? receive.data_ptr() : nullptr;
  expect(jobs_->host().run(call));
}

at::Tensor ProcessGroupEspalier::scratch(std::size_t bytes, const at::Tensor& like) {
  const auto count = static_cast<std::int64_t>(bytes);
  if (!scratch_.defined() || scratch_.numel() < count || scratch_.device() != like.device()) {
    scratch_ = at::empty({count}, like.options().dtype(at::kByte));
  }
  return scratch_.narrow(0, 0, count);
}

std::uint64_t ProcessGroupEspalier::getSequenceNumberForGroup() {
  const std::lock_guard lock(mutex_);
  return sequence_;
}

std::uint32_t ProcessGroupEspalier::checked_root(const char* call, std::int64_t root) const {
  if (root < 0 || root >= getSize()) refuse_call(call, "invalid root rank: " + std::to_string(root));
  return static_cast<std::uint32_t>(root);
}

std::uint32_t ProcessGroupEspalier::checked_peer(const char* call, int peer) const {
  if (peer < 0 || peer >= getSize()) refuse_call(call, "there is no rank " + std::to_string(peer));
  if (peer == getRank()) refuse_call(call, "a rank does not send to itself");
  return static_cast<std::uint32_t>(peer);
}

ProcessGroupEspalier::Work ProcessGroupEspalier::send(Tensors& tensors, int to, int tag) {
  if (tensors.size() != 1) refuse_call("send", "requires a single-element tensor list");
  check_tensors("send", tensors);
  const std::uint32_t peer = checked_peer("send", to);
  auto work = make_message(c10d::OpType::SEND, "espalier:send", tensors, peer);
  mailroom_->send(work, staged(tensors.front()), peer, tag);
  return work;
}

ProcessGroupEspalier::Work ProcessGroupEspalier::recv(Tensors& tensors, int from, int tag) {
  if (tensors.size() != 1) refuse_call("recv", "requires a single-element tensor list");
  check_tensors("recv", tensors);
  const std::uint32_t peer = checked_peer("recv", from);
  auto work = make_message(c10d::OpType::RECV, "espalier:recv", tensors, peer);
  mailroom_->receive(work, staged(tensors.front()), peer, tag);
  return work;
}

ProcessGroupEspalier::Work ProcessGroupEspalier::recvAnysource(Tensors& tensors, int tag) {
  if (tensors.size() != 1) refuse_call("recvAnysource", "requires a single-element tensor list");
  check_tensors("recvAnysource", tensors);
  auto work = make_message(c10d::OpType::RECVANYSOURCE, "espalier:recvAnySource", tensors, std::nullopt);
  mailroom_->receive(work, staged(tensors.front()), std::nullopt, tag);
  return work;
}

ProcessGroupEspalier::Work ProcessGroupEspalier::barrier(const c10d::BarrierOptions& options) {
  return start({c10d::OpType::BARRIER, "espalier:barrier", options.timeout}, {}, {},
               std::make_shared<DeviceStage>(at::kCPU), [this](DeviceStage&) { expect(jobs_->host().barrier()); });
}

void ProcessGroupEspalier::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) {
  const auto limit = options.timeout == c10d::kUnsetTimeout ? terms_.timeout : options.timeout;
  const auto deadline = std::chrono::steady_clock::now() + limit;
  const std::string places = "espalier/" + terms_.session + "/monitored/";
  const std::string place = places + std::to_string(++monitored_barriers_);
  const auto has_come = [&](const std::string& key) {
    while (!terms_.store->check({key})) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  };
  const std::string in_time = " in " + std::to_string(limit.count()) + " ms";
  if (getRank() != 0) {
    terms_.store->set(place + "/" + std::to_string(getRank()), std::vector<std::uint8_t>{1});
    if (has_come(place + "/out")) return;
    throw std::runtime_error("Rank " + std::to_string(getRank()) +
                             " successfully reached monitoredBarrier, but received errors while waiting for send/recv "
                             "from rank 0: it let nobody through" +
                             in_time + ", and says which rank did not come");
  }
  std::string missing;
  for (int rank = 1; rank < getSize(); ++rank) {
    const std::string key = place + "/" + std::to_string(rank);
    if (!wait_all_ranks && std::chrono::steady_clock::now() >= deadline) {
      throw std::runtime_error("Rank 0 timed out in monitoredBarrier after " + std::to_string(limit.count()) +
                               " ms, before it looked for rank " + std::to_string(rank));
    }
    if (has_come(key)) {
      terms_.store->deleteKey(key);
      continue;
    }
    missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
    if (!wait_all_ranks) break;
  }
  if (!missing.empty()) {
    throw std::runtime_error((wait_all_ranks ? "Ranks " : "Rank ") + missing + " failed to pass monitoredBarrier" +
                             in_time);
  }
  terms_.store->set(place + "/out", std::vector<std::uint8_t>{1});
  if (monitored_barriers_ > 1) {  // All have come to this one, so nobody waits at the last.
    terms_.store->deleteKey(places + std::to_string(monitored_barriers_ - 1) + "/out");
  }
}

}  // namespace espalier::python
