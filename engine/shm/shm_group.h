#pragma once

// Tested by: tests/unit/engine/communicator/direct_call_test.cpp

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/shm/control.h"
#include "engine/shm/shm_peer.h"
#include "engine/shm/shm_transport.h"
#include "engine/transport/transport.h"

namespace espalier::engine {

/// What the members of a communicator on one machine share: each has a control, which shows its calls and counts what
/// it has done, and reads those of the others.
class ShmGroup final : public GroupTransport {
 public:
  /// Collective over the members.
  static Result<std::unique_ptr<ShmGroup>> join(ShmTransport& transport, const GroupInfo& info);
  ~ShmGroup() override;
  ShmGroup(const ShmGroup&) = delete;
  ShmGroup& operator=(const ShmGroup&) = delete;

  [[nodiscard]] std::uint32_t choose_stream(const Schedule& schedule, const Transfer& transfer) const override;
  [[nodiscard]] Bytes default_chunk() const override;
  [[nodiscard]] bool compares_all_calls() const override { return all_share_memory_; }
  Result<std::unique_ptr<Sender>> connect(std::uint32_t member, std::uint32_t stream,
                                          std::chrono::steady_clock::time_point deadline) override;
  Result<std::unique_ptr<Receiver>> accept(std::uint32_t member, std::uint32_t stream,
                                           std::chrono::steady_clock::time_point deadline) override;
  std::unique_ptr<WholeCall> make_whole_call(const WholeCallShape& shape, DeviceQueue& queue) override;
  [[nodiscard]] bool may_enter(std::uint64_t sequence) override;
  Result<std::uint32_t> find_straggler(std::uint64_t sequence) override;
  void enter(const StreamCall& call) override;
  void flush() override;
  void leave() override;
  [[nodiscard]] bool is_settled() override;

  // For the whole calls of this folder.
  /// By member; null for this rank, and for those on other machines.
  [[nodiscard]] std::span<const std::unique_ptr<ShmPeer>> peers() const { return peers_; }
  [[nodiscard]] SharedDomain& domain() { return transport_.domain(); }
  [[nodiscard]] SharedControl& control() { return *reinterpret_cast<SharedControl*>(control_.data); }
  [[nodiscard]] SharedCall& own_call(std::uint64_t sequence) {
    return control().calls[sequence % SharedControl::call_window];
  }
  /// Fills in a call's place in the window: what is called, and with which memories.
  void describe(const StreamCall& call);
  /// Shows a call whose place in the window is filled in.
  void publish(std::uint64_t sequence);
  /// Of a call with counts per peer, as `describe`.
  void show_blocks(const StreamCall& call);
  void mark_all();
  [[nodiscard]] KernelTurns& kernel_turns() { return transport_.kernel_turns(); }
  [[nodiscard]] Result<DeviceQueue*> kernel_queue() { return transport_.kernel_queue(); }
  /// Shows memory of this rank's device for the kernels of a call.
  void show_kernel_memory(std::uint64_t sequence, SharedBufferId id);
  /// A whole call is over: this rank has read what all showed in it.
  void note_exchanged(std::uint64_t sequence);

  /// Shared memory that a kind of whole call needs once per group; freed with the group.
  Result<SharedDomain::Allocation> inputs();
  Result<SharedDomain::Allocation> blocks();
  /// Where the next input lies in the ring of inputs, the same on all members.
  std::int64_t place_input(std::int64_t bytes);
  /// Blocks of all block exchanges so far, the same on all members.
  std::uint64_t blocks_exchanged = 0;

 private:
  /// Another member on this machine.
  struct Neighbour {
    std::uint32_t rank = 0;
    const SharedControl* control = nullptr;
    std::shared_ptr<const SharedMemory> memory;  ///< Of the control: stays when that member leaves first.
    std::uint64_t seen_call = 0;                 ///< The newest that it is known to have entered.

    [[nodiscard]] bool has_left() const { return control->has_left.load(std::memory_order_acquire) != 0; }
  };

  ShmGroup(ShmTransport& transport, const GroupInfo& info) : transport_(transport), info_(info) {}
  Result<void> share_control();
  [[nodiscard]] KernelSite own_kernel_site() const;
  std::unique_ptr<WholeCall> make_kernel_call(const WholeCallShape& shape, DeviceQueue& queue);
  [[nodiscard]] SharedPlace place_of(const StreamCall& call, Place place, std::int64_t bytes) const;

  ShmTransport& transport_;
  GroupInfo info_;
  SharedDomain::Allocation control_;
  SharedDomain::Allocation inputs_;  ///< A ring of the inputs of small calls; none before the first.
  std::int64_t inputs_end_ = 0;
  SharedDomain::Allocation blocks_;   ///< The places of block exchanges; none before the first.
  bool all_share_memory_ = false;     ///< Every member with every other.
  bool share_device_memory_ = false;  ///< Of some member's device.
  std::uint32_t kernel_blocks_ = 0;   ///< That each member's device runs at a time; 0: some cannot run whole calls.
  std::vector<std::unique_ptr<ShmPeer>> peers_;
  std::vector<ShmPeer*> marked_;  ///< Who may be asleep for something that changed.
  std::vector<Neighbour> neighbours_;
  std::uint64_t last_exchange_ = 0;  ///< The call.
};

}  // namespace espalier::engine
