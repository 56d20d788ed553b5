#include "compute/layer.h"

#include <algorithm>
#include <cmath>

#include "compute/constants.h"
#include "compute/product.h"

namespace espalier::compute {
namespace {

/// Seconds of a layer's kernels, added up one by one.
class Adder {
 public:
  Adder(const Gpu& gpu, const Software& software) : gpu_(gpu), software_(software) {}

  /// x [tokens, depth] times W [columns, depth], `batch` of them; the backward pass has two such.
  void product(std::int64_t tokens, std::int64_t columns, std::int64_t depth, std::int64_t batch = 1) {
    const Precision precision = software_.precision;
    const auto seconds = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
      return product_seconds(gpu_, {m, n, k, batch, precision}) / software_.products;
    };
    time_.forward += seconds(tokens, columns, depth);
    time_.backward += seconds(tokens, depth, columns) + seconds(columns, depth, tokens);
    if (precision == Precision::fp8 ||
        precision == Precision::fp4) {  // What goes in is cast, and kept as it is and turned.
      const auto rows = static_cast<double>(tokens * batch);
      stream(rows * static_cast<double>(depth) * constants::cast,
             rows * static_cast<double>(columns) * constants::cast);
    }
    const double weights = static_cast<double>(columns) * static_cast<double>(depth) * static_cast<double>(batch);
    const double element = bytes_of(software_.activations());
    double back = constants::gradient_writes * element * weights;
    if (software_.kernels == Kernels::fused) back = constants::fused_gradient_bytes * weights;
    if (software_.is_mixed) back += constants::mixed_gradient_bytes * weights;
    time_.backward += back / gpu_.stream();
  }

  /// Kernels that memory bounds, by the bytes that they move.
  void stream(double forward, double backward) {
    if (forward > 0) time_.forward += forward / gpu_.stream() + constants::memory_gap;
    if (backward > 0) time_.backward += backward / gpu_.stream() + constants::memory_gap;
  }

  void core(const BothWays& both) {
    time_.forward += both.forward;
    time_.core += both.forward;
    time_.backward += both.backward;
    time_.core_back += both.backward;
  }

  /// The host's time for half a layer.
  void host(bool is_gated) {
    const double factor = software_.host * (software_.kernels == Kernels::compiled ? constants::compiled_host : 1);
    time_.host_forward += factor / 2 * (is_gated ? constants::gated_host_forward : constants::plain_host_forward);
    time_.host_backward += factor / 2 * (is_gated ? constants::gated_host_backward : constants::plain_host_backward);
  }

  [[nodiscard]] const HalfTime& time() const { return time_; }

 private:
  const Gpu& gpu_;
  const Software& software_;
  HalfTime time_;
};

/// Bytes of a value of that width for every token.
struct Sizes {
  double whole;  ///< Of a rank's tokens, per element of width.
  double own;    ///< Of its part of them between the products.
  Sizes(const Slice& slice, const Software& software)
      : whole(static_cast<double>(slice.tokens()) * bytes_of(software.activations())),
        own(whole / static_cast<double>(slice.is_sequence_parallel ? slice.tensor : 1)) {}
};

/// The norm before a half and the addition behind it.
void add_edges(Adder& adder, const Sizes& sizes, const ModelShape& model, const Software& software) {
  const double width = sizes.own * static_cast<double>(model.hidden);
  adder.stream(constants::norm * width, constants::norm_back * width);
  double add = 3 * width, add_back = constants::residual_back * width;
  if (software.has_dropout) {
    add += (software.kernels == Kernels::eager ? 2.5 : 0.5) * width;
    add_back += (software.kernels == Kernels::eager ? 2.5 : 1.5) * width;
  }
  adder.stream(add, add_back);
  if (software.is_mixed) adder.stream(constants::mixed_bytes * width, constants::mixed_bytes * width);
}

/// What stands between the matrices of a feed-forward part of that width.
void add_activation(Adder& adder, double width, bool is_gated, const Software& software) {
  if (!is_gated) return adder.stream(2 * width, 3 * width);
  if (software.kernels != Kernels::eager) return adder.stream(3 * width, 5 * width);
  adder.stream(2 * width, 3 * width);
  adder.stream(3 * width, 5 * width);
  adder.stream(0, 2 * constants::join * width);
}

void add_projections(Adder& adder, const ModelShape& model, const Slice& slice) {
  const std::int64_t tokens = slice.tokens(), d = model.head();
  const std::int64_t heads = std::max<std::int64_t>(1, model.heads / slice.tensor);
  if (model.kv_rank == 0) {
    const std::int64_t kv = std::max<std::int64_t>(1, model.kv() / slice.tensor);
    adder.product(tokens, (heads + 2 * kv) * d, model.hidden);
  } else {
    const std::int64_t query = d + model.rotary_size;
    if (model.query_rank > 0) {
      adder.product(tokens, model.query_rank, model.hidden);
      adder.product(tokens, heads * query, model.query_rank);
    } else {
      adder.product(tokens, heads * query, model.hidden);
    }
    adder.product(tokens, model.kv_rank + model.rotary_size, model.hidden);
    adder.product(tokens, heads * 2 * d, model.kv_rank);
  }
  adder.product(tokens, model.hidden, heads * d);
}

}  // namespace

