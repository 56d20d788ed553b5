#include "engine/communicator/group.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/check.h"
#include "base/fnv.h"
#include "engine/executor/clock.h"
#include "engine/executor/run_calls.h"

namespace espalier::engine {
namespace {

/// Chunks that fit the cache with those of several peers, and chunks that keep a socket busy.
constexpr Bytes default_shm_chunk{std::int64_t{128} << 10};
constexpr Bytes default_tcp_chunk{std::int64_t{512} << 10};
/// More chunks than this in a transfer only cost.
constexpr std::int64_t most_default_chunks = 4096;

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

/// What a member tells the others when a group is made.
struct ControlPlace {
  SharedBufferId id;
  std::uint32_t local_members = 0;  ///< That it shares memory with, itself among them.
  std::uint32_t padding = 0;
};

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

Group::Group(std::shared_ptr<Job> job, std::vector<std::uint32_t> members, std::string name, ScheduleSource schedules)
    : job_(std::move(job)),
      members_(std::move(members)),
      self_(static_cast<std::uint32_t>(std::ranges::find(members_, job_->rank()) - members_.begin())),
      name_(std::move(name)),
      id_(job_->number_group(hash_of(name_, members_))),
      schedules_(std::move(schedules)),
      streams_(*job_, id_, members_, self_) {}

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
  if (auto shared = group->share_control(); !shared) {
    group->job_->abort(shared.error().message);
    return tl::unexpected(shared.error());
  }
  return group;
}

Group::~Group() {
  if (!control_.id.is_none()) {
    reinterpret_cast<SharedControl*>(control_.data)->has_left.store(1, std::memory_order_release);
    for (const Neighbour& neighbour : neighbours_) job_->domain().doorbell_of(neighbour.rank).ring();
  }
  streams_.settle();
  settle_exchanges();
  prepared_.clear();
  if (!control_.id.is_none()) job_->domain().free(control_.id);
  if (!scratch_.id.is_none()) job_->domain().free(scratch_.id);
  if (!inputs_.id.is_none()) job_->domain().free(inputs_.id);
  if (!blocks_.id.is_none()) job_->domain().free(blocks_.id);
}

void Group::settle_exchanges() {
  const std::int64_t begun = now_ns();
  for (const Neighbour& neighbour : neighbours_) {
    const auto has_read = [&] {
      return neighbour.control->exchanged.load(std::memory_order_acquire) >= last_exchange_ ||
             neighbour.control->has_left.load(std::memory_order_acquire) != 0;
    };
    while (!has_read()) {
      if (job_->control().has_failed() || job_->is_aborted() || is_too_late(begun)) return;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

Result<void> Group::share_control() {
  auto control = job_->domain().allocate(SharedControl::bytes(size()));
  if (!control) return tl::unexpected(control.error());
  control_ = *control;
  const auto local_members = static_cast<std::uint32_t>(
      std::ranges::count_if(members_, [&](std::uint32_t rank) { return job_->shares_memory_with(rank); }));
  const ControlPlace own_place{control_.id, local_members};
  const std::string_view own(reinterpret_cast<const char*>(&own_place), sizeof(own_place));
  const auto places = job_->control().exchange("espalier/group/" + name_, members_, own, job_->options().timeout);
  if (!places) return tl::unexpected(places.error());
  std::vector<std::unique_ptr<ShmPeer>> peers(members_.size());
  all_share_memory_ = local_members == size();
  for (std::uint32_t member = 0; member < members_.size(); ++member) {
    ControlPlace place;
    if ((*places)[member].size() != sizeof(place)) return fail(ErrorCode::unavailable, "a member runs another version");
    std::memcpy(&place, (*places)[member].data(), sizeof(place));
    all_share_memory_ = all_share_memory_ && place.local_members == size();
    if (member == self_ || !job_->shares_memory_with(members_[member])) continue;
    auto memory = job_->domain().hold(members_[member], place.id);
    if (!memory) return tl::unexpected(memory.error());
    auto& theirs = *reinterpret_cast<SharedControl*>((*memory)->data());
    neighbours_.push_back({members_[member], &theirs, std::move(*memory)});
    peers[member] = std::make_unique<ShmPeer>(
        job_->domain(), ShmPeer::Place{job_->rank(), self_}, ShmPeer::Place{members_[member], member}, local_members,
        job_->is_oversubscribed(), *reinterpret_cast<SharedControl*>(control_.data), theirs);
  }
  streams_.set_shm_peers(std::move(peers));
  // Who is done early may leave, and take its memory along, before others have seen it.
  return job_->control().barrier("espalier/attached/" + name_, members_, job_->options().timeout);
}

Result<PreparedCall*> Group::prepare(const CallArguments& arguments) {
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
  const auto layout = Layout::make(*sourced->schedule, bytes, element_size);
  if (!layout) return tl::unexpected(layout.error());
  auto prepared = std::make_unique<PreparedCall>();
  prepared->source = std::move(*sourced);
  const Schedule& schedule = *prepared->source.schedule;
  prepared->chunk = prepared->source.chunk;
  if (prepared->chunk.count == 0) {
    const Bytes usual = neighbours_.size() + 1 == size() ? default_shm_chunk : default_tcp_chunk;
    prepared->chunk.count = std::max(usual.count, bytes.count / most_default_chunks);
  }
  auto program = compile(schedule, *layout, prepared->chunk, Rank(self_),
                         [&](const Transfer& transfer) { return streams_.choose_stream(schedule, transfer); });
  if (!program) return tl::unexpected(program.error());
  prepared->program = std::move(*program);
  const auto [hash, is_new] = hashes_.try_emplace(prepared->source.schedule.get(), 0);
  if (is_new) hash->second = hash_of(schedule);
  const bool is_replaceable = prepared->source.may_be_replaced && arguments.kind == CollectiveKind::all_reduce &&
                              all_share_memory_ && size() > 1 && bytes.count > 0;
  prepared->is_exchange = is_replaceable && bytes.count <= most_shown_bytes_of(size());
  // Two send each other no more by streams, and need not wait for all.
  prepared->may_exchange_blocks = is_replaceable && !prepared->is_exchange && size() > 2;
  // Members that go about it in other ways have to notice.
  prepared->schedule_hash = is_replaceable ? ~hash->second : hash->second;
  prepared->last_use = sequence_;
  prepared->shares.assign(arguments.shares.begin(), arguments.shares.end());
  prepared->shares_hash = hash_of(collective->shares);
  shape.shares = prepared->shares;
  if (prepared_.size() == most_prepared) forget_oldest();
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

Result<void> Group::agree(const CallHeader& header) {
  if (neighbours_.size() + 1 == size()) return {};  // Shared memory tells every call.
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
  auto ends = streams_.connect(call.program);
  if (!ends) return tl::unexpected(ends.error());
  call.execution = std::make_unique<Execution>(call.program, std::move(*ends), job_->device());
  for (const auto& peer : streams_.shm_peers()) {
    const auto is_met = [&](const Stream& stream) { return streams_.shm_peer(stream.peer.value()) == peer.get(); };
    if (peer && (call.involves_all() || std::ranges::any_of(call.program.streams, is_met))) {
      call.shm_peers.push_back(peer.get());
    }
  }
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
  if (program.send_bytes == 0 || program.receive_bytes == 0) return {};
  const bool overlaps = send < receive + program.receive_bytes && receive < send + program.send_bytes;
  if (!overlaps) return {};
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

Result<void> Group::reserve_scratch(std::int64_t bytes) {
  if (bytes <= scratch_bytes_) return {};
  if (!scratch_.id.is_none()) job_->domain().free(std::exchange(scratch_, {}).id);
  scratch_bytes_ = 0;
  const auto memory = job_->domain().allocate(bytes);
  if (!memory) return tl::unexpected(memory.error());
  scratch_ = *memory;
  scratch_bytes_ = bytes;
  return {};
}

Result<void> Group::await_window() {
  if (sequence_ <= SharedControl::call_window) return {};
  const std::uint64_t oldest = sequence_ - SharedControl::call_window + 1;
  std::int64_t begun = 0;
  for (Neighbour& neighbour : neighbours_) {
    while (neighbour.seen_call < oldest) {
      neighbour.seen_call = neighbour.control->entered.load(std::memory_order_acquire);
      if (neighbour.seen_call >= oldest) break;
      if (begun == 0) begun = now_ns();
      if (auto waited = wait_a_moment(); !waited) return waited;
      if (neighbour.control->has_left.load(std::memory_order_acquire) != 0) {
        return fail(ErrorCode::unavailable, fmt::format("rank {} has left the group", neighbour.rank),
                    "make the same calls on every rank before any of them leaves");
      }
      if (is_too_late(begun)) {
        return fail(
            ErrorCode::unavailable,
            fmt::format("rank {} is {} calls behind and did not come for {:.1f} s", neighbour.rank,
                        SharedControl::call_window, static_cast<double>(job_->options().timeout.count()) / 1000),
            "look at that rank; raise --timeout if it may be that slow");
      }
    }
    job_->waiting().reset();
  }
  return {};
}

Result<void> Group::wait_a_moment() {
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

Result<void> Group::await_device(std::uint64_t mark) {
  Device& device = job_->device();
  std::int64_t begun = 0;
  while (!device.is_done(mark)) {
    if (begun == 0) begun = now_ns();
    if (auto waited = wait_a_moment(); !waited) return waited;
    if (is_too_late(begun)) {
      return fail(ErrorCode::unavailable,
                  fmt::format("the device '{}' of rank {} did not finish its work within {:.1f} s", device.name(),
                              job_->rank(), static_cast<double>(job_->options().timeout.count()) / 1000),
                  "look at that device; raise --timeout if it may be that slow");
    }
  }
  job_->waiting().reset();
  return {};
}

SharedPlace Group::place_of(const void* data, std::int64_t bytes, FoundPlace& last) const {
  if (bytes == 0) return {control_.id, 0};  // Nobody touches it.
  const std::uint64_t times_changed = job_->domain().times_changed();
  if (last.data == data && last.bytes == bytes && last.times_changed == times_changed) return last.place;
  const auto place = job_->domain().find(data, bytes);
  last = {data, bytes, place ? *place : SharedPlace{}, times_changed};
  return last.place;
}

Result<void> Group::place_input(std::int64_t bytes) {
  if (bytes <= most_inline_bytes) return {};
  if (inputs_.id.is_none()) {
    auto memory = job_->domain().allocate(shown_inputs_bytes);
    if (!memory) return tl::unexpected(memory.error());
    inputs_ = *memory;
    own_control().inputs = inputs_.id;
  }
  constexpr std::int64_t line = 64;
  const std::int64_t length = (bytes + line - 1) / line * line;
  inputs_begin_ = inputs_end_ + length > shown_inputs_bytes ? 0 : inputs_end_;
  inputs_end_ = inputs_begin_ + length;
  return {};
}

Result<void> Group::make_blocks() {
  if (!blocks_.id.is_none()) return {};
  auto memory =
      job_->domain().allocate(static_cast<std::int64_t>(BlockExchange::places) * exchanged_block_bytes(size()));
  if (!memory) return tl::unexpected(memory.error());
  blocks_ = *memory;
  own_control().blocks = blocks_.id;
  return {};
}

SharedCall& Group::own_call(std::uint64_t sequence) {
  return own_control().calls[sequence % SharedControl::call_window];
}

std::byte* Group::shown_input(std::int64_t bytes) {
  return bytes <= most_inline_bytes ? own_call(sequence_).input.data() : inputs_.data + inputs_begin_;
}

Result<void> Group::show_input(const CallArguments& arguments, std::int64_t bytes) {
  job_->device().copy(shown_input(bytes), static_cast<const std::byte*>(arguments.send),
                      static_cast<std::size_t>(bytes));
  return await_device(job_->device().mark());
}

void Group::publish(const CallHeader& header, const CallArguments& arguments, const PreparedCall& prepared) {
  if (neighbours_.empty()) return;
  const RankProgram& program = prepared.program;
  SharedCall& call = own_call(header.sequence);
  call.header = header;
  if (!prepared.is_exchange) {
    call.memories[static_cast<std::size_t>(Place::send)] = place_of(arguments.send, program.send_bytes, found_send_);
    call.memories[static_cast<std::size_t>(Place::receive)] =
        place_of(arguments.receive, program.receive_bytes, found_receive_);
    call.memories[static_cast<std::size_t>(Place::scratch)] = {scratch_.id.is_none() ? control_.id : scratch_.id, 0};
    const auto outgoing =
        std::ranges::count_if(program.streams, [](const Stream& stream) { return stream.is_outgoing; });
    call.sender_assists = outgoing == 1 && !job_->is_oversubscribed() ? 1 : 0;
  }
  call.sequence.store(header.sequence, std::memory_order_release);
  own_control().entered.store(header.sequence, std::memory_order_release);
}

Error Group::in_call(const CallHeader& header, Error error) const {
  error.message = fmt::format("{} (group {}, rank {}): {}", describe(header), name_, job_->rank(), error.message);
  return error;
}

Result<RunningCall> Group::begin(const CallArguments& arguments) {
  CallHeader header;
  header.sequence = ++sequence_;
  header.count = arguments.count;
  header.root = has_root(arguments.kind) ? arguments.root : UINT32_MAX;
  header.kind = arguments.kind;
  header.type = arguments.type;
  header.operation = reduces(arguments.kind) ? arguments.operation : ReduceOperation::sum;
  auto begun = begin(arguments, header);
  if (!begun) return tl::unexpected(in_call(header, std::move(begun.error())));
  return begun;
}

Result<RunningCall> Group::begin(const CallArguments& arguments, CallHeader& header) {
  if (job_->control().has_failed()) return tl::unexpected(job_->control().failure_error());
  if (job_->is_aborted()) return fail(ErrorCode::unavailable, "the job failed before", "join a new job");
  const auto prepared = prepare(arguments);
  if (!prepared) return tl::unexpected(prepared.error());
  PreparedCall& call = **prepared;
  header.schedule = call.schedule_hash;
  header.chunk = static_cast<std::uint64_t>(call.chunk.count);
  header.shares = call.shares_hash;
  if (auto checked = check(arguments, call.program); !checked) return tl::unexpected(checked.error());
  if (auto reserved = reserve_scratch(call.program.scratch_bytes); !reserved) return tl::unexpected(reserved.error());
  if (!call.execution) {
    if (auto agreed = agree(header); !agreed) return tl::unexpected(agreed.error());
    if (auto connected = connect(call); !connected) return tl::unexpected(connected.error());
  }
  if (auto open = await_window(); !open) return tl::unexpected(open.error());
  if (call.is_exchange) {
    if (auto placed = place_input(call.program.send_bytes); !placed) return tl::unexpected(placed.error());
  }
  Buffers buffers;
  buffers.base = {const_cast<std::byte*>(static_cast<const std::byte*>(arguments.send)),
                  static_cast<std::byte*>(arguments.receive), scratch_.data};
  if (call.is_exchange) {
    const std::int64_t bytes = call.program.send_bytes;
    const auto offset = bytes <= most_inline_bytes ? std::nullopt : std::optional(inputs_begin_);
    call.execution->begin_exchange(header, buffers, recorder_, {streams_.shm_peers(), shown_input(bytes), offset});
  } else {
    call.execution->begin(header, buffers, recorder_);
    if (call.may_exchange_blocks) {
      if (auto made = make_blocks(); !made) return tl::unexpected(made.error());
      call.execution->prefer_blocks({header, static_cast<std::size_t>(call.program.element_size),
                                     exchanged_block_bytes(size()), streams_.shm_peers(), &own_control(), blocks_.data,
                                     blocks_exchanged_, buffers.base[0], buffers.base[1]});
    }
  }
  running_ = &call;
  running_header_ = header;
  const RunningCall running{call.execution.get(), name_, members_, call.shm_peers};
  // Last: what is written after stores that wait for another core's cache waits with them.
  if (call.is_exchange) {
    if (auto shown = show_input(arguments, call.program.send_bytes); !shown) return tl::unexpected(shown.error());
  }
  publish(header, arguments, call);
  for (ShmPeer* peer : call.shm_peers) peer->mark();
  return running;
}

Result<void> Group::finish(const CallArguments& arguments) {
  PreparedCall& call = *std::exchange(running_, nullptr);
  call.execution->close();
  const std::uint64_t blocks = call.execution->exchanged_blocks();
  blocks_exchanged_ += blocks;
  if (call.is_exchange || blocks > 0) {
    last_exchange_ = sequence_;
    own_control().exchanged.store(sequence_, std::memory_order_release);
    for (Neighbour& neighbour : neighbours_) neighbour.seen_call = sequence_;  // What it showed was here.
  }
  const bool is_divided = arguments.operation == ReduceOperation::avg && reduces(arguments.kind);
  if (!is_divided || call.program.receive_bytes == 0) return {};
  const auto elements = static_cast<std::size_t>(call.program.receive_bytes / call.program.element_size);
  job_->device().divide(arguments.type, arguments.receive, elements, size());
  if (auto done = await_device(job_->device().mark()); !done) {
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
