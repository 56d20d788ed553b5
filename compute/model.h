#pragma once

// Tested by: tests/unit/compute/layer_test.cpp

#include <cstdint>

#include "compute/attention.h"
#include "compute/constants.h"
#include "compute/gpu.h"

namespace espalier::compute {

/// A decoder-only (or, where attention is not causal, encoder-only) transformer.
struct ModelShape {
  std::int64_t layers = 1;
  std::int64_t hidden = 1;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 0;      ///< 0: as `heads`.
  std::int64_t head_size = 0;     ///< 0: hidden / heads.
  std::int64_t feed_forward = 0;  ///< 0: 4 x hidden.
  bool is_gated = false;          ///< Three matrices in the feed-forward part, and rotary positions.
  bool is_causal = true;
  std::int64_t vocabulary = 0;  ///< 0: neither embedding nor output layer.
  bool is_tied = true;          ///< Embedding and output layer are one matrix.
  std::int64_t positions = 0;   ///< Learned ones.

  std::int64_t experts = 0;  ///< Of a layer; 0: it is dense.
  std::int64_t experts_per_token = 1;
  std::int64_t expert_width = 0;    ///< Inner width of an expert; 0: `feed_forward`.
  std::int64_t shared_experts = 0;  ///< That every token goes to, of the same width.
  std::int64_t dense_layers = 0;    ///< The first layers, which have a dense feed-forward part.

  std::int64_t query_rank = 0;  ///< Latent attention: width of the compressed queries; 0: not compressed.
  std::int64_t kv_rank = 0;     ///< The same of keys and values; 0: plain attention.
  std::int64_t rotary_size =
      0;  ///< Latent attention: the part of a head's queries and keys that is rotated, beside `head_size`.

  [[nodiscard]] std::int64_t kv() const { return kv_heads == 0 ? heads : kv_heads; }
  [[nodiscard]] std::int64_t head() const { return head_size == 0 ? hidden / heads : head_size; }
  [[nodiscard]] std::int64_t inner() const { return feed_forward == 0 ? 4 * hidden : feed_forward; }
  [[nodiscard]] std::int64_t inner_of_expert() const { return expert_width == 0 ? inner() : expert_width; }
  [[nodiscard]] bool is_dense(std::int64_t layer) const { return experts == 0 || layer < dense_layers; }

  /// Weights of attention's matrices of a layer, of a dense feed-forward part, of one expert.
  [[nodiscard]] std::int64_t attention_weights() const;
  [[nodiscard]] std::int64_t feed_forward_weights() const;
  [[nodiscard]] std::int64_t expert_weights() const;
  /// All weights, with embedding and output layer.
  [[nodiscard]] std::int64_t weights() const;
};

/// What a rank has of a layer and of a micro-batch.
struct Slice {
  std::int64_t tensor = 1;            ///< Ranks that share each layer.
  bool is_sequence_parallel = false;  ///< Between its products each of them has its part of the tokens.
  std::int64_t context = 1;           ///< Ranks that share each sequence.
  std::int64_t expert = 1;            ///< Ranks that share the experts.
  std::int64_t expert_tensor = 0;     ///< Ranks that share an expert; 0: as `tensor`.
  std::int64_t micro_batch = 1;       ///< Sequences.
  std::int64_t sequence = 1;          ///< Tokens of one.

  [[nodiscard]] std::int64_t tokens() const { return micro_batch * sequence / context; }
  [[nodiscard]] std::int64_t tensor_of_experts() const { return expert_tensor == 0 ? tensor : expert_tensor; }
};

/// Who writes the kernels between the products.
enum class Kernels : std::uint8_t {
  eager,     ///< PyTorch's own, one for each operation.
  compiled,  ///< Made by a compiler out of several operations.
  fused,     ///< Hand-written for transformers, such as Megatron's and Transformer Engine's.
};

/// What is left of a layer's forward pass for the backward pass to use.
enum class Recompute : std::uint8_t {
  none,       ///< All that it needs.
  selective,  ///< All but attention's scores, which are computed again.
  full,       ///< The layer's input alone: the forward pass is run again.
};

/// How a model is computed.
struct Software {
  Kernels kernels = Kernels::eager;
  AttentionKernels attention = AttentionKernels::third;
  Precision precision = Precision::bf16;  ///< Of the large products; attention is never computed in fp8.
  bool is_mixed = false;                  ///< Weights are kept in fp32 and cast at every use (autocast).
  bool has_dropout = false;
  double products = 1;                          ///< Rate of products over that of today's libraries.
  double host = 1;                              ///< How much longer than the measured host this one takes to launch.
  double slowed = constants::slowed;            ///< Of computing, by calls beside it.
  double last_bucket = constants::last_bucket;  ///< Of gradients' calls, that nothing is left to hide.
  double tensor_hidden = constants::tensor_hidden;  ///< Of tensor ranks' calls, where they run beside products.

  /// Of activations, and of attention.
  [[nodiscard]] Precision activations() const {
    return precision == Precision::fp8 || precision == Precision::fp4 ? Precision::bf16 : precision;
  }
};

}  // namespace espalier::compute
