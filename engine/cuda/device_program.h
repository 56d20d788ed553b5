#pragma once

// Tested by: tests/unit/engine/cuda/device_program_test.cpp

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/result.h"
#include "engine/program/rank_program.h"
#include "schedule/chunking.h"
#include "schedule/layout.h"
#include "schedule/schedule.h"

namespace espalier::engine::cuda {

inline constexpr std::uint32_t no_counter = std::numeric_limits<std::uint32_t>::max();

/// What a thread block does in one step, between its waits and its signal.
enum class StepKind : std::uint8_t {
  enter,           ///< Nothing: its signal says that the rank's buffers may be read.
  copy,            ///< target = source.
  reduce,          ///< target = first op source.
  finish,          ///< The rank's result is complete and all peers have read its memory; `avg` divides the result here.
  send,            ///< Writes sources to the mailboxes of its destinations; it has no targets.
  receive,         ///< target = what lies in its own mailbox, once it has come.
  receive_reduce,  ///< target = first op what lies in its own mailbox.
};

/// A counter that a step waits for: until it is `count` at least.
struct CounterWait {
  std::uint32_t counter = 0;
  std::uint32_t count = 0;
};

/// Another place that a step writes what it writes to its targets: of copies and reductions a target for each piece in
/// `rank`'s memory, of other steps a slot of its mailbox.
struct Destination {
  Rank rank;
  std::uint32_t first_target = 0;  ///< Of `targets`, one for each piece.
  std::int64_t mailbox = 0;        ///< Where the slot begins.
  std::uint32_t signal = no_counter;
  TransferId transfer = {};
  std::uint32_t chunk = 0;
};

/// One step of a thread block. Its waits come first, with acquire order; its signals, the destinations' as well, add
/// one each to counters that no other block adds to, with release order.
struct Step {
  StepKind kind = StepKind::copy;
  Rank peer;  ///< In whose memory the sources lie; who fills the mailbox. Targets lie in the own rank's memory.
  std::uint32_t first_piece = 0;
  std::uint32_t piece_count = 0;
  std::uint32_t first_wait = 0;
  std::uint32_t wait_count = 0;
  std::uint32_t signal = no_counter;
  TransferId transfer = {};  ///< What it is a part of, and which; of copies and reductions that peers wait for.
  std::uint32_t chunk = 0;
  std::uint32_t first_destination = 0;
  std::uint32_t destination_count = 0;
  std::int64_t mailbox = 0;  ///< Where the slot of a step that receives begins.
};

/// Bytes of a mailbox that so many bytes of data take: packets of 16 bytes, twice 4 bytes of data and a flag.
constexpr std::int64_t mailbox_bytes(std::int64_t data) { return (data + 7) / 8 * 16; }

/// A thread block of a rank's kernel and the steps that it carries out in order.
struct Block {
  Rank rank;
  std::uint32_t first_step = 0;
  std::uint32_t step_count = 0;
  bool by_host = false;  ///< No kernel's: the hosts of the steps' two ranks carry them out, by a transport.
};

/// Bytes of a rank's memories.
struct MemorySizes {
  std::int64_t send = 0;
  std::int64_t receive = 0;
  std::int64_t scratch = 0;
  std::optional<std::int64_t> in_place_shift;  ///< As in RankProgram.
  std::int64_t mailbox = 0;
};

/// What the thread blocks of ranks that reach each other's memory do. The destination of a transfer reads the source,
/// then counts up a counter of the stream, which is both arrival (for who waits for the bytes) and departure (for who
/// overwrites the source). So no staging slots and no credits are needed. Where a rank only passes on what a step
/// brought it, that step may write it to the next rank as well. With low latency, sources fill mailboxes instead: every
/// 8 bytes of them say by a flag that they are there, and who reads them needs no counter.
struct DeviceProgram {
  std::vector<Block> blocks;  ///< By rank.
  std::vector<Step> steps;
  std::vector<Piece> pieces;
  std::vector<CounterWait> waits;
  std::vector<Destination> destinations;
  std::vector<Location> targets;      ///< Of destinations.
  std::vector<MemorySizes> memories;  ///< By rank.
  std::uint32_t counter_count = 0;    ///< All start at 0.
  std::int64_t element_size = 1;
  bool reduces = false;  ///< Of a collective that adds contributions.
  bool low_latency = false;
};

/// How ranks are laid over thread blocks.
struct BlockOptions {
  std::uint32_t streams_per_pair = 1;  ///< Streams between two ranks, dealt by channel.
  /// The most; a rank has no more than its incoming streams have, and one, or a stream's for its own copies alone.
  std::uint32_t blocks_per_rank = 8;
  /// Blocks that carry out a stream together, each its part of every piece; no more than a rank has.
  std::uint32_t blocks_per_stream = 1;
  bool forwards = true;      ///< Steps write what is only passed on to where it goes.
  bool low_latency = false;  ///< Mailboxes; each stream has one block then.
  /// By rank: whether it is one of those whose kernels reach each other. What goes to others or comes from them, hosts
  /// move. Empty: all are. Not with mailboxes.
  std::vector<bool> in_kernel = {};
};

/// Compiles the programs of all ranks.
/// Requires: a schedule that verifies; options of 1 at least.
/// Errors: unsupported where switches take part (relays); too_large past `max_chunks`. Cost: O(ranks x chunks).
Result<DeviceProgram> compile_for_device(const Schedule& schedule, const Layout& layout, const Pacing& pacing,
                                         const BlockOptions& options);

/// What a GPU can run at a time.
struct ResidencyLimit {
  std::uint32_t multiprocessors = 0;
  std::uint32_t blocks_per_multiprocessor = 0;  ///< As registers, shared memory and threads of the kernel allow.
};

/// Blocks wait for each other, so all blocks of the ranks on one GPU have to run at the same time.
/// Errors: too_large, with both numbers.
Result<void> check_co_residency(std::size_t ranks, std::size_t blocks, const ResidencyLimit& limit);
/// The same for a GPU that runs all ranks.
Result<void> check_co_residency(const DeviceProgram& program, const ResidencyLimit& limit);

}  // namespace espalier::engine::cuda
