#include "engine/communicator/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>

#include "engine/communicator/counted_plans.h"
#include "engine/communicator/group.h"
#include "engine/rendezvous/background_thread.h"

namespace espalier {

using engine::Group;
using engine::Job;

struct CallHandle::State {
  std::mutex mutex;
  std::condition_variable ended;
  std::optional<Result<void>> result;
  std::shared_ptr<Job> job;
};

namespace {

/// Ends the job whose memory ran out in a call, as far as there is memory to say so.
Result<void> fail_for_memory(Job& job) {
  job.abort("its memory ran out in a call");
  return tl::unexpected(Error{ErrorCode::unavailable, "out of memory", {}});  // Short enough to need none itself.
}

}  // namespace

class Communicator::Impl {
 public:
  Impl(std::shared_ptr<Job> joined, std::unique_ptr<Group> made) : job(std::move(joined)), group(std::move(made)) {}
  ~Impl() {
    if (pinned_token_ != nullptr) job->memory().release(pinned_token_);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  [[nodiscard]] Result<void> check_process() const {
    if (!job->is_forked()) return {};
    return fail(ErrorCode::unsupported,
                fmt::format("this process is a fork of rank {}, and no rank itself", group->self()),
                "call from the process that joined the job");
  }

  [[nodiscard]] Result<void> run(Group& target, const CallArguments& arguments) {
    if (auto checked = check_process(); !checked) return checked;
    const bool is_captured = arguments.queue != nullptr && arguments.queue->is_capturing();
    if (job->is_noting()) {
      if (is_captured) return refuse_capture();
      job->note({&target, arguments});
      return {};
    }
    job->drain();
    if (is_captured) return engine::capture_call(*job, target, arguments);
    return engine::run_call(*job, target, arguments, engine::callers_work_of(arguments));
  }

  /// Of the members themselves.
  [[nodiscard]] Result<void> run(const CallArguments& arguments) {
    const bool is_captured = arguments.queue != nullptr && arguments.queue->is_capturing();
    const bool may_be_planned = counted && arguments.has_counts() && arguments.kind == CollectiveKind::all_to_all &&
                                group->size() > 1 && !job->is_noting() && !is_captured;
    if (!may_be_planned) return run(*group, arguments);
    const auto planned =
        counted->plan(arguments, [this](Group& target, const CallArguments& call) { return run(target, call); });
    if (!planned) return tl::unexpected(planned.error());
    return *planned ? run(counted->group(), **planned) : run(*group, arguments);
  }

  static tl::unexpected<Error> refuse_capture() {
    return fail(ErrorCode::unsupported,
                "a stream that is capturing takes calls of run alone, not of start or in a group launch",
                "call run, one call after the other, or end the capture before");
  }

  /// The pair of a sender and a receiver, as a group of their own that broadcasts. Made at their first call.
  Result<Group*> pair(std::uint32_t from, std::uint32_t to) {
    std::unique_ptr<Group>& known = pairs[{from, to}];
    if (!known) {
      auto made = Group::make(job, {group->members()[from], group->members()[to]},
                              fmt::format("{}/{}>{}", group->name(), from, to), engine::broadcast_to_one);
      if (!made) return tl::unexpected(made.error());
      known = std::move(*made);
    }
    return known.get();
  }

  Result<void> send_or_receive(const void* data, std::size_t count, ElementType type, std::uint32_t from,
                               std::uint32_t to) {
    if (std::max(from, to) >= group->size() || from == to) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("rank {} cannot send to rank {} of {}", from, to, group->size()),
                  "name another rank of this communicator");
    }
    if (auto checked = check_process(); !checked) return checked;
    CallArguments arguments{CollectiveKind::broadcast, data, const_cast<void*>(data), count, type,
                            ReduceOperation::sum,      0};
    if (job->is_noting()) {  // Pairs are found at the end: ranks may note them in different orders.
      job->note({nullptr, arguments, {group->name(), from, to}, [this, from, to] { return pair(from, to); }});
      return {};
    }
    const auto target = pair(from, to);
    if (!target) return tl::unexpected(target.error());
    return run(**target, arguments);
  }

