#pragma once

// Tested by: tests/unit/engine/cuda/kernels/bulk_copy_test.cpp

#include <cstdint>

/// What a kernel reads of the host: plain structures without constructors, alike for nvcc and for the host's compiler.
namespace espalier::engine::cuda {

/// A rank's memories as the kernel reaches them.
struct KernelMemory {
  const unsigned char* send = nullptr;
  unsigned char* receive = nullptr;
  unsigned char* scratch = nullptr;
  std::int64_t receive_bytes = 0;
  std::uint64_t* mailbox = nullptr;  ///< Words: the lower half is data, the upper half a flag.
};

/// Which of a rank's memories: engine::Place.
enum class KernelPlace : std::uint8_t { send, receive, scratch };

/// StepKind.
enum class KernelStepKind : std::uint32_t { enter, copy, reduce, finish, send, receive, receive_reduce };

struct KernelPiece {
  std::int64_t length = 0;
  std::int64_t source = 0;  ///< Byte offsets in the memories below.
  std::int64_t first = 0;
  std::int64_t target = 0;
  KernelPlace source_place = KernelPlace::send;
  KernelPlace first_place = KernelPlace::send;
  KernelPlace target_place = KernelPlace::receive;
};

struct KernelTarget {
  std::int64_t offset = 0;
  KernelPlace place = KernelPlace::receive;
};

/// Destination.
struct KernelDestination {
  std::uint32_t rank = 0;
  std::uint32_t first_target = 0;
  std::uint64_t mailbox = 0;  ///< In words.
  std::uint32_t* signal = nullptr;
};

/// What a block keeps from call to call, in its GPU's memory: so that a call is the same every time, as a graph needs
/// it.
struct KernelProgress {
  std::uint32_t run = 0;         ///< Calls that it ended.
  std::uint32_t is_stopped = 0;  ///< It gave a call up, and does no more.
};

/// Counters grow from call to call and are never set back: in call number `run` (from 0) a step waits for
/// run x per_run + count, modulo 2^32.
struct KernelWait {
  const std::uint32_t* counter = nullptr;
  std::uint32_t count = 0;
  std::uint32_t per_run = 0;
};

struct KernelStep {
  KernelStepKind kind = KernelStepKind::enter;
  std::uint32_t peer = 0;
  std::uint32_t first_piece = 0;
  std::uint32_t piece_count = 0;
  std::uint32_t first_wait = 0;
  std::uint32_t wait_count = 0;
  std::uint32_t* signal = nullptr;  ///< A counter of this block alone.
  std::uint32_t first_destination = 0;
  std::uint32_t destination_count = 0;
  std::uint64_t mailbox = 0;  ///< In words.
};

struct KernelBlock {
  std::uint32_t rank = 0;
  std::uint32_t first_step = 0;
  std::uint32_t step_count = 0;
  std::uint32_t number = 0;  ///< Its place in the reports.
};

/// When a step's waits were over and when its work was, by the GPU's global timer, in nanoseconds.
struct KernelStamp {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

enum class BlockState : std::uint32_t {
  running,
  timed_out,  ///< It waited longer than the deadline.
  stopped,    ///< It saw the abort flag.
  ended,
};

/// In the place of a wait: a mailbox that was not filled.
inline constexpr std::uint32_t mailbox_wait = 0xFFFFFFFF;

/// How a block ended: in memory that the host reads.
struct KernelReport {
  BlockState state = BlockState::running;
  std::uint32_t step = 0;  ///< Where it stopped, and for which of the program's waits, or mailbox_wait.
  std::uint32_t wait = 0;
  std::uint32_t seen = 0;  ///< The counter's value.
};

/// The parameter of the interpreter's kernel: one call of the ranks of a GPU.
struct KernelCall {
  const KernelBlock* blocks = nullptr;  ///< One per thread block of the grid.
  const KernelStep* steps = nullptr;
  const KernelPiece* pieces = nullptr;
  const KernelWait* waits = nullptr;
  const KernelDestination* destinations = nullptr;
  const KernelTarget* targets = nullptr;
  const KernelMemory* memories = nullptr;  ///< By rank.
  KernelStamp* stamps = nullptr;           ///< By step, or null.
  KernelReport* reports = nullptr;         ///< By block number.
  KernelProgress* progress = nullptr;      ///< By block number.
  std::uint32_t* abort_flag = nullptr;  ///< Not 0: every block stops where it waits. Shared by all GPUs and the host.
  std::uint64_t deadline_ns = 0;        ///< The longest that a block runs.
  std::uint32_t rank_count = 0;
  std::uint32_t divides = 0;  ///< Not 0: `finish` divides the rank's result by the number of ranks.
  /// Not 0: large copies go by bulk copies, and the launch has shared memory for them (bulk_copy.h).
  std::uint32_t bulk_copies = 0;
};

/// The most buffers that one launch reads, and writes.
inline constexpr std::uint32_t max_reduce_buffers = 64;

/// The parameter of the reduction kernel: every target = first op sources[0] op ...; all but 16-byte vectors alike.
struct ReduceCall {
  unsigned char* targets[max_reduce_buffers] = {};
  const unsigned char* sources[max_reduce_buffers] = {};
  const unsigned char* first = nullptr;
  std::uint32_t target_count = 0;
  std::uint32_t source_count = 0;
  std::uint64_t element_count = 0;
};

/// The parameter of the division kernel.
struct DivideCall {
  unsigned char* data = nullptr;
  std::uint64_t element_count = 0;
  std::uint32_t ranks = 1;
};

/// Of bulk copies: tiles in shared memory, and a block's dynamic shared memory, which has a barrier of 8 bytes for
/// each and a count of 8 bytes.
inline constexpr std::uint32_t bulk_stages = 4;
inline constexpr std::uint32_t bulk_tile_bytes = 8192;
inline constexpr std::uint32_t bulk_shared_bytes = bulk_stages * (bulk_tile_bytes + 8) + 8;

/// Threads of a block, and how many registers each may have so that two blocks fit a multiprocessor of 65,536.
inline constexpr std::uint32_t threads_per_block = 512;
inline constexpr std::uint32_t blocks_per_multiprocessor = 2;
inline constexpr std::uint32_t max_registers = 65'536 / (threads_per_block * blocks_per_multiprocessor);

}  // namespace espalier::engine::cuda
