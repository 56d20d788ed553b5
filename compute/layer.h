#pragma once

// Tested by: tests/unit/compute/layer_test.cpp

#include "compute/model.h"

namespace espalier::compute {

/// Half a layer, attention or feed-forward with the norm before and the addition behind it: seconds of the GPU and of
/// the host, which launches each kernel.
struct HalfTime {
  double forward = 0;
  double backward = 0;   ///< Without what is computed again.
  double core = 0;       ///< Of `forward`: attention between its products, which selective recompute repeats.
  double core_back = 0;  ///< The same of `backward`.
  double host_forward = 0;
  double host_backward = 0;

  /// What the backward pass takes with what it computes again.
  [[nodiscard]] HalfTime with(Recompute recompute) const;
};

HalfTime attention_half(const Gpu& gpu, const ModelShape& model, const Slice& slice, const Software& software);
/// Of a dense layer, or of one with experts, whose tokens are spread evenly.
HalfTime feed_forward_half(const Gpu& gpu, const ModelShape& model, const Slice& slice, const Software& software,
                           bool is_dense);

/// Of half a layer's backward pass: what gradients of weights take, as long as the forward pass's products.
double weights_seconds(const HalfTime& half);

/// What the host and the GPU take together where calls make each wait for the other now and then: the fourth power
/// mean.
double together(double busy, double host);

/// A layer that a rank computes for its own: no collective in between. The GPU waits for the host where that is slower.
BothWays layer_seconds(const Gpu& gpu, const ModelShape& model, const Slice& slice, const Software& software);

/// The embedding, the final norm, the output layer and the loss of a micro-batch.
BothWays ends_seconds(const Gpu& gpu, const ModelShape& model, const Slice& slice, const Software& software);

/// What the host takes to launch these: a trainer's hand-written kernels for embedding, norm, product and a loss over
/// tensor ranks are about as many as a layer's. Others': counted with their layers.
BothWays ends_host(const ModelShape& model, const Software& software);

/// One update of so many weights: the norm of their gradients, Adam, the copies that the precision needs.
double optimizer_seconds(const Gpu& gpu, double weights, const Software& software);

/// What adding a further micro-batch's gradients to those that are there takes.
double accumulation_seconds(const Gpu& gpu, double weights, const Software& software);

}  // namespace espalier::compute
