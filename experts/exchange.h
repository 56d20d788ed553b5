#pragma once

// Tested by: tests/unit/experts/exchange_test.cpp

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "experts/machine_rates.h"

namespace espalier::experts {

/// What exchanges tokens between experts.
enum class Software : std::uint8_t {
  deepep_normal,       ///< DeepEP's kernels for training and prefill: some multiprocessors, each token once per rank.
  deepep_low_latency,  ///< DeepEP's kernels for decoding: all multiprocessors, each token once per expert.
  trtllm_two_sided,    ///< TensorRT-LLM's exchange over NVLink through buffers that receivers empty.
  trtllm_one_sided,    ///< The same, written into where it is read.
};
/// Errors: invalid_input with the names there are.
Result<Software> parse_software(std::string_view name);
std::string_view name_of(Software software);

/// How an element of a token is written on the way.
enum class Format : std::uint8_t { bf16, fp8, nvfp4 };
/// Errors: invalid_input with the names there are.
Result<Format> parse_format(std::string_view name);
std::string_view name_of(Format format);

/// Bytes of an element with its share of scales: of fp8 four bytes for 128 elements, of nvfp4 one for 16.
double bytes_of(Format format);

/// One dispatch and one combine. Routing is balanced: every expert is as likely as any other.
struct Exchange {
  Software software = Software::deepep_normal;
  std::int64_t tokens = 0;     ///< Of a rank.
  std::int64_t hidden = 0;     ///< Elements of a token.
  std::int64_t top_k = 0;      ///< Experts of a token.
  std::int64_t experts = 0;    ///< Of all ranks.
  std::int64_t sms = 20;       ///< Multiprocessors that the software is given; only deepep_normal asks for them.
  std::int64_t max_boxes = 4;  ///< Boxes that the experts of a token may be in.
  Format dispatch = Format::fp8;
  Format combine = Format::bf16;
};

/// What most of a phase is.
enum class Limit : std::uint8_t { start, multiprocessors, links, nics };
std::string_view name_of(Limit limit);

/// One kernel of an exchange.
struct Phase {
  std::string_view name;  ///< "prepare", "notify_dispatch", "dispatch", "notify_combine" or "combine".
  double seconds = 0;
  double start = 0;  ///< Of them, what no token waits for longer.
  Limit limit = Limit::start;
};

/// Phases in their order. Requires: rates of find_rates.
/// Errors: invalid_input where a number is out of its range; unsupported where the software has no such exchange.
/// Formulae and their sources: docs/expert-parallel.md.
Result<std::vector<Phase>> predict(const MachineRates& machine, const Exchange& exchange);

/// Of a token's `top_k` experts, chosen alike among `experts`, how many of `parts` equal parts hold some.
double expected_parts(double experts, std::int64_t top_k, double parts);

}  // namespace espalier::experts
