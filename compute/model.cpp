#include "compute/model.h"

namespace espalier::compute {

std::int64_t ModelShape::attention_weights() const {
  const std::int64_t d = head();
  if (kv_rank == 0) return hidden * d * (2 * heads + 2 * kv());
  const std::int64_t query = d + rotary_size;  // of one head
  const std::int64_t queries =
      query_rank == 0 ? hidden * heads * query : hidden * query_rank + query_rank * heads * query;
  return queries + hidden * (kv_rank + rotary_size) + kv_rank * heads * 2 * d + heads * d * hidden;
}

std::int64_t ModelShape::feed_forward_weights() const { return (is_gated ? 3 : 2) * hidden * inner(); }

std::int64_t ModelShape::expert_weights() const { return (is_gated ? 3 : 2) * hidden * inner_of_expert(); }

std::int64_t ModelShape::weights() const {
  const std::int64_t dense = experts == 0 ? layers : dense_layers;
  const std::int64_t norms = (is_gated ? 1 : 2) * hidden;
  const std::int64_t sparse = (experts + shared_experts) * expert_weights() + hidden * experts;
  return layers * (attention_weights() + 2 * norms) + dense * feed_forward_weights() + (layers - dense) * sparse +
         (is_tied ? 1 : 2) * vocabulary * hidden + positions * hidden + norms;
}

}  // namespace espalier::compute