  /// Where members tell each other counts: with shared memory in one step, in a group of its own, which nobody's choice
  /// of schedules concerns; else as blocks of one count each, by the group itself. Made at the first call.
  Result<Group*> counts_group() {
    if (!group->shares_memory() || group->size() == 1) return group.get();
    if (!counts) {
      auto made = Group::make(job, group->members(), group->name() + "/counts", engine::one_block_each);
      if (!made) return tl::unexpected(made.error());
      counts = std::move(*made);
    }
    return counts.get();
  }

  std::shared_ptr<Job> job;
  std::unique_ptr<Group> group;
  std::unique_ptr<Group> counts;
  std::unique_ptr<engine::CountedPlans> counted;  ///< Null: all_to_alls with counts are by direct messages.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::unique_ptr<Group>> pairs;

  /// The byte that ranks combine in a barrier, where the device reaches it.
  [[nodiscard]] Result<std::uint8_t*> barrier_token() {
    if (job->device().reaches_unpinned()) return &token_;
    if (pinned_token_ == nullptr) {
      const auto memory = job->memory().allocate(1, engine::MemorySpace::pinned);
      if (!memory) return tl::unexpected(memory.error());
      pinned_token_ = *memory;
    }
    return reinterpret_cast<std::uint8_t*>(pinned_token_);
  }

 private:
  std::uint8_t token_ = 0;
  std::byte* pinned_token_ = nullptr;
};

Communicator::Communicator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Communicator::~Communicator() {
  if (impl_->job->is_forked()) {
    [[maybe_unused]] const Impl* parents = impl_.release();  // Only the rank itself may tidy up what others see.
    return;
  }
  impl_->job->drain();
}

Result<std::unique_ptr<Communicator>> Communicator::join(JobOptions options, ScheduleSource schedules) {
  auto job = Job::join(std::move(options));
  if (!job) return tl::unexpected(job.error());
  std::vector<std::uint32_t> all((*job)->world());
  std::iota(all.begin(), all.end(), 0U);
  auto group = Group::make(*job, std::move(all), "world", std::move(schedules));
  if (!group) return tl::unexpected(group.error());
  return std::unique_ptr<Communicator>(new Communicator(std::make_unique<Impl>(std::move(*job), std::move(*group))));
}

Result<std::unique_ptr<Communicator>> Communicator::split(std::span<const std::uint32_t> members, std::string name,
                                                          ScheduleSource schedules) {
  std::vector<std::uint32_t> ranks;
  for (const std::uint32_t member : members) {
    if (member >= size()) {
      return fail(ErrorCode::invalid_input, fmt::format("there is no rank {} in {}", member, this->name()));
    }
    ranks.push_back(impl_->group->members()[member]);
  }
  auto group =
      Group::make(impl_->job, std::move(ranks), fmt::format("{}/{}", this->name(), name), std::move(schedules));
  if (!group) return tl::unexpected(group.error());
  return std::unique_ptr<Communicator>(new Communicator(std::make_unique<Impl>(impl_->job, std::move(*group))));
}

std::uint32_t Communicator::rank() const { return impl_->group->self(); }
std::uint32_t Communicator::size() const { return impl_->group->size(); }
const std::string& Communicator::name() const { return impl_->group->name(); }
const std::vector<PeerTransport>& Communicator::transports() const { return impl_->job->peer_transports(); }
engine::rendezvous::ControlPlane& Communicator::control() { return impl_->job->control(); }

Result<void*> Communicator::allocate(std::size_t bytes, engine::MemorySpace space) {
  if (bytes > static_cast<std::size_t>(max_message_size.count)) {
    return fail(ErrorCode::too_large, fmt::format("a buffer of {} bytes is past the limit of 1 PiB", bytes));
  }
  if (auto checked = impl_->check_process(); !checked) return tl::unexpected(checked.error());
  const auto memory = impl_->job->memory().allocate_for_caller(static_cast<std::int64_t>(bytes), space);
  if (!memory) return tl::unexpected(memory.error());
  return *memory;
}

void Communicator::free(void* memory) {
  // A child's copy of it is nothing that its peers know of.
  if (memory != nullptr && !impl_->job->is_forked()) impl_->job->memory().release(memory);
}

Result<void> Communicator::register_buffer(void* data, std::size_t bytes, engine::MemorySpace space) {
  if (bytes > static_cast<std::size_t>(max_message_size.count)) {
    return fail(ErrorCode::too_large, fmt::format("a buffer of {} bytes is past the limit of 1 PiB", bytes));
  }
  if (auto checked = impl_->check_process(); !checked) return checked;
  return impl_->job->memory().add(data, static_cast<std::int64_t>(bytes), space);
}

