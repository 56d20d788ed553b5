// The kernels of the engine, a set for each element type and operation. Compiled by cmake/EspalierCuda.cmake into one
// fat binary, which engine/cuda/kernels/embedded_kernels.h holds.
#include "engine/cuda/kernels/interpreter.h"
#include "engine/cuda/kernels/pattern.h"

namespace espalier::engine::cuda {
namespace {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
/// Bulk copies of a block's first thread. Memory that other threads wrote, of this GPU or others, was acquired before;
/// the fences put that before what the copies read, and what they write before this block's signal: the async proxy
/// orders nothing by itself.
struct BulkMover {
  __device__ __forceinline__ static std::uint32_t stage_at(std::uint32_t stage) {
    extern __shared__ __align__(128) unsigned char bulk_memory[];
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(bulk_memory)) + stage * bulk_tile_bytes;
  }
  __device__ __forceinline__ static std::uint32_t barrier_at(std::uint32_t stage) {
    return stage_at(bulk_stages) + 8 * stage;
  }
  /// The count is in shared memory, as registers are scarce where no bulk copies are made.
  __device__ __forceinline__ static std::uint32_t count_at() { return barrier_at(bulk_stages); }
  __device__ __forceinline__ std::uint32_t tiles() const {
    std::uint32_t count;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(count) : "r"(count_at()) : "memory");
    return count;
  }
  __device__ __forceinline__ void set_tiles(std::uint32_t count) const {
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(count_at()), "r"(count) : "memory");
  }
  __device__ __forceinline__ static void fence() { asm volatile("fence.proxy.async;" ::: "memory"); }

  __device__ __forceinline__ void begin() const {
    ESPALIER_UNROLL
    for (std::uint32_t stage = 0; stage < bulk_stages; ++stage) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier_at(stage)) : "memory");
    }
    set_tiles(0);
    fence();
  }
  __device__ __forceinline__ void load(std::uint32_t stage, const unsigned char* from, std::uint32_t bytes) const {
    fence();
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier_at(stage)), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     stage_at(stage)),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier_at(stage))
                 : "memory");
  }
  __device__ __forceinline__ void await_load(std::uint32_t stage, std::uint32_t phase) const {
    std::uint32_t is_there = 0;
    while (is_there == 0) {
      asm volatile(
          "{\n .reg .pred there;\n mbarrier.try_wait.parity.shared::cta.b64 there, [%1], %2;\n"
          " selp.u32 %0, 1, 0, there;\n}"
          : "=r"(is_there)
          : "r"(barrier_at(stage)), "r"(phase)
          : "memory");
    }
  }
  __device__ __forceinline__ void store(std::uint32_t stage, unsigned char* to, std::uint32_t bytes) const {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(__cvta_generic_to_global(to)),
                 "r"(stage_at(stage)), "r"(bytes)
                 : "memory");
  }
  __device__ __forceinline__ void commit() const { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
  __device__ __forceinline__ void await_reads() const { asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory"); }
  __device__ __forceinline__ void await_stores() const {
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    fence();
  }
};
#endif

/// The threads of a block.
struct BlockTeam {
  static constexpr std::uint32_t quick_polls = 32;
  static constexpr std::uint32_t polls_per_look = 1024;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  static constexpr bool has_bulk_copies = true;
  BulkMover bulk;
  __device__ __forceinline__ BulkMover& mover() { return bulk; }
#else
  static constexpr bool has_bulk_copies = false;
#endif

  __device__ __forceinline__ std::uint32_t index() const { return threadIdx.x; }
  __device__ __forceinline__ std::uint32_t size() const { return blockDim.x; }
  __device__ __forceinline__ bool any(bool value) const { return __syncthreads_or(value ? 1 : 0) != 0; }
  __device__ __forceinline__ void pause() const { __nanosleep(200); }

  __device__ __forceinline__ std::uint32_t load_acquire(const std::uint32_t* from) const {
    std::uint32_t value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(__cvta_generic_to_global(from)) : "memory");
    return value;
  }
  __device__ __forceinline__ std::uint32_t load_relaxed(const std::uint32_t* from) const {
    std::uint32_t value;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(__cvta_generic_to_global(from)) : "memory");
    return value;
  }
  __device__ __forceinline__ void store_release(std::uint32_t* to, std::uint32_t value) const {
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(to)), "r"(value) : "memory");
  }
  __device__ __forceinline__ std::uint64_t load_word(const std::uint64_t* from) const {
    std::uint64_t value;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(__cvta_generic_to_global(from)) : "memory");
    return value;
  }
  __device__ __forceinline__ void store_word(std::uint64_t* to, std::uint64_t value) const {
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(to)), "l"(value) : "memory");
  }
  __device__ __forceinline__ std::uint64_t now() const {
    std::uint64_t nanoseconds;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
    return nanoseconds;
  }
};

/// The threads of a grid, which share a range.
struct GridTeam {
  __device__ __forceinline__ std::uint64_t index() const {
    return std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  }
  __device__ __forceinline__ std::uint64_t size() const { return std::uint64_t{gridDim.x} * blockDim.x; }
  __device__ __forceinline__ void add(std::uint64_t* to, std::uint64_t count) const {
    atomicAdd(reinterpret_cast<unsigned long long*>(to), count);
  }
};

}  // namespace
}  // namespace espalier::engine::cuda

#define ESPALIER_KERNEL extern "C" __global__ void __launch_bounds__(threads_per_block, blocks_per_multiprocessor)

// Names as in kernel_names.h.
#define ESPALIER_KERNELS_OF(NAME, T, OPERATION_NAME, OPERATION)                                        \
  ESPALIER_KERNEL espalier_run_##NAME##_##OPERATION_NAME(const __grid_constant__ KernelCall call) {    \
    BlockTeam team;                                                                                    \
    run_block<T, OPERATION>(call, call.blocks[blockIdx.x], team);                                      \
  }                                                                                                    \
  ESPALIER_KERNEL espalier_reduce_##NAME##_##OPERATION_NAME(const __grid_constant__ ReduceCall call) { \
    reduce_many<T, OPERATION>(GridTeam(), call);                                                       \
  }

#define ESPALIER_KERNELS(NAME, T)                                                   \
  ESPALIER_KERNELS_OF(NAME, T, sum, Sum)                                            \
  ESPALIER_KERNELS_OF(NAME, T, prod, Product)                                       \
  ESPALIER_KERNELS_OF(NAME, T, min, Minimum)                                        \
  ESPALIER_KERNELS_OF(NAME, T, max, Maximum)                                        \
  ESPALIER_KERNEL espalier_divide_##NAME(const __grid_constant__ DivideCall call) { \
    divide_range<T>(GridTeam(), call.data, call.element_count, call.ranks);         \
  }

namespace espalier::engine::cuda {

ESPALIER_KERNELS(int8, std::int8_t)
ESPALIER_KERNELS(uint8, std::uint8_t)
ESPALIER_KERNELS(int32, std::int32_t)
ESPALIER_KERNELS(uint32, std::uint32_t)
ESPALIER_KERNELS(int64, std::int64_t)
ESPALIER_KERNELS(uint64, std::uint64_t)
ESPALIER_KERNELS(float16, Float16)
ESPALIER_KERNELS(bfloat16, Bfloat16)
ESPALIER_KERNELS(float32, float)
ESPALIER_KERNELS(float64, double)

ESPALIER_KERNEL espalier_pattern(const __grid_constant__ PatternCall call) { run_pattern(GridTeam(), call); }

}  // namespace espalier::engine::cuda
