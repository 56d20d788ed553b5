#pragma once

// Tested by: tests/unit/nccl_plugins/tuner/tuner_test.cpp

#include <cstddef>
#include <cstdint>

#include "nccl_plugins/nccl_types.h"

/// NCCL's tuner interfaces 2 to 5, as they lie in memory.
/// Source: github.com/NVIDIA/nccl, src/include/plugin/tuner/tuner_v2.h to tuner_v5.h.
namespace espalier::nccl_plugins::tuner {

/// ncclFunc_t, of collectives that are tuned.
enum class Function : int { broadcast = 0, reduce = 1, all_gather = 2, reduce_scatter = 3, all_reduce = 4 };

/// What a cost table has for what NCCL does not take.
constexpr float ignored_cost = -1;

using DestroyFunction = NcclResult (*)(void* context);
using InitV2 = NcclResult (*)(std::size_t ranks, std::size_t nodes, Logger logger, void** context);
using InitV5 = NcclResult (*)(void** context, std::uint64_t communicator, std::size_t ranks, std::size_t nodes,
                              Logger logger, void* nvlink_domains, void* constants);

/// Version 2 names what it picks; later ones make it the cheapest of the cost table, algorithms by protocols.
struct InterfaceV2 {
  const char* name;
  InitV2 init;
  NcclResult (*choose)(void* context, Function function, std::size_t bytes, int has_collnet, int has_nvls,
                       int operations, int* algorithm, int* protocol, int* channels);
  DestroyFunction destroy;
};
struct InterfaceV3 {
  const char* name;
  InitV2 init;
  NcclResult (*choose)(void* context, Function function, std::size_t bytes, int operations, float** costs,
                       int algorithms, int protocols, int* channels);
  DestroyFunction destroy;
};
struct InterfaceV4 {
  const char* name;
  InitV2 init;
  NcclResult (*choose)(void* context, Function function, std::size_t bytes, int operations, float** costs,
                       int algorithms, int protocols, int registered, int* channels);
  DestroyFunction destroy;
};
struct InterfaceV5 {
  const char* name;
  InitV5 init;
  NcclResult (*choose)(void* context, Function function, std::size_t bytes, int operations, float** costs,
                       int algorithms, int protocols, int registered, int* channels);
  DestroyFunction destroy;
};

}  // namespace espalier::nccl_plugins::tuner
