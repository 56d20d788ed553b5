#pragma once

// Tested by: tests/unit/compute/layer_test.cpp

/// Constants of the model of kernels, fitted to what one H100 takes (tests/accuracy/compute.py; PyTorch 2.11,
/// CUDA 13.0, eager; docs/accuracy.md). Seconds, parts, and bytes per element.
namespace espalier::compute::constants {

// Products.
inline constexpr double square_tile = 0.99;       ///< Rate of a tile of 128 x 128 over that of 128 x 256.
inline constexpr double narrow_tile = 0.95;       ///< Of 128 x 64.
inline constexpr double small_tile = 0.505;       ///< Of 64 x 64.
inline constexpr double turn = 0.578;             ///< What the empty part of the last turn costs.
inline constexpr double min_depth = 512;          ///< Of a part of a depth that is cut.
inline constexpr double split_overhead = 8.0e-6;  ///< Of adding up the parts of a depth that is cut.
inline constexpr double kernel_overhead = 4.6e-6;

// Attention.
inline constexpr double odd_head = 0.89;         ///< Rate of a head size that is no multiple of 64.
inline constexpr double wide_head = 0.894;       ///< Of one above 128.
inline constexpr double causal_start = 545;      ///< Keys that a causal head's computation takes longer by.
inline constexpr double attention_start = 99;    ///< The same where all keys count.
inline constexpr double attention_turn = 0.963;  ///< What the empty part of the last turn costs.
inline constexpr double attention_overhead = 3.9e-6;
inline constexpr double attention_back_overhead = 39.8e-6;

// Kernels that memory bounds: times that a value is written or read.
inline constexpr double memory_gap = 0.9e-6;  ///< Between kernels, seconds.
inline constexpr double norm = 2.0;
inline constexpr double norm_back = 6.0;
inline constexpr double residual_back = 2.16;
inline constexpr double join = 4.2;     ///< Of both parts' gradients into one, eager.
inline constexpr double rotary = 18.3;  ///< Of queries and keys, eager.
inline constexpr double rotary_back = 18.8;
inline constexpr double transposed = 1.18;         ///< Of gradients of queries, keys and values.
inline constexpr double gradient_writes = 1.28;    ///< Of weights.
inline constexpr double fused_gradient_bytes = 8;  ///< Per weight, added in fp32 by the product.
inline constexpr double mixed_gradient_bytes = 3.5;
inline constexpr double mixed_bytes = 17;  ///< Per half layer, of casts of activations.
inline constexpr double cast = 10.7;       ///< Bytes per element cast to fp8, both ways round.

// The loss, bytes per score.
inline constexpr double loss = 51.7;
inline constexpr double fused_loss = 24;
inline constexpr double embedding_back = 0.75;  ///< Of the embedding's gradient.

// The optimizer, bytes per weight at the rate of plain streams.
inline constexpr double narrow_update = 26.4;  ///< All in 16 bits.
inline constexpr double wide_update = 51.9;    ///< In fp32, with the norm of gradients and copies in 16 bits.
inline constexpr double update_overhead = 830e-6;
/// In fp32 by kernels for many tensors at once: the gradient in 16 bits read and written in fp32 (6), then gradient,
/// weight and two moments read (16), weight and moments written (12), and the weight in 16 bits (2).
inline constexpr double fused_update = 36;

// The host, seconds per layer (two threads of it, one forward, one backward).
inline constexpr double plain_host_forward = 330e-6;
inline constexpr double plain_host_backward = 1105e-6;
inline constexpr double gated_host_forward = 480e-6;
inline constexpr double gated_host_backward = 1646e-6;
inline constexpr double alone_host = 1.228;   ///< Where a layer is timed on its own.
inline constexpr double trainer_host = 1.93;  ///< How much longer Megatron and its like take to launch.
inline constexpr double compiled_host = 0.5;
inline constexpr double product_host = 26.2e-6;  ///< Of one product from Python.
inline constexpr double attention_host = 46e-6;
inline constexpr double attention_both_host = 300e-6;

// Memory, bytes.
inline constexpr double score = 12;  ///< Per score of the loss: in fp32 itself, its logarithm, its gradient.
inline constexpr double compiled_score = 2.2;
inline constexpr double loss_width = 4.2;  ///< Per token and width.
inline constexpr double layer_back = 0.3;  ///< Of a layer's kept values: gradients of them.
inline constexpr double mixed_kept = 1.03;
inline constexpr double libraries = 337e6;

// Steps of many ranks.
inline constexpr double slowed = 0.35;         ///< Of computing, by calls beside it.
inline constexpr double last_bucket = 0.25;    ///< Of the calls of gradients, that nothing is left to hide.
inline constexpr double tensor_hidden = 0.47;  ///< Of the calls of tensor ranks, beside products.
inline constexpr double gather_again = 0.25;

}  // namespace espalier::compute::constants
