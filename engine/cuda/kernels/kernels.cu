// The kernels of the engine, a set for each element type and operation. Compiled by cmake/EspalierCuda.cmake into one
// fat binary, which engine/cuda/kernels/embedded_kernels.h holds.
#include "engine/cuda/kernels/interpreter.h"

namespace espalier::engine::cuda {
namespace {

/// The threads of a block.
struct BlockTeam {
  static constexpr std::uint32_t polls_per_look = 256;

  __device__ __forceinline__ std::uint32_t index() const { return threadIdx.x; }
  __device__ __forceinline__ std::uint32_t size() const { return blockDim.x; }
  __device__ __forceinline__ bool any(bool value) const { return __syncthreads_or(value ? 1 : 0) != 0; }
  __device__ __forceinline__ void pause() const { __nanosleep(100); }

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

}  // namespace espalier::engine::cuda
