#include "engine/shm/shm_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "base/check.h"
#include "engine/shm/block_exchange.h"
#include "engine/shm/input_exchange.h"
#include "engine/shm/kernel_call.h"

namespace espalier::engine {
namespace {

/// What a member exports to the others when a group is made.
struct ControlPlace {
  SharedBufferId id;
  std::uint32_t local_members = 0;  ///< That it shares memory with, itself among them.
  std::uint32_t shares_device_memory = 0;
  KernelSite kernels;  ///< No blocks: its device does not run whole calls with the others'.
};

/// With fewer, blocks of a kernel that waits for the host leave none for what the host gives the device meanwhile.
constexpr std::uint32_t min_blocks_beside_host = 8;

}  // namespace

Result<std::unique_ptr<ShmGroup>> ShmGroup::join(ShmTransport& transport, const GroupInfo& info) {
  std::unique_ptr<ShmGroup> group(new ShmGroup(transport, info));
  if (auto shared = group->share_control(); !shared) return tl::unexpected(shared.error());
  return group;
}

ShmGroup::~ShmGroup() {
  for (const SharedDomain::Allocation& memory : {control_, inputs_, blocks_}) {
    if (!memory.id.is_none()) domain().free(memory.id);
  }
}

Result<void> ShmGroup::share_control() {
  const auto size = static_cast<std::uint32_t>(info_.members.size());
  auto control = domain().allocate(SharedControl::bytes(size));
  if (!control) return tl::unexpected(control.error());
  control_ = *control;
  const auto local_members = 1 + static_cast<std::uint32_t>(std::ranges::count(info_.is_reached, true));
  const ControlPlace own_place{control_.id, local_members, transport_.shares_device_memory() ? 1U : 0U,
                               own_kernel_site()};
  for (std::uint32_t member = 0; member < size; ++member) {
    const bool opens = info_.is_reached[member] && transport_.opens_memory_of(info_.members[member]);
    const bool reads = info_.is_reached[member] && domain().reads(info_.members[member]);
    this->control().streams(member).opens_memory = opens ? 1 : 0;
    this->control().streams(member).reads_memory = reads ? 1 : 0;
  }
  const std::string_view own(reinterpret_cast<const char*>(&own_place), sizeof(own_place));
  rendezvous::ControlPlane& plane = transport_.control();
  const auto places = plane.exchange("espalier/group/" + info_.name, info_.members, own, info_.timeout);
  if (!places) return tl::unexpected(places.error());
  peers_.resize(size);
  marked_.reserve(size);
  kernel_blocks_ = own_place.kernels.blocks;
  std::set<std::uint64_t> devices;
  all_share_memory_ = local_members == size;
  bool neighbours_agree = local_members > 1;
  for (std::uint32_t member = 0; member < size; ++member) {
    ControlPlace place;
    if ((*places)[member].size() != sizeof(place)) return fail(ErrorCode::unavailable, "a member runs another version");
    std::memcpy(&place, (*places)[member].data(), sizeof(place));
    all_share_memory_ = all_share_memory_ && place.local_members == size;
    share_device_memory_ = share_device_memory_ || place.shares_device_memory != 0;
    if (info_.is_reached[member] || member == info_.self) {
      const bool is_alone = devices.insert(place.kernels.device).second;
      kernel_blocks_ = is_alone ? std::min(kernel_blocks_, place.kernels.blocks) : 0;
      neighbours_agree = neighbours_agree && place.local_members == local_members;
    }
    if (!info_.is_reached[member]) continue;
    const std::uint32_t rank = info_.members[member];
    auto memory = domain().hold(rank, place.id);
    if (!memory) return tl::unexpected(memory.error());
    auto& theirs = *reinterpret_cast<SharedControl*>((*memory)->data());
    neighbours_.push_back({rank, &theirs, std::move(*memory)});
    peers_[member] = std::make_unique<ShmPeer>(domain(), ShmPeer::Place{info_.members[info_.self], info_.self},
                                               ShmPeer::Place{rank, member}, local_members,
                                               transport_.is_oversubscribed(), this->control(), theirs, marked_);
  }
  if (!neighbours_agree) kernel_blocks_ = 0;
  // Who is done early may leave, and take its memory along, before others have seen it.
  return plane.barrier("espalier/attached/" + info_.name, info_.members, info_.timeout);
}

KernelSite ShmGroup::own_kernel_site() const {
  KernelSite site = transport_.kernel_site();
  for (std::uint32_t member = 0; member < info_.members.size(); ++member) {
    if (info_.is_reached[member] && !transport_.opens_memory_of(info_.members[member])) site.blocks = 0;
  }
  return site;
}

std::uint32_t ShmGroup::choose_stream(const Schedule&, const Transfer& transfer) const {
  return transfer.reduces != 0 ? 0 : 1;
}

/// Fits the cache with those of several peers.
Bytes ShmGroup::default_chunk() const { return Bytes{std::int64_t{128} << 10}; }

Result<std::unique_ptr<Sender>> ShmGroup::connect(std::uint32_t member, std::uint32_t stream,
                                                  std::chrono::steady_clock::time_point) {
  return make_shm_sender(*peers_[member], stream);
}

Result<std::unique_ptr<Receiver>> ShmGroup::accept(std::uint32_t member, std::uint32_t stream,
                                                   std::chrono::steady_clock::time_point) {
  return make_shm_receiver(*peers_[member], stream);
}

std::unique_ptr<WholeCall> ShmGroup::make_whole_call(const WholeCallShape& shape, DeviceQueue& queue) {
  const auto members = static_cast<std::uint32_t>(peers_.size());
  if (members < 2 || shape.size.count == 0) return nullptr;
  if (auto kernel = make_kernel_call(shape, queue)) return kernel;
  if (!all_share_memory_ || shape.captured_by != nullptr) return nullptr;
  if (!shape.may_be_replaced) return nullptr;
  // All blocks are alike: the schedule deals whole elements, the first blocks get what remains.
  const std::int64_t dealt = std::int64_t{members} * shape.layout.element_size();
  const bool is_all_to_all = shape.kind == CollectiveKind::all_to_all && shape.program.send_bytes % dealt == 0;
  if (shape.kind != CollectiveKind::all_reduce && !is_all_to_all) return nullptr;
  if (shape.size.count <= max_shown_bytes_of(members))
    return std::make_unique<InputExchange>(*this, shape.program, queue, false);
  if (is_all_to_all) return nullptr;
  if (share_device_memory_) return nullptr;  // Devices reach each other without the host.
  if (members > 2) return std::make_unique<BlockExchange>(*this, shape.program, queue);
  if (shape.size.count > max_private_shown_bytes) return nullptr;
  return std::make_unique<InputExchange>(*this, shape.program, queue, true);
}

/// The same on all members of this machine: what decides is the schedule and what they said when the group was made.
std::unique_ptr<WholeCall> ShmGroup::make_kernel_call(const WholeCallShape& shape, DeviceQueue& queue) {
  if (kernel_blocks_ == 0) return nullptr;
  RankKernel::Shape kernel_shape{shape.schedule,   shape.layout,  shape.pacing, kernel_blocks_,
                                 Rank(info_.self), info_.timeout, shape.program};
  std::optional<std::vector<bool>> left_streams;
  if (!all_share_memory_) {
    if (shape.captured_by != nullptr) return nullptr;  // The host has a part in it.
    // The executor's reductions need room on the device beside the kernel.
    if (kernel_blocks_ < min_blocks_beside_host) return nullptr;
    kernel_shape.blocks = kernel_blocks_ / 2;
    kernel_shape.in_kernel = info_.is_reached;
    kernel_shape.in_kernel[info_.self] = true;
    left_streams.emplace();
    for (const Stream& stream : shape.program.streams) left_streams->push_back(!info_.is_reached[stream.peer.index()]);
  }
  auto kernel = queue.device().make_rank_kernel(kernel_shape);
  if (!kernel) return nullptr;
  return std::make_unique<KernelCall>(*this, std::move(*kernel), queue, std::move(left_streams), shape.captured_by);
}

bool ShmGroup::may_enter(std::uint64_t sequence) {
  if (sequence <= SharedControl::call_window) return true;
  const std::uint64_t oldest = sequence - SharedControl::call_window + 1;
  for (Neighbour& neighbour : neighbours_) {
    if (neighbour.seen_call >= oldest) continue;
    neighbour.seen_call = neighbour.control->entered.load(std::memory_order_acquire);
    if (neighbour.seen_call < oldest) return false;
  }
  return true;
}

Result<std::uint32_t> ShmGroup::find_straggler(std::uint64_t sequence) {
  const std::uint64_t oldest = sequence - SharedControl::call_window + 1;
  const auto found =
      std::ranges::find_if(neighbours_, [&](const Neighbour& neighbour) { return neighbour.seen_call < oldest; });
  ESPALIER_CHECK(found != neighbours_.end(), "somebody is behind");
  if (found->has_left()) {
    return fail(ErrorCode::unavailable, fmt::format("rank {} has left the group", found->rank),
                "make the same calls on every rank before any of them leaves");
  }
  return found->rank;
}

SharedPlace ShmGroup::place_of(const StreamCall& call, Place place, std::int64_t bytes) const {
  if (bytes == 0) return {control_.id, 0};  // Nobody touches it.
  const MemoryPlace& at = call.buffers->registered[static_cast<std::size_t>(place)];
  const Registration* registration = at.memory == nullptr ? nullptr : at.memory->registration(&transport_);
  if (registration == nullptr) {
    const std::byte* base = call.buffers->base[static_cast<std::size_t>(place)];
    return {{}, call.program->has_counts ? reinterpret_cast<std::int64_t>(base) : 0};
  }
  return {static_cast<const SharedRegistration*>(registration)->id(), at.offset};
}

void ShmGroup::enter(const StreamCall& call) {
  if (neighbours_.empty()) return;
  describe(call);
  publish(call.header->sequence);
  for (const Stream& stream : call.program->streams) {
    if (ShmPeer* peer = peers_[stream.peer.index()].get()) peer->mark();
  }
}

void ShmGroup::describe(const StreamCall& call) {
  const RankProgram& program = *call.program;
  SharedCall& own = own_call(call.header->sequence);
  own.header = *call.header;
  own.memories[static_cast<std::size_t>(Place::send)] = place_of(call, Place::send, program.send_bytes);
  own.memories[static_cast<std::size_t>(Place::receive)] = place_of(call, Place::receive, program.receive_bytes);
  own.memories[static_cast<std::size_t>(Place::scratch)] = place_of(call, Place::scratch, program.scratch_bytes);
  own.on_device = SharedCall::all_on_device;
  for (std::size_t i = 0; i < own.memories.size(); ++i) {
    if (own.memories[i].buffer == control_.id) continue;  // Empty.
    const bool is_on_device = !call.buffers->registered[i].is_on_host();
    if (is_on_device) own.on_device |= 1U << i;
    if (!is_on_device || own.memories[i].buffer.is_none()) own.on_device &= ~SharedCall::all_on_device;
  }
  const auto outgoing = std::ranges::count_if(program.streams, [](const Stream& stream) { return stream.is_outgoing; });
  if (program.has_counts) show_blocks(call);
  own.sender_assists = outgoing == 1 && !transport_.is_oversubscribed() ? 1 : 0;
}

void ShmGroup::show_blocks(const StreamCall& call) {
  for (const Stream& stream : call.program->streams) {
    const std::uint32_t member = stream.peer.value();
    if (!peers_[member]) continue;
    SharedBlocks& shown = control().blocks(member, call.header->sequence);
    (stream.is_outgoing ? shown.sent : shown.received) = stream.block;
  }
}

void ShmGroup::publish(std::uint64_t sequence) {
  own_call(sequence).sequence.store(sequence, std::memory_order_release);
  control().entered.store(sequence, std::memory_order_release);
}

void ShmGroup::mark_all() {
  for (const auto& peer : peers_) {
    if (peer) peer->mark();
  }
}

void ShmGroup::show_kernel_memory(std::uint64_t sequence, SharedBufferId id) {
  control().kernel_memory = id;
  control().kernel_call.store(sequence, std::memory_order_release);
  mark_all();
}

void ShmGroup::flush() {
  for (ShmPeer* peer : marked_) peer->ring();
  marked_.clear();
}

void ShmGroup::leave() {
  if (control_.data == nullptr) return;
  control().has_left.store(1, std::memory_order_release);
  for (const Neighbour& neighbour : neighbours_) domain().doorbell_of(neighbour.rank).ring();
}

bool ShmGroup::is_settled() {
  return std::ranges::all_of(neighbours_, [&](const Neighbour& neighbour) {
    return neighbour.control->exchanged.load(std::memory_order_acquire) >= last_exchange_ || neighbour.has_left();
  });
}

void ShmGroup::note_exchanged(std::uint64_t sequence) {
  last_exchange_ = sequence;
  control().exchanged.store(sequence, std::memory_order_release);
  for (Neighbour& neighbour : neighbours_) neighbour.seen_call = sequence;  // What it showed was here.
}

Result<SharedDomain::Allocation> ShmGroup::inputs() {
  if (inputs_.id.is_none()) {
    auto memory = domain().allocate(shown_inputs_bytes);
    if (!memory) return tl::unexpected(memory.error());
    inputs_ = *memory;
    control().inputs = inputs_.id;
  }
  return inputs_;
}

std::int64_t ShmGroup::place_input(std::int64_t bytes) {
  constexpr std::int64_t line = 64;
  const std::int64_t length = (bytes + line - 1) / line * line;
  const std::int64_t begin = inputs_end_ + length > shown_inputs_bytes ? 0 : inputs_end_;
  inputs_end_ = begin + length;
  return begin;
}

Result<SharedDomain::Allocation> ShmGroup::blocks() {
  if (blocks_.id.is_none()) {
    const auto members = static_cast<std::uint32_t>(peers_.size());
    auto memory = domain().allocate(static_cast<std::int64_t>(BlockExchange::places) * exchanged_block_bytes(members));
    if (!memory) return tl::unexpected(memory.error());
    blocks_ = *memory;
    control().exchanged_blocks = blocks_.id;
  }
  return blocks_;
}

}  // namespace espalier::engine
