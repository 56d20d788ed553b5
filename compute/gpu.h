#pragma once

// Tested by: tests/unit/compute/product_test.cpp

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"

namespace espalier::compute {

/// Types of numbers that matrices are multiplied in.
enum class Precision : std::uint8_t { fp8, bf16, fp16, tf32, fp32, fp4 };

/// Errors: invalid_input, with the names there are.
Result<Precision> parse_precision(std::string_view name);
std::string_view name_of(Precision precision);
/// Bytes of an element as it lies in memory.
double bytes_of(Precision precision);

/// How fast attention kernels run, in operations per second of the whole score matrix that is computed.
struct AttentionRates {
  double forward = 0;
  double backward = 0;
  double narrow = 1;         ///< Part of the rate that heads of 64 reach; between 64 and 128 it is straight.
  double forward_tail = 0;   ///< Causal: tiles that the last multiprocessor computes after the others.
  double backward_tail = 0;  ///< The same, backward.
};

/// What a GPU computes and moves. Rates are those of the vendor's datasheet, dense; the parts of them that kernels
/// reach are measured on an H100 (docs/accuracy.md) and on other generations held by published training runs.
struct Gpu {
  std::string_view name;
  std::string_view what;
  double bf16 = 0;  ///< Operations per second at the peak; fp16 has the same.
  double fp8 = 0;   ///< 0: it has none. Microscaled formats (mxfp8) have the same.
  double tf32 = 0;
  double fp32 = 0;
  double memory_rate = 0;    ///< Bytes per second.
  double memory = 0;         ///< Bytes.
  double memory_part = 0;    ///< Of the memory's rate that kernels reach.
  int multiprocessors = 0;   ///< That share a product's tiles.
  double tile_part = 0;      ///< Of its peak that a multiprocessor reaches within a tile.
  double tile_overhead = 0;  ///< Seconds of a tile's first loads and its stores.
  double sustained = 0;      ///< Of the peak that the whole GPU keeps up: its power is limited.
  AttentionRates first;      ///< Of the first fused kernels (FlashAttention 1, 2022).
  AttentionRates second;     ///< FlashAttention 2 (2023).
  AttentionRates third;      ///< The vendor's own and FlashAttention 3 (2024 on).
  double fp4 = 0;            ///< 0: it has none. Of nvfp4 and mxfp4.
  bool has_bf16 = true;      ///< False: fp16 alone has that rate.

  /// Whether it has products of this precision. Of others `peak` is that of the next wider one.
  [[nodiscard]] bool has(Precision precision) const;

  [[nodiscard]] double peak(Precision precision) const;
  /// Bytes per second that kernels reach.
  [[nodiscard]] double stream() const { return memory_rate * memory_part; }
};

/// All that are known, by name.
std::span<const Gpu> gpus();

/// Errors: invalid_input with the names there are.
Result<const Gpu*> find_gpu(std::string_view name);

}  // namespace espalier::compute
