#pragma once

// Tested by: tests/unit/compute/pipeline_test.cpp

#include <cstdint>

#include "compute/gpu.h"

namespace espalier::compute {

/// Which kernels compute attention.
enum class AttentionKernels : std::uint8_t {
  unfused,  ///< Scores in memory: two products, softmax and dropout between them.
  first,    ///< FlashAttention 1 and its like (2022).
  second,   ///< FlashAttention 2 (2023).
  third,    ///< The vendor's own, FlashAttention 3 (2024 on).
};

/// Errors: invalid_input, with the names there are.
Result<AttentionKernels> parse_attention(std::string_view name);
std::string_view name_of(AttentionKernels kernels);

struct Attention {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t queries = 1;  ///< Tokens that ask.
  std::int64_t keys = 1;     ///< Tokens that are asked.
  std::int64_t head_size = 1;
  bool is_causal = true;  ///< A token asks those before it; `queries` are a part of `keys` that has its share of work.
  bool has_dropout = false;
  Precision precision = Precision::bf16;
  AttentionKernels kernels = AttentionKernels::third;
};

struct BothWays {
  double forward = 0;
  double backward = 0;
};

/// Seconds that attention keeps a GPU busy.
///
/// Fused: 128 queries against all keys of a head are a tile; multiprocessors take tiles in turn. Causal ones are of
/// half the size in the mean and end with a large one. Backward computes two and a half times as much. Unfused: the
/// products, and each score written and read by softmax and dropout.
BothWays attention_seconds(const Gpu& gpu, const Attention& attention);

}  // namespace espalier::compute
