#include "compute/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "base/suggest.h"
#include "compute/constants.h"
#include "compute/product.h"

namespace espalier::compute {
namespace {

constexpr std::array<std::pair<std::string_view, AttentionKernels>, 4> names = {{{"unfused", AttentionKernels::unfused},
                                                                                 {"flash1", AttentionKernels::first},
                                                                                 {"flash2", AttentionKernels::second},
                                                                                 {"flash3", AttentionKernels::third}}};

constexpr double tile_rows = 128;

/// Part of the full rate that heads of this size reach.
double part_of_rate(const AttentionRates& rates, std::int64_t head_size) {
  const auto d = static_cast<double>(head_size);
  double part = 1;
  if (d < 64)
    part = rates.narrow * d / 64;
  else if (d < 128)
    part = rates.narrow + (1 - rates.narrow) * (d - 64) / 64;
  if (head_size % 64 != 0) part *= constants::odd_head;
  if (head_size > 128) part *= constants::wide_head;
  return part;
}

BothWays fused(const Gpu& gpu, const Attention& a, const AttentionRates& rates) {
  const auto keys = static_cast<double>(a.keys);
  const double of_tile = 4 * tile_rows * keys * static_cast<double>(a.head_size);
  const double tiles = static_cast<double>(a.batch * a.heads) * std::ceil(static_cast<double>(a.queries) / tile_rows);
  const double turns = tiles / gpu.multiprocessors;
  const double part = part_of_rate(rates, a.head_size);
  const double bytes = bytes_of(Precision::bf16);
  const double slower = bytes_of(a.precision) > bytes ? gpu.bf16 / gpu.peak(a.precision) : 1;
  const auto seconds = [&](double rate, double tail) {
    const double tile = slower * of_tile / (rate / gpu.multiprocessors) / part;
    if (a.is_causal) {
      return tile * (std::max(turns / 2, 0.5) * (1 + constants::causal_start / keys) + tail * std::min(1.0, turns));
    }
    const double whole = std::max(1.0, std::ceil(turns));
    return tile * (turns + constants::attention_turn * (whole - turns)) * (1 + constants::attention_start / keys);
  };
  return {seconds(rates.forward, rates.forward_tail) + constants::attention_overhead,
          2.5 * seconds(rates.backward, rates.backward_tail) + constants::attention_back_overhead};
}

BothWays unfused(const Gpu& gpu, const Attention& a) {
  const std::int64_t batch = a.batch * a.heads;
  const double scores = product_seconds(gpu, {a.queries, a.keys, a.head_size, batch, a.precision});
  const double values = product_seconds(gpu, {a.queries, a.head_size, a.keys, batch, a.precision});
  const double elements = static_cast<double>(batch) * static_cast<double>(a.queries) * static_cast<double>(a.keys);
  const double element = bytes_of(a.precision);
  const double softmax = 2 * element, softmax_back = 3 * element, dropout = a.has_dropout ? 2 * element + 1 : 0;
  const double overheads = (a.has_dropout ? 2 : 1) * constants::kernel_overhead;
  return {scores + values + elements * (softmax + dropout) / gpu.stream() + overheads,
          2 * (scores + values) + elements * (softmax_back + dropout) / gpu.stream() + overheads};
}

}  // namespace

Result<AttentionKernels> parse_attention(std::string_view name) {
  std::vector<std::string_view> known;
  for (const auto& [each, kernels] : names) {
    if (each == name) return kernels;
    known.push_back(each);
  }
  return fail(ErrorCode::invalid_input, fmt::format("there are no attention kernels '{}'", name.substr(0, 60)),
              suggest(name, known));
}

std::string_view name_of(AttentionKernels kernels) { return names[static_cast<std::size_t>(kernels)].first; }

BothWays attention_seconds(const Gpu& gpu, const Attention& attention) {
  switch (attention.kernels) {
    case AttentionKernels::unfused: return unfused(gpu, attention);
    case AttentionKernels::first: return fused(gpu, attention, gpu.first);
    case AttentionKernels::second: return fused(gpu, attention, gpu.second);
    case AttentionKernels::third: break;
  }
  return fused(gpu, attention, gpu.third);
}

}  // namespace espalier::compute
