#include "engine/communicator/group.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <tuple>

#include "base/check.h"
#include "base/fnv.h"
#include "engine/executor/clock.h"
#include "engine/executor/run_calls.h"
#include "schedule/verify/verify.h"

namespace espalier::engine {
namespace {

/// More chunks than this in a transfer only cost.
constexpr std::int64_t max_default_chunks = 4096;

std::uint64_t hash_of(std::string_view text, std::span<const std::uint32_t> members) {
  Fnv1a hash;
  hash.add_text(text);
  for (const std::uint32_t member : members) hash.add_number(member);
  return hash.value();
}

/// 0 for equal shards; else a few digits, for people also see them.
std::uint64_t hash_of(std::span<const std::int64_t> shares) {
  if (shares.empty()) return 0;
  Fnv1a hash;
  for (const std::int64_t share : shares) hash.add_number(static_cast<std::uint64_t>(share));
  return std::max<std::uint64_t>(1, (hash.value() ^ hash.value() >> 32U) & 0xFFFFFFFFU);
}

/// The schedule of a rank alone.
SourcedSchedule nothing_to_move(const Collective& collective) {
  auto schedule = std::make_shared<Schedule>(collective, "alone", "none");
  schedule->units = 1;
  const PartRanks ranks = ranks_of_part(collective, 0);
  schedule->slices.push_back({0, 1, ranks.rank, ranks.to});
  return {std::move(schedule), Bytes{}};
}

constexpr const char* mismatch_help =
    "call the same collectives with the same arguments in the same order on every rank";

}  // namespace

bool is_in_place(const CallArguments& arguments, const RankProgram& program) {
  const auto* send = static_cast<const std::byte*>(arguments.send);
  const auto* receive = static_cast<const std::byte*>(arguments.receive);
  if (program.send_bytes == 0 || program.receive_bytes == 0) return false;
  return send < receive + program.receive_bytes && receive < send + program.send_bytes;
}

Group::Group(std::shared_ptr<Job> job, std::vector<std::uint32_t> members, std::string name, ScheduleSource schedules)
    : job_(std::move(job)),
      members_(std::move(members)),
      self_(static_cast<std::uint32_t>(std::ranges::find(members_, job_->rank()) - members_.begin())),
      name_(std::move(name)),
      id_(job_->number_group(hash_of(name_, members_))),
      schedules_(std::move(schedules)),
      streams_(members_, self_) {}

Result<std::unique_ptr<Group>> Group::make(std::shared_ptr<Job> job, std::vector<std::uint32_t> members,
                                           std::string name, ScheduleSource schedules) {
  std::vector<std::uint32_t> sorted = members;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end() || !std::ranges::binary_search(sorted, job->rank())) {
    return fail(ErrorCode::invalid_input,
                fmt::format("the members of {} are no set of ranks that has rank {} in it", name, job->rank()),
                "every member makes the group, with the same list, each rank once");
  }
  std::unique_ptr<Group> group(new Group(std::move(job), std::move(members), std::move(name), std::move(schedules)));
  if (auto shared = group->join_transports(); !shared) {
    group->job_->abort(shared.error().message);
    return tl::unexpected(shared.error());
  }
  return group;
}

Group::~Group() {
  for (const auto& transport : transports_) transport->leave();
  settle();
  prepared_.clear();
  captured_.clear();
  for (const Scratch* scratch : {&host_scratch_, &device_scratch_, &host_input_, &device_input_}) {
    if (scratch->data != nullptr) job_->memory().release(scratch->data);
  }
}