HalfTime HalfTime::with(Recompute recompute) const {
  HalfTime time = *this;
  if (recompute == Recompute::none) return time;
  const bool is_full = recompute == Recompute::full;
  time.backward += is_full ? forward : core;
  if (is_full) time.host_backward += host_forward;
  return time;
}

HalfTime attention_half(const Gpu& gpu, const ModelShape& model, const Slice& slice, const Software& software) {
  Adder adder(gpu, software);
  const Sizes sizes(slice, software);
  const std::int64_t d = model.head();
  const std::int64_t heads = std::max<std::int64_t>(1, model.heads / slice.tensor);
  const std::int64_t kv = std::max<std::int64_t>(1, model.kv() / slice.tensor);
  add_edges(adder, sizes, model, software);
  add_projections(adder, model, slice);
  adder.core(attention_seconds(gpu, {.batch = slice.micro_batch,
                                     .heads = heads,
                                     .queries = std::max<std::int64_t>(1, slice.sequence / slice.context),
                                     .keys = slice.sequence,
                                     .head_size = model.kv_rank == 0 ? d : d + model.rotary_size / 2,
                                     .is_causal = model.is_causal,
                                     .has_dropout = software.has_dropout,
                                     .precision = software.activations(),
                                     .kernels = software.attention}));
  if (model.is_gated) {
    const double rotated = sizes.whole * static_cast<double>((heads + kv) * d);
    const bool is_eager = software.kernels == Kernels::eager;
    adder.stream((is_eager ? constants::rotary : 2) * rotated, (is_eager ? constants::rotary_back : 2) * rotated);
  }
  adder.stream(0, constants::transposed * sizes.whole * static_cast<double>((heads + 2 * kv) * d));
  adder.host(model.is_gated);
  return adder.time();
}

HalfTime feed_forward_half(const Gpu& gpu, const ModelShape& model, const Slice& slice, const Software& software,
                           bool is_dense) {
  Adder adder(gpu, software);
  const Sizes sizes(slice, software);
  add_edges(adder, sizes, model, software);
  const std::int64_t matrices_in = model.is_gated ? 2 : 1;
  const auto dense = [&](std::int64_t width) {
    adder.product(slice.tokens(), matrices_in * width, model.hidden);
    adder.product(slice.tokens(), model.hidden, width);
    add_activation(adder, sizes.whole * static_cast<double>(width), model.is_gated, software);
  };
  if (is_dense) {
    dense(std::max<std::int64_t>(1, model.inner() / slice.tensor));
  } else {
    // With tensor ranks beside expert ranks each has its part of the tokens that were sent.
    const std::int64_t own = std::max<std::int64_t>(1, model.experts / slice.expert);
    const std::int64_t shares = slice.tensor / std::max<std::int64_t>(1, slice.tensor_of_experts());
    const std::int64_t sent = slice.tokens() * model.experts_per_token / std::max<std::int64_t>(1, shares);
    const std::int64_t width = std::max<std::int64_t>(1, model.inner_of_expert() / slice.tensor_of_experts());
    const std::int64_t rows = std::max<std::int64_t>(1, sent / own);
    adder.product(rows, matrices_in * width, model.hidden, own);
    adder.product(rows, model.hidden, width, own);
    const double element = sizes.whole / static_cast<double>(slice.tokens());
    add_activation(adder, element * static_cast<double>(sent * width), model.is_gated, software);
    // Tokens are sorted by expert before and put back behind.
    adder.stream(4 * element * static_cast<double>(sent * model.hidden),
                 4 * element * static_cast<double>(sent * model.hidden));
    adder.host(model.is_gated);
    if (model.shared_experts > 0) {
      dense(std::max<std::int64_t>(1, model.shared_experts * model.inner_of_expert() / slice.tensor));
    }
  }
  adder.host(model.is_gated);
  return adder.time();
}