Result<void> Communicator::deregister_buffer(void* data) {
  if (auto checked = impl_->check_process(); !checked) return checked;
  const engine::MemoryPlace place = impl_->job->memory().find(data, 0);
  if (place.memory == nullptr || place.offset != 0) {
    return fail(ErrorCode::invalid_input, fmt::format("no registered buffer begins at {}", fmt::ptr(data)),
                "deregister what register_buffer took, by its first byte");
  }
  impl_->job->memory().release(data);
  return {};
}

Result<std::unique_ptr<engine::DeviceQueue>> Communicator::make_queue() { return impl_->job->device().make_queue(); }

Result<std::unique_ptr<engine::DeviceQueue>> Communicator::adopt_stream(void* stream) {
  return impl_->job->device().adopt_stream(stream);
}

Result<void> Communicator::run(const CallArguments& arguments) { return impl_->run(arguments); }

void Communicator::plan_counts(ScheduleSource schedules) {
  impl_->counted = std::make_unique<engine::CountedPlans>(impl_->job, *impl_->group, std::move(schedules));
}

Result<CallHandle> Communicator::start(const CallArguments& arguments) {
  if (auto checked = impl_->check_process(); !checked) return tl::unexpected(checked.error());
  if (impl_->job->is_noting()) {
    return fail(ErrorCode::unsupported, "calls that are started cannot be part of a group launch",
                "use run between group_begin and group_end");
  }
  if (arguments.queue != nullptr && arguments.queue->is_capturing()) return Impl::refuse_capture();
  auto state = std::make_shared<CallHandle::State>();
  state->job = impl_->job;
  const engine::QueuePoint before = engine::callers_work_of(arguments);
  const std::uint64_t after = before.queue == nullptr ? 0 : before.queue->hold();
  impl_->job->enqueue([state, job = impl_->job.get(), group = impl_->group.get(), arguments, before, after] {
    Result<void> result;
    const bool has_run =
        engine::rendezvous::has_memory_for([&] { result = engine::run_call(*job, *group, arguments, before); });
    if (!has_run) result = fail_for_memory(*job);
    {
      const std::lock_guard lock(state->mutex);
      state->result = std::move(result);
      state->ended.notify_all();
    }
    if (before.queue != nullptr) before.queue->release(after);
  });
  return CallHandle(std::move(state));
}

bool CallHandle::test() const {
  const std::lock_guard lock(state_->mutex);
  return state_->result.has_value();
}

Result<void> CallHandle::wait() {
  std::unique_lock lock(state_->mutex);
  state_->ended.wait(lock, [this] { return state_->result.has_value(); });
  return *state_->result;
}

void CallHandle::abort(std::string_view reason) { state_->job->abort(reason); }

Result<void> Communicator::all_reduce(const void* send, void* receive, std::size_t count, ElementType type,
                                      ReduceOperation operation) {
  return run({CollectiveKind::all_reduce, send, receive, count, type, operation, 0});
}

Result<void> Communicator::reduce(const void* send, void* receive, std::size_t count, ElementType type,
                                  ReduceOperation operation, std::uint32_t root) {
  return run({CollectiveKind::reduce, send, receive, count, type, operation, root});
}

Result<void> Communicator::broadcast(const void* send, void* receive, std::size_t count, ElementType type,
                                     std::uint32_t root) {
  return run({CollectiveKind::broadcast, send, receive, count, type, ReduceOperation::sum, root});
}

Result<void> Communicator::all_gather(const void* send, void* receive, std::size_t count_per_rank, ElementType type) {
  return run({CollectiveKind::all_gather, send, receive, count_per_rank * size(), type, ReduceOperation::sum, 0});
}

Result<void> Communicator::reduce_scatter(const void* send, void* receive, std::size_t count_per_rank, ElementType type,
                                          ReduceOperation operation) {
  return run({CollectiveKind::reduce_scatter, send, receive, count_per_rank * size(), type, operation, 0});
}

Result<void> Communicator::all_to_all(const void* send, void* receive, std::size_t count_per_rank, ElementType type) {
  return run({CollectiveKind::all_to_all, send, receive, count_per_rank * size(), type, ReduceOperation::sum, 0});
}

