#include "compute/memory.h"

#include <algorithm>
#include <array>

#include "compute/constants.h"

namespace espalier::compute {

double kept_bytes(const ModelShape& model, const Slice& slice, const Software& software, Recompute recompute,
                  bool is_dense) {
  const auto tokens = static_cast<double>(slice.tokens());
  const double element = bytes_of(software.activations());
  const double own = tokens / static_cast<double>(slice.is_sequence_parallel ? slice.tensor : 1);
  const auto h = static_cast<double>(model.hidden), d = static_cast<double>(model.head());
  if (recompute == Recompute::full) return own * h * (software.is_mixed ? 4 : element);
  const double heads = std::max(1.0, static_cast<double>(model.heads) / static_cast<double>(slice.tensor));
  const double kv = std::max(1.0, static_cast<double>(model.kv()) / static_cast<double>(slice.tensor));
  const bool is_eager = software.kernels == Kernels::eager;
  // Queries, keys and values, attention's output; where positions are rotated one by one, both as they were and turned.
  double attention = heads * d + (heads + 2 * kv) * d;
  if (model.is_gated && is_eager) attention += (heads + kv) * d;
  const double parts = model.is_gated ? (is_eager ? 4 : 3) : 2;
  double inner = static_cast<double>(model.inner()) / static_cast<double>(slice.tensor);
  if (!is_dense) {
    inner = static_cast<double>(model.inner_of_expert()) *
            (static_cast<double>(model.experts_per_token) / static_cast<double>(slice.tensor_of_experts()) +
             static_cast<double>(model.shared_experts) / static_cast<double>(slice.tensor));
    attention += 2 * h * static_cast<double>(model.experts_per_token);  // Tokens sorted by expert, before and behind.
  }
  // Of the whole width: both norms' inputs and outputs, and a byte of dropout's masks.
  double kept = own * h * (4 * element + (software.has_dropout ? 2 : 0));
  kept += tokens * element * (attention + parts * inner) + tokens * heads * 4;
  if (software.attention == AttentionKernels::unfused && recompute == Recompute::none) {
    const double scores = tokens * heads * static_cast<double>(slice.sequence);
    kept += scores * (2 * element + (software.has_dropout ? 1 : 0));
  }
  return kept * (software.is_mixed ? constants::mixed_kept : 1);
}

MemoryUse peak_memory(const ModelShape& model, const Slice& slice, const Software& software, Recompute recompute,
                      const Held& held) {
  const bool is_wide = software.is_mixed || bytes_of(software.activations()) > 2;
  const double element = is_wide ? 4 : 2;
  const bool keeps_copies = software.kernels == Kernels::fused && !is_wide;  // Weights and gradients in fp32 as well.
  MemoryUse use;
  use.weights = element * held.weights / held.sharers;
  const double gradients = (keeps_copies ? 4 : element) * held.weights / held.sharers;
  use.optimizer = (keeps_copies ? 12 : 2 * element) * held.weights / held.replicas;
  const double casts = software.is_mixed ? 2 * held.weights : 0;
  const auto kept = [&](Recompute how) {
    return held.dense_layers * kept_bytes(model, slice, software, how, true) +
           (held.layers - held.dense_layers) * kept_bytes(model, slice, software, how, false);
  };
  use.activations = kept(recompute);
  const double of_layer = held.layers > 0 ? kept(Recompute::none) / held.layers : 0;
  const auto tokens = static_cast<double>(slice.tokens());
  const double scores =
      held.has_output ? tokens * static_cast<double>(model.vocabulary) / static_cast<double>(slice.tensor) : 0;
  const double of_score = software.kernels == Kernels::compiled ? constants::compiled_score : constants::score;
  const bool adds_up = held.micro_batches > 1 || keeps_copies;
  const double again = recompute == Recompute::full ? of_layer : 0;
  const double table = element * held.embedding;
  // What each moment holds beside weights, the optimizer's state and activations.
  const std::array<double, 3> gradients_then = {adds_up ? gradients : 0,
                                                adds_up ? gradients : std::min(gradients, table), gradients};
  const std::array<double, 3> working = {
      casts + scores * of_score + tokens * static_cast<double>(model.hidden) * constants::loss_width,
      casts + again + constants::layer_back * of_layer, (model.is_tied ? 2 : 1) * table};
  const std::array<double, 3> activations = {use.activations, use.activations, 0};
  std::size_t fullest = 0;
  for (std::size_t i = 1; i < 3; ++i) {
    if (gradients_then[i] + working[i] + activations[i] >
        gradients_then[fullest] + working[fullest] + activations[fullest])
      fullest = i;
  }
  use.gradients = gradients_then[fullest];
  use.activations = activations[fullest];
  use.working = working[fullest] + constants::libraries;
  return use;
}

}  // namespace espalier::compute
