#include "engine/verbs/queue_pair.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error_text.h"
#include "engine/rendezvous/wire/digest.h"
#include "engine/verbs/completion_text.h"

namespace espalier::engine {
namespace {

constexpr std::uint32_t address_magic = 0x31627665;  // "evb1"
constexpr std::uint32_t wanted_inline = 256;
/// Of the notes that may come before this end looks, all but what a slow one misses; the others are sent again.
constexpr std::uint32_t max_receives = 2 * slot_count;

/// As it goes over the wire; both ends are little-endian.
struct Address {
  std::uint32_t magic = address_magic;
  std::uint32_t number = 0;
  std::uint32_t first_packet = 0;
  std::uint32_t key = 0;
  std::uint64_t ring = 0;
  std::uint16_t lid = 0;
  std::uint16_t mtu = 0;
  std::uint32_t padding = 0;
  ibv_gid gid{};
};
static_assert(sizeof(Address) == QueuePair::address_size);

Result<void> refused(std::string_view what, int error) {
  return fail(ErrorCode::unavailable, fmt::format("cannot {}: {}", what, error_text(error)),
              "raise the limit of locked memory (ulimit -l), and see what `rdma resource` shows");
}

ibv_mtu choose_mtu(const VerbsDevice& device, std::uint32_t wanted) {
  int mtu = IBV_MTU_256;
  while (mtu < device.mtu() && (wanted == 0 || (256U << mtu) <= wanted)) ++mtu;
  return static_cast<ibv_mtu>(mtu);
}

}  // namespace

Result<std::unique_ptr<QueuePair>> QueuePair::create(VerbsDevice& device, const VerbsOptions& options) {
  std::unique_ptr<QueuePair> pair(new QueuePair(device, options));
  if (auto ready = pair->set_up(); !ready) return tl::unexpected(ready.error());
  return pair;
}

Result<void> QueuePair::set_up() {
  if (auto reserved = device_.reserve({max_work, max_receives}); !reserved) return reserved;
  is_reserved_ = true;
  constexpr std::size_t bytes = slot_count * slot_bytes + 2 * sizeof(CallMemory);
  ring_ = std::make_unique<std::byte[]>(bytes);
  registration_.reset(
      ibv_reg_mr(device_.domain(), ring_.get(), bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
  if (!registration_) return refused("register memory", errno);
  ibv_qp_init_attr wanted{};
  wanted.send_cq = device_.completions();
  wanted.recv_cq = device_.completions();
  wanted.qp_type = IBV_QPT_RC;
  wanted.srq = device_.shared_receives();
  wanted.cap = {max_work, wanted.srq == nullptr ? max_receives : 0, 2, 1, wanted_inline};
  pair_.reset(ibv_create_qp(device_.domain(), &wanted));
  if (!pair_) return refused("make a queue pair", errno);
  max_inline_ = std::min(wanted.cap.max_inline_data, wanted_inline);
  device_.add(pair_->qp_num, *this);
  // Packets of an earlier queue pair of this number are to be told from those of this one.
  const auto random = rendezvous::random_digest();
  if (!random) return tl::unexpected(random.error());
  std::memcpy(&first_packet_, random->data(), sizeof(first_packet_));
  first_packet_ &= 0xFFFFFFU;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = device_.port();
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  const int error =
      ibv_modify_qp(pair_.get(), &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (error != 0) return refused("set up a queue pair", error);
  for (std::uint32_t i = 0; device_.shared_receives() == nullptr && i < max_receives; ++i) post_receive();
  return {};
}

QueuePair::~QueuePair() {
  if (pair_) {
    // What came by it took shared receive work, which only its completion gives back; destroying it drops those.
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_ERR;
    if (device_.shared_receives() != nullptr && ibv_modify_qp(pair_.get(), &attributes, IBV_QP_STATE) == 0) {
      while (device_.poll()) {
      }
    }
    device_.remove(pair_->qp_num);
    pair_.reset();
  }
  if (is_reserved_) device_.give_back({max_work, max_receives});
}

std::string QueuePair::address() const {
  Address own;
  own.number = pair_->qp_num;
  own.first_packet = first_packet_;
  own.key = registration_->rkey;
  own.ring = reinterpret_cast<std::uint64_t>(ring_.get());
  own.lid = device_.lid();
  own.mtu = static_cast<std::uint16_t>(choose_mtu(device_, options_.mtu));
  own.gid = device_.gid();
  return {reinterpret_cast<const char*>(&own), sizeof(own)};
}

Result<void> QueuePair::connect(std::string_view address) {
  Address other;
  if (address.size() != sizeof(other)) return fail(ErrorCode::invalid_input, "what came is no address");
  std::memcpy(&other, address.data(), sizeof(other));
  if (other.magic != address_magic || other.mtu < IBV_MTU_256 || other.mtu > IBV_MTU_4096) {
    return fail(ErrorCode::invalid_input, "what came is no address of a queue pair", "run the same version everywhere");
  }
  remote_ring_ = other.ring;
  remote_key_ = other.key;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = std::min(choose_mtu(device_, options_.mtu), static_cast<ibv_mtu>(other.mtu));
  attributes.dest_qp_num = other.number;
  attributes.rq_psn = other.first_packet;
  attributes.max_dest_rd_atomic = 1;
  attributes.min_rnr_timer = 12;
  attributes.ah_attr.dlid = other.lid;
  attributes.ah_attr.sl = options_.service_level;
  attributes.ah_attr.port_num = device_.port();
  if (device_.is_ethernet()) {
    attributes.ah_attr.is_global = 1;
    attributes.ah_attr.grh.dgid = other.gid;
    attributes.ah_attr.grh.sgid_index = device_.gid_index();
    attributes.ah_attr.grh.hop_limit = 64;
    attributes.ah_attr.grh.traffic_class = options_.traffic_class;
  }
  int error = ibv_modify_qp(pair_.get(), &attributes,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (error != 0) return refused("connect a queue pair (is there a route between the two devices?)", error);
  attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = options_.timeout;
  attributes.retry_cnt = options_.retries;
  attributes.rnr_retry = 7;  // For ever: the call's deadline ends it.
  attributes.sq_psn = first_packet_;
  attributes.max_rd_atomic = 1;
  error = ibv_modify_qp(
      pair_.get(), &attributes,
      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  if (error != 0) return refused("start a queue pair", error);
  return {};
}

void QueuePair::write_slot(std::uint64_t number, std::size_t bytes, const std::optional<ibv_sge>& more,
                           bool is_signalled) {
  std::array<ibv_sge, 2> parts{};
  parts[0] = {reinterpret_cast<std::uint64_t>(slot(number)), static_cast<std::uint32_t>(bytes), registration_->lkey};
  if (more) parts[1] = *more;
  ibv_send_wr work{};
  work.sg_list = parts.data();
  work.num_sge = more ? 2 : 1;
  work.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  work.imm_data = htonl(encode(Note::slots, number));
  if (is_signalled) work.send_flags |= IBV_SEND_SIGNALED;
  if (!more && bytes <= max_inline_) work.send_flags |= IBV_SEND_INLINE;
  work.wr.rdma.remote_addr = remote_ring_ + number % slot_count * slot_bytes;
  work.wr.rdma.rkey = remote_key_;
  post(work);
}

void QueuePair::write(ibv_sge from, std::uint64_t to, std::uint32_t key) {
  ibv_send_wr work{};
  work.sg_list = &from;
  work.num_sge = 1;
  work.opcode = IBV_WR_RDMA_WRITE;
  work.wr.rdma.remote_addr = to;
  work.wr.rdma.rkey = key;
  post(work);
}

void QueuePair::tell(const CallMemory& memory) {
  const std::size_t offset = memory_offset(memory.sequence);
  std::byte* const own = ring_.get() + offset;
  std::memcpy(own, &memory, sizeof(memory));
  ibv_sge part{reinterpret_cast<std::uint64_t>(own), sizeof(memory), registration_->lkey};
  ibv_send_wr work{};
  work.sg_list = &part;
  work.num_sge = 1;
  work.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  work.imm_data = htonl(encode(Note::memory, memory.sequence));
  work.send_flags = IBV_SEND_SIGNALED;
  work.wr.rdma.remote_addr = remote_ring_ + offset;
  work.wr.rdma.rkey = remote_key_;
  post(work);
}

std::uint32_t QueuePair::encode(Note kind, std::uint64_t value) {
  return static_cast<std::uint32_t>(kind) << 30U | (static_cast<std::uint32_t>(value) & note_mask);
}

void QueuePair::send(Note kind, std::uint64_t value) {
  ibv_send_wr work{};
  work.opcode = IBV_WR_SEND_WITH_IMM;
  work.imm_data = htonl(encode(kind, value));
  work.send_flags = IBV_SEND_SIGNALED;
  post(work);
}

void QueuePair::hear(std::uint32_t note) {
  const std::uint32_t value = note & note_mask;
  switch (static_cast<Note>(note >> 30U)) {
    case Note::slots: returned_ = value; break;
    case Note::allowed: allowed_ = value; break;
    case Note::memory:
      std::memcpy(&memory_, ring_.get() + memory_offset(value), sizeof(memory_));
      allowed_ = 0;
      break;
  }
}

void QueuePair::post(ibv_send_wr& work) {
  work.wr_id = ++posted_;
  ibv_send_wr* refused_work = nullptr;
  const int error = ibv_post_send(pair_.get(), &work, &refused_work);
  if (error != 0 && !failure_) failure_ = "broke: " + error_text(error);
}

void QueuePair::post_receive() {
  ibv_recv_wr work{};
  ibv_recv_wr* refused_work = nullptr;
  const int error = ibv_post_recv(pair_.get(), &work, &refused_work);
  if (error != 0 && !failure_) failure_ = "broke: " + error_text(error);
}

void QueuePair::handle(const ibv_wc& completion) {
  if (completion.status != IBV_WC_SUCCESS) {
    if (!failure_) failure_ = describe_completion(completion.status);
  } else if ((static_cast<unsigned>(completion.opcode) & IBV_WC_RECV) != 0) {
    ++received_;
    hear(ntohl(completion.imm_data));
    if (device_.shared_receives() == nullptr) post_receive();
  } else {
    completed_ = completion.wr_id;
  }
}

void QueuePair::handle(ibv_event_type failure) {
  if (!failure_) failure_ = fmt::format("broke: {}", ibv_event_type_str(failure));
}

}  // namespace espalier::engine