Result<void> Communicator::all_to_all(const void* send, const BlockCounts& send_blocks, void* receive,
                                      const BlockCounts& receive_blocks, ElementType type) {
  CallArguments arguments{CollectiveKind::all_to_all, send, receive, 0, type};
  arguments.send_blocks = send_blocks;
  arguments.receive_blocks = receive_blocks;
  return run(arguments);
}

Result<void> Communicator::exchange_counts(std::span<const std::int64_t> sent, std::span<std::int64_t> received) {
  if (sent.size() != size() || received.size() != size()) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{} counts to send and room for {} among {} ranks", sent.size(), received.size(), size()),
                "give a count for each rank");
  }
  if (auto checked = impl_->check_process(); !checked) return checked;
  if (impl_->job->is_noting()) {
    return fail(ErrorCode::unsupported, "counts are not exchanged within a group launch",
                "exchange them before group_begin");
  }
  const auto target = impl_->counts_group();
  if (!target) return tl::unexpected(target.error());
  CallArguments arguments{CollectiveKind::all_to_all, sent.data(), received.data(), size(), ElementType::int64};
  const std::vector<std::int64_t> ones(*target == impl_->group.get() ? size() : 0, 1);
  arguments.send_blocks = arguments.receive_blocks = {ones, {}};
  return impl_->run(**target, arguments);
}

Result<void> Communicator::gather(const void* send, void* receive, std::size_t count_per_rank, ElementType type,
                                  std::uint32_t root) {
  return run({CollectiveKind::gather, send, receive, count_per_rank * size(), type, ReduceOperation::sum, root});
}

Result<void> Communicator::scatter(const void* send, void* receive, std::size_t count_per_rank, ElementType type,
                                   std::uint32_t root) {
  return run({CollectiveKind::scatter, send, receive, count_per_rank * size(), type, ReduceOperation::sum, root});
}

Result<void> Communicator::send(const void* data, std::size_t count, ElementType type, std::uint32_t peer) {
  return impl_->send_or_receive(data, count, type, rank(), peer);
}

Result<void> Communicator::receive(void* data, std::size_t count, ElementType type, std::uint32_t peer) {
  return impl_->send_or_receive(data, count, type, peer, rank());
}

Result<void> Communicator::barrier() {
  // With addresses, connections lead where the routes of one plan do, and the plan need not be an all_reduce.
  if (const JobOptions& options = impl_->job->options(); !options.routes.empty()) {
    impl_->job->drain();
    return control().barrier("espalier/barrier/" + name(), impl_->group->members(), options.timeout);
  }
  const auto token = impl_->barrier_token();
  if (!token) return tl::unexpected(token.error());
  return run({CollectiveKind::all_reduce, *token, *token, 1, ElementType::uint8, ReduceOperation::max, 0});
}

void Communicator::group_begin() { impl_->job->begin_noting(); }

Result<void> Communicator::group_end() {
  std::vector<engine::NotedCall> calls = impl_->job->end_noting();
  impl_->job->drain();
  // The two ranks of a new pair wait for each other: all ranks go through them in one order.
  std::vector<engine::NotedCall*> pairs;
  for (engine::NotedCall& call : calls) {
    if (call.group == nullptr) pairs.push_back(&call);
  }
  std::ranges::stable_sort(pairs, {}, &engine::NotedCall::pair);
  for (engine::NotedCall* call : pairs) {
    const auto found = call->find_pair();
    if (!found) return tl::unexpected(found.error());
    call->group = *found;
  }
  return engine::run_noted(*impl_->job, std::move(calls));
}

void Communicator::abort(std::string_view reason) { impl_->job->abort(reason); }

void Communicator::record(engine::Recorder* recorder) {
  impl_->job->drain();  // Calls that were started use the group on the job's thread.
  impl_->group->record(recorder);
}

Result<void> Communicator::check_captured() {
  impl_->job->drain();  // As above.
  return impl_->group->check_captured();
}

Result<SourcedSchedule> Communicator::schedule_of(const CallArguments& arguments) {
  impl_->job->drain();  // As above.
  const auto prepared = impl_->group->prepare(arguments);
  if (!prepared) return tl::unexpected(prepared.error());
  return SourcedSchedule{(*prepared)->source.schedule, (*prepared)->chunk, false, (*prepared)->source.ahead};
}

}  // namespace espalier