void Group::settle() {
  const std::int64_t begun = now_ns();
  const auto is_settled = [&] {
    return streams_.is_settled() &&
           std::ranges::all_of(transports_, [](const auto& transport) { return transport->is_settled(); });
  };
  while (!is_settled()) {
    if (job_->control().has_failed() || job_->is_aborted() || is_too_late(begun)) return;
    for (Transport* transport : job_->progressing()) transport->progress();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

Result<void> Group::join_transports() {
  std::vector<GroupTransport*> by_member(size());
  for (const auto& transport : job_->transports()) {
    GroupInfo info{name_, id_, members_, self_, std::vector<bool>(size()), job_->options().timeout};
    for (std::uint32_t member = 0; member < size(); ++member) {
      info.is_reached[member] =
          member != self_ && job_->peer_transports()[members_[member]].transport == transport->name();
    }
    auto joined = transport->join(info);
    if (!joined) return tl::unexpected(joined.error());
    transports_.push_back(std::move(*joined));
    for (std::uint32_t member = 0; member < size(); ++member) {
      if (info.is_reached[member]) by_member[member] = transports_.back().get();
    }
  }
  streams_.set_transports(std::move(by_member));
  return {};
}

Bytes Group::default_chunk() const {
  Bytes usual{};
  for (const auto& transport : transports_) {  // Those of all members: they have to come to the same.
    usual = std::max(usual, transport->default_chunk());
    if (transport->compares_all_calls()) break;
  }
  return usual;
}

Result<PreparedCall*> Group::prepare(const CallArguments& arguments) {
  if (arguments.has_counts()) {
    return fail(ErrorCode::unsupported, "an all_to_all with counts per peer has no schedule and cannot be captured",
                "call run or start, outside of a capture");
  }
  const std::uint32_t root = has_root(arguments.kind) ? arguments.root : 0;
  const std::int64_t element_size = size_of(arguments.type);
  Shape shape{arguments.kind, root, arguments.count, element_size, arguments.shares};
  if (last_ != prepared_.end() && last_->first == shape) {
    last_->second->last_use = sequence_;
    return last_->second.get();
  }
  if (const auto known = prepared_.find(shape); known != prepared_.end()) {
    last_ = known;
    known->second->last_use = sequence_;
    return known->second.get();
  }
  const auto collective =
      make_collective(arguments.kind, size(), has_root(arguments.kind) ? std::optional(Rank(root)) : std::nullopt,
                      {arguments.shares.begin(), arguments.shares.end()});
  if (!collective) return tl::unexpected(collective.error());
  if (arguments.count > static_cast<std::size_t>(max_message_size.count / element_size)) {
    return fail(ErrorCode::too_large,
                fmt::format("a message of {} elements is past the limit of 1 PiB", arguments.count));
  }
  const Bytes bytes{static_cast<std::int64_t>(arguments.count) * element_size};
  auto sourced = size() == 1 ? Result<SourcedSchedule>(nothing_to_move(*collective)) : schedules_(*collective, bytes);
  if (!sourced) return tl::unexpected(sourced.error());
  if (!(sourced->schedule->collective == *collective)) {
    return fail(ErrorCode::invalid_input,
                fmt::format("the schedule is an {} of {} ranks, the call an {} of {}",
                            to_string(sourced->schedule->collective.kind), sourced->schedule->collective.rank_count,
                            to_string(collective->kind), size()));
  }
  const bool is_known = hashes_.contains(sourced->schedule.get());
  if (!is_known && sourced->schedule->relays.empty()) {  // compile() refuses relays.
    if (auto proven = require_promise(*sourced->schedule, "the schedule of this call"); !proven) {
      return tl::unexpected(proven.error());
    }
  }
  const auto layout = Layout::make(*sourced->schedule, bytes, element_size);
  if (!layout) return tl::unexpected(layout.error());
  auto prepared = std::make_unique<PreparedCall>();
  prepared->source = std::move(*sourced);
  const Schedule& schedule = *prepared->source.schedule;
  prepared->chunk = prepared->source.chunk;
  if (prepared->chunk.count == 0) {
    prepared->chunk.count = std::max(default_chunk().count, bytes.count / max_default_chunks);
  }
  const Pacing pacing{prepared->chunk, prepared->source.ahead};
  auto program = compile(schedule, *layout, pacing, Rank(self_),
                         [&](const Transfer& transfer) { return streams_.choose_stream(schedule, transfer); });
  if (!program) return tl::unexpected(program.error());
  prepared->program = std::move(*program);
  const auto hash = hashes_.try_emplace(prepared->source.schedule.get(), 0).first;
  if (!is_known) hash->second = hash_of(schedule);
  for (const auto& transport : transports_) {
    if (prepared->whole) break;
    prepared->whole = transport->make_whole_call(
        {schedule, *layout, pacing, prepared->program, arguments.kind, bytes, prepared->source.may_be_replaced},
        job_->queue());
  }
  // Members that carry it out differently have to notice, but for those that go on with streams between them.
  const bool is_whole = prepared->whole && !prepared->whole->leaves_streams();
  prepared->schedule_hash = is_whole ? ~hash->second : hash->second;
  prepared->last_use = sequence_;
  prepared->shares.assign(arguments.shares.begin(), arguments.shares.end());
  prepared->shares_hash = hash_of(collective->shares);
  shape.shares = prepared->shares;
  if (prepared_.size() == max_prepared) forget_oldest();
  last_ = prepared_.emplace(shape, std::move(prepared)).first;
  return last_->second.get();
}

void Group::forget_oldest() {
  const auto oldest = std::ranges::min_element(prepared_, {}, [](const auto& entry) { return entry.second->last_use; });
  const std::shared_ptr<const Schedule> schedule = oldest->second->source.schedule;
  prepared_.erase(oldest);
  last_ = prepared_.end();
  const auto uses_it = [&](const auto& entry) { return entry.second->source.schedule == schedule; };
  if (std::ranges::none_of(prepared_, uses_it)) hashes_.erase(schedule.get());
}

bool Group::shares_memory() const {
  return std::ranges::any_of(transports_, [](const auto& transport) { return transport->compares_all_calls(); });
}

Result<void> Group::agree(const CallHeader& header) {
  if (shares_memory()) return {};
  const std::string_view own(reinterpret_cast<const char*>(&header), sizeof(header));
  const auto calls = job_->control().exchange("espalier/call/" + name_, members_, own, job_->options().timeout);
  if (!calls) return tl::unexpected(calls.error());
  for (std::uint32_t member = 0; member < size(); ++member) {
    CallHeader theirs;
    if ((*calls)[member].size() != sizeof(theirs)) return fail(ErrorCode::unavailable, "a member runs another version");
    std::memcpy(&theirs, (*calls)[member].data(), sizeof(theirs));
    if (theirs == header) continue;
    return fail(ErrorCode::invalid_input, describe_mismatch(job_->rank(), header, members_[member], theirs),
                mismatch_help);
  }
  return {};
}

Result<void> Group::connect(PreparedCall& call) {
  auto ends = streams_.connect(call.program, job_->options().timeout);
  if (!ends) return tl::unexpected(ends.error());
  call.execution = std::make_unique<Execution>(call.program, std::move(*ends), job_->queue());
  return {};
}

Result<void> Group::check(const CallArguments& arguments, const RankProgram& program) const {
  const auto* send = static_cast<const std::byte*>(arguments.send);
  const auto* receive = static_cast<const std::byte*>(arguments.receive);
  if ((send == nullptr && program.send_bytes > 0) || (receive == nullptr && program.receive_bytes > 0)) {
    return fail(
        ErrorCode::invalid_input,
        fmt::format("{} of {} {} on rank {} has no {} buffer", to_string(arguments.kind), arguments.count,
                    to_string(arguments.type), self_, send == nullptr && program.send_bytes > 0 ? "send" : "receive"));
  }
  if (program.has_counts || !is_in_place(arguments, program)) return {};
  if (!program.in_place_shift) {
    return fail(ErrorCode::unsupported, fmt::format("{} cannot work in place", to_string(arguments.kind)),
                "use separate send and receive buffers");
  }
  if (send - receive == *program.in_place_shift) return {};
  return fail(ErrorCode::invalid_input,
              fmt::format("the send and receive buffers of {} overlap", to_string(arguments.kind)),
              fmt::format("in place, the send buffer of rank {} begins {} bytes from the receive buffer", self_,
                          *program.in_place_shift));
}

Result<void> Group::reserve(Scratch& scratch, std::int64_t bytes, MemorySpace space) {
  if (bytes <= scratch.bytes) return {};
  if (scratch.data != nullptr) job_->memory().release(scratch.data);
  scratch = {};
  const auto memory = job_->memory().allocate(bytes, space);
  if (!memory) return tl::unexpected(memory.error());
  scratch.data = *memory;
  scratch.bytes = bytes;
  return {};
}

Result<void> Group::await_window() {
  for (const auto& transport : transports_) {
    if (transport->may_enter(sequence_)) continue;
    const std::int64_t begun = now_ns();
    while (!transport->may_enter(sequence_)) {
      if (auto waited = wait_a_moment(); !waited) return waited;
      const auto straggler = transport->find_straggler(sequence_);
      if (!straggler) return tl::unexpected(straggler.error());
      if (is_too_late(begun)) {
        return fail(ErrorCode::unavailable,
                    fmt::format("rank {} is too many calls behind and did not come for {:.1f} s", *straggler,
                                static_cast<double>(job_->options().timeout.count()) / 1000),
                    "look at that rank; raise --timeout if it may be that slow");
      }
    }
    job_->waiting().reset();
  }
  return {};
}

Result<void> Group::wait_a_moment() {
  for (Transport* transport : job_->progressing()) transport->progress();
  if (job_->waiting().next() == Waiting::Action::sleep) {
    const timespec moment{0, 50'000};
    nanosleep(&moment, nullptr);
  }
  if (job_->control().has_failed()) return tl::unexpected(job_->control().failure_error());
  return {};
}

bool Group::is_too_late(std::int64_t begun_ns) const {
  return now_ns() - begun_ns > std::chrono::nanoseconds(job_->options().timeout).count();
}

Result<void> Group::await_device(QueuePoint point) {
  std::int64_t begun = 0;
  while (!point.queue->is_done(point.mark)) {
    const std::string_view device = point.queue->device().name();
    if (point.queue->has_failed()) {
      const Error& error = point.queue->error();
      return fail(error.code, fmt::format("the device '{}' failed: {}", device, error.message), error.help);
    }
    if (begun == 0) begun = now_ns();
    if (auto waited = wait_a_moment(); !waited) return waited;
    if (is_too_late(begun)) {
      return fail(ErrorCode::unavailable,
                  fmt::format("the device '{}' of rank {} did not finish its work within {:.1f} s", device,
                              job_->rank(), static_cast<double>(job_->options().timeout.count()) / 1000),
                  "look at that device; raise --timeout if it may be that slow");
    }
  }
  job_->waiting().reset();
  return {};
}

const MemoryPlace& Group::place_of(const void* data, std::int64_t bytes, FoundPlace& last) const {
  static constexpr MemoryPlace none{};
  if (bytes == 0) return none;
  const std::uint64_t generation = job_->memory().generation();
  if (last.data != data || last.bytes != bytes || last.generation != generation) {
    last = {data, bytes, generation, job_->memory().find(data, bytes)};
  }
  return last.place;
}

Result<void> Group::check_reach(const CallArguments& arguments, const RankProgram& program,
                                const Buffers& buffers) const {
  const Device& device = job_->device();
  if (device.reaches_unpinned()) return {};
  for (const auto& [place, data, bytes] :
       {std::tuple(Place::send, arguments.send, program.send_bytes),
        std::tuple(Place::receive, static_cast<const void*>(arguments.receive), program.receive_bytes)}) {
    if (bytes == 0 || buffers.registered[static_cast<std::size_t>(place)].memory != nullptr) continue;
    return fail(ErrorCode::invalid_input,
                fmt::format("device '{}' does not reach the {} bytes at {}", device.name(), bytes, fmt::ptr(data)),
                "let the communicator allocate the buffer, or register it");
  }
  return {};
}

Result<Buffers> Group::find_buffers(const CallArguments& arguments, const RankProgram& program) {
  Buffers buffers;
  buffers.base = {const_cast<std::byte*>(static_cast<const std::byte*>(arguments.send)),
                  static_cast<std::byte*>(arguments.receive), nullptr};
  buffers.registered = {place_of(arguments.send, program.send_bytes, found_send_),
                        place_of(arguments.receive, program.receive_bytes, found_receive_), MemoryPlace{}};
  if (auto reached = check_reach(arguments, program, buffers); !reached) return tl::unexpected(reached.error());
  if (program.scratch_bytes == 0) return buffers;
  const bool is_on_host = std::ranges::all_of(buffers.registered, &MemoryPlace::is_on_host);
  Scratch& scratch = is_on_host ? host_scratch_ : device_scratch_;
  const MemorySpace space = is_on_host ? MemorySpace::host : MemorySpace::device;
  if (auto reserved = reserve(scratch, program.scratch_bytes, space); !reserved) {
    return tl::unexpected(reserved.error());
  }
  const auto at = static_cast<std::size_t>(Place::scratch);
  buffers.base[at] = scratch.data;
  buffers.registered[at] = place_of(scratch.data, program.scratch_bytes, scratch.found);
  return buffers;
}

Result<void> Group::keep_input(const RankProgram& program, Buffers& buffers) {
  const auto at = static_cast<std::size_t>(Place::send);
  const bool is_on_host = buffers.registered[at].is_on_host();
  Scratch& kept = is_on_host ? host_input_ : device_input_;
  const MemorySpace space = is_on_host ? MemorySpace::host : MemorySpace::device;
  if (auto reserved = reserve(kept, program.send_bytes, space); !reserved) return reserved;
  DeviceQueue& queue = job_->queue();
  queue.copy(kept.data, buffers.base[at], static_cast<std::size_t>(program.send_bytes));
  if (auto done = await_device({&queue, queue.mark()}); !done) return done;
  buffers.base[at] = kept.data;
  buffers.registered[at] = place_of(kept.data, program.send_bytes, kept.found);
  return {};
}

Error Group::in_call(const CallHeader& header, Error error) const {
  error.message = fmt::format("{} (group {}, rank {}): {}", describe(header), name_, job_->rank(), error.message);
  return error;
}

std::string Group::describe_running() const { return fmt::format("{} (group {})", describe(running_header_), name_); }

CallHeader Group::header_of(const CallArguments& arguments) {
  CallHeader header;
  header.sequence = ++sequence_;
  header.count = arguments.has_counts() ? 0 : arguments.count;
  header.has_counts = arguments.has_counts() ? 1 : 0;
  header.root = has_root(arguments.kind) ? arguments.root : UINT32_MAX;
  header.kind = arguments.kind;
  header.type = arguments.type;
  header.operation = reduces(arguments.kind) ? arguments.operation : ReduceOperation::sum;
  return header;
}

Result<RunningCall> Group::begin(const CallArguments& arguments, QueuePoint callers_work) {
  CallHeader header = header_of(arguments);
  auto begun = begin(arguments, callers_work, header);
  if (!begun) return tl::unexpected(in_call(header, std::move(begun.error())));
  return begun;
}

Result<RunningCall> Group::begin(const CallArguments& called, QueuePoint callers_work, CallHeader& header) {
  if (job_->control().has_failed()) return tl::unexpected(job_->control().failure_error());
  if (job_->is_aborted()) return fail(ErrorCode::unavailable, "the job failed before", "join a new job");
  CallArguments arguments = called;
  const auto prepared = called.has_counts() ? prepare_direct(arguments, callers_work) : prepare(arguments);
  if (!prepared) return tl::unexpected(prepared.error());
  PreparedCall& call = **prepared;
  header.schedule = call.schedule_hash;
  header.chunk = static_cast<std::uint64_t>(call.chunk.count);
  header.shares = call.shares_hash;
  if (auto checked = check(arguments, call.program); !checked) return tl::unexpected(checked.error());
  auto buffers = find_buffers(arguments, call.program);
  if (!buffers) return tl::unexpected(buffers.error());
  if (!call.execution) {
    if (auto agreed = agree(header); !agreed) return tl::unexpected(agreed.error());
    if (auto connected = connect(call); !connected) return tl::unexpected(connected.error());
  }
  if (auto open = await_window(); !open) return tl::unexpected(open.error());
  if (callers_work.queue != nullptr) {  // Peers may touch the buffers as soon as this rank is in the call.
    if (auto done = await_device(callers_work); !done) return tl::unexpected(done.error());
  }
  if (call.program.keeps_input && is_in_place(arguments, call.program)) {
    if (auto kept = keep_input(call.program, *buffers); !kept) return tl::unexpected(kept.error());
  }
  running_ = &call;
  running_header_ = header;
  // The transports come last: what is written after stores that wait for another core's cache waits with them.
  if (call.whole) {
    auto begun = call.execution->begin_whole(header, *buffers, recorder_, *call.whole);
    if (!begun) return tl::unexpected(begun.error());
  } else {
    call.execution->begin(header, *buffers, recorder_);
    for (const auto& transport : transports_) transport->enter(call.execution->call());
  }
  return RunningCall{call.execution.get(), name_, members_, transports_};
}

void Group::abandon() {
  if (running_ != nullptr && running_->whole) running_->whole->abandon();
}

Result<void> Group::finish(const CallArguments& arguments) {
  PreparedCall& call = *std::exchange(running_, nullptr);
  call.execution->close();
  const bool is_divided = arguments.operation == ReduceOperation::avg && reduces(arguments.kind);
  if (!is_divided || call.program.receive_bytes == 0) return {};
  const auto elements = static_cast<std::size_t>(call.program.receive_bytes / call.program.element_size);
  DeviceQueue& queue = job_->queue();
  queue.divide(arguments.type, arguments.receive, elements, size());
  if (auto done = await_device({&queue, queue.mark()}); !done) {
    return tl::unexpected(in_call(running_header_, std::move(done.error())));
  }
  return {};
}

Result<SourcedSchedule> broadcast_to_one(const Collective& collective, Bytes) {
  auto schedule = std::make_shared<Schedule>(collective, "pair", "send");
  schedule->units = 1;
  schedule->slices.push_back({0, 1, {}, {}});
  const RouteId route = schedule->add_route(Rank(0), Rank(1), {});
  schedule->add_transfer(route, SliceId(0), 1, Action::copy, ChannelId(0));
  return SourcedSchedule{std::move(schedule), Bytes{}};
}

}  // namespace espalier::engine