double weights_seconds(const HalfTime& half) { return std::min(half.forward - half.core, half.backward / 2); }

double together(double busy, double host) {
  const double a = busy * busy, b = host * host;
  return std::sqrt(std::sqrt(a * a + b * b));
}

BothWays layer_seconds(const Gpu& gpu, const ModelShape& model, const Slice& slice, const Software& software) {
  const HalfTime first = attention_half(gpu, model, slice, software);
  const HalfTime second = feed_forward_half(gpu, model, slice, software, model.experts == 0);
  // Timed on its own each pass waits for the host anew.
  const double alone = constants::alone_host;
  const double forward = std::max(first.forward + second.forward, alone * (first.host_forward + second.host_forward));
  const double both =
      std::max(first.forward + second.forward + first.backward + second.backward,
               alone * (first.host_forward + second.host_forward + first.host_backward + second.host_backward));
  return {forward, both - forward};
}

BothWays ends_seconds(const Gpu& gpu, const ModelShape& model, const Slice& slice, const Software& software) {
  if (model.vocabulary == 0) return {};
  Adder adder(gpu, software);
  Software plain = software;  // The output layer is not computed in fp8.
  plain.precision = software.activations();
  Adder head(gpu, plain);
  const std::int64_t columns = std::max<std::int64_t>(1, model.vocabulary / slice.tensor);
  head.product(slice.tokens(), columns, model.hidden);
  const double scores = static_cast<double>(slice.tokens()) * static_cast<double>(columns);
  const double of_loss = scores * (software.kernels == Kernels::eager ? constants::loss : constants::fused_loss);
  adder.stream(of_loss / 3, 2 * of_loss / 3);
  const Sizes sizes(slice, software);
  const double width = sizes.own * static_cast<double>(model.hidden);
  const double table =
      bytes_of(software.activations()) * static_cast<double>(columns) * static_cast<double>(model.hidden);
  adder.stream((constants::norm + 2) * width, (constants::norm_back + 2) * width + constants::embedding_back * table);
  return {adder.time().forward + head.time().forward, adder.time().backward + head.time().backward};
}

BothWays ends_host(const ModelShape& model, const Software& software) {
  if (model.vocabulary == 0 || software.kernels != Kernels::fused) return {};
  return {software.host * (model.is_gated ? constants::gated_host_forward : constants::plain_host_forward),
          software.host * (model.is_gated ? constants::gated_host_backward : constants::plain_host_backward)};
}

double optimizer_seconds(const Gpu& gpu, double weights, const Software& software) {
  if (software.kernels == Kernels::fused) return weights * constants::fused_update / gpu.stream();
  const bool is_wide = software.is_mixed || bytes_of(software.activations()) > 2;
  return weights * (is_wide ? constants::wide_update : constants::narrow_update) / gpu.stream() +
         constants::update_overhead;
}

double accumulation_seconds(const Gpu& gpu, double weights, const Software& software) {
  if (software.kernels == Kernels::fused) return 0;  // The product adds to them.
  return weights * 3 * (software.is_mixed ? 4 : bytes_of(software.activations())) / gpu.stream();
}

}  // namespace espalier::compute
