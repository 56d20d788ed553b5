#include "cli/compute/questions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/suggest.h"
#include "compute/constants.h"
#include "compute/layer.h"
#include "compute/product.h"
#include "compute/zoo.h"

namespace espalier::cli {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::array<std::pair<std::string_view, compute::Kernels>, 3> kernel_names = {
    {{"eager", compute::Kernels::eager}, {"compiled", compute::Kernels::compiled}, {"fused", compute::Kernels::fused}}};
constexpr std::array<std::pair<std::string_view, compute::Recompute>, 3> recompute_names = {
    {{"none", compute::Recompute::none},
     {"selective", compute::Recompute::selective},
     {"full", compute::Recompute::full}}};

compute::ModelShape read_model(Members& members) {
  compute::ModelShape model;
  const std::string name = members.text("model", "");
  if (!name.empty()) {
    const auto found = compute::find_model(name);
    if (found) {
      model = (*found)->shape;
    } else {
      members.refuse(found.error().message, found.error().help);
    }
  }
  const auto size = [&](const char* key, std::int64_t& place, std::int64_t least) {
    place = members.whole(key, place, least);
  };
  size("layers", model.layers, 1);
  model.hidden = name.empty() ? members.needed("hidden") : members.whole("hidden", model.hidden, 1);
  model.heads = name.empty() ? members.needed("heads") : members.whole("heads", model.heads, 1);
  size("kv_heads", model.kv_heads, 0);
  size("head_size", model.head_size, 0);
  size("feed_forward", model.feed_forward, 0);
  model.is_gated = members.flag("gated", model.is_gated);
  model.is_causal = members.flag("causal", model.is_causal);
  size("vocabulary", model.vocabulary, 0);
  model.is_tied = members.flag("tied", model.is_tied);
  size("positions", model.positions, 0);
  size("experts", model.experts, 0);
  size("experts_per_token", model.experts_per_token, 1);
  size("expert_feed_forward", model.expert_width, 0);
  size("shared_experts", model.shared_experts, 0);
  size("dense_layers", model.dense_layers, 0);
  size("query_rank", model.query_rank, 0);
  size("kv_rank", model.kv_rank, 0);
  size("rotary_size", model.rotary_size, 0);
  return model;
}

compute::Slice read_slice(Members& members) {
  compute::Slice slice;
  slice.tensor = members.whole("tensor", 1, 1);
  slice.is_sequence_parallel = members.flag("sequence_parallel", false);
  slice.context = members.whole("context", 1, 1);
  slice.expert = members.whole("expert", 1, 1);
  slice.expert_tensor = members.whole("expert_tensor", 0);
  slice.micro_batch = members.whole("micro_batch", 1, 1);
  slice.sequence = members.needed("sequence");
  return slice;
}

compute::Software read_software(Members& members) {
  compute::Software software;
  software.kernels = named(members, "kernels", kernel_names, software.kernels);
  software.attention = members.take(compute::parse_attention(members.text("attention", "flash3")), software.attention);
  software.precision = members.take(compute::parse_precision(members.text("precision", "bf16")), software.precision);
  software.is_mixed = members.flag("mixed", false);
  software.has_dropout = members.flag("dropout", false);
  software.products = members.number("products", 1);
  software.host = members.number("host", 1);
  software.slowed = members.number("slowed", software.slowed);
  software.last_bucket = members.number("last_bucket", software.last_bucket);
  software.tensor_hidden = members.number("tensor_hidden", software.tensor_hidden);
  return software;
}

Result<ordered_json> answer_product(const compute::Gpu& gpu, const json& asked) {
  Members members(asked, "product");
  compute::Product product;
  product.rows = members.needed("rows");
  product.columns = members.needed("columns");
  product.depth = members.needed("depth");
  product.batch = members.whole("batch", 1, 1);
  product.precision = members.take(compute::parse_precision(members.text("precision", "bf16")), product.precision);
  if (auto checked = members.finish(); !checked) return tl::unexpected(checked.error());
  const double busy = compute::product_seconds(gpu, product);
  return ordered_json{{"seconds", std::max(busy, compute::constants::product_host)}, {"busy", busy}};
}

Result<ordered_json> answer_attention(const compute::Gpu& gpu, const json& asked) {
  Members members(asked, "attention");
  compute::Attention attention;
  attention.batch = members.whole("batch", 1, 1);
  attention.heads = members.needed("heads");
  attention.queries = attention.keys = members.needed("sequence");
  attention.head_size = members.needed("head_size");
  attention.is_causal = members.flag("causal", true);
  attention.has_dropout = members.flag("dropout", false);
  attention.precision = members.take(compute::parse_precision(members.text("precision", "bf16")), attention.precision);
  attention.kernels = members.take(compute::parse_attention(members.text("kernels", "flash3")), attention.kernels);
  if (auto checked = members.finish(); !checked) return tl::unexpected(checked.error());
  const compute::BothWays busy = compute::attention_seconds(gpu, attention);
  return ordered_json{{"forward", std::max(busy.forward, compute::constants::attention_host)},
                      {"both", std::max(busy.forward + busy.backward, compute::constants::attention_both_host)}};
}

Result<ordered_json> answer_layer(const compute::Gpu& gpu, const json& asked) {
  Members members(asked, "layer");
  const Workload workload = read_workload(members);
  if (auto checked = members.finish(); !checked) return tl::unexpected(checked.error());
  const auto& [model, slice, software, recompute] = workload;
  const compute::BothWays seconds = compute::layer_seconds(gpu, model, slice, software);
  return ordered_json{{"forward", seconds.forward},
                      {"both", seconds.forward + seconds.backward},
                      {"kept_bytes", compute::kept_bytes(model, slice, software, recompute, model.experts == 0)}};
}

/// A step of a model that one GPU holds whole.
Result<ordered_json> answer_step(const compute::Gpu& gpu, const json& asked) {
  Members members(asked, "step");
  const Workload workload = read_workload(members);
  const std::int64_t accumulation = members.whole("accumulation", 1, 1);
  if (auto checked = members.finish(); !checked) return tl::unexpected(checked.error());
  const auto& [model, slice, software, recompute] = workload;
  const auto weights = static_cast<double>(model.weights());
  double busy = 0, host = 0;
  for (const bool is_dense : {true, false}) {
    const std::int64_t dense = model.experts == 0 ? model.layers : std::min(model.layers, model.dense_layers);
    const auto layers = static_cast<double>(is_dense ? dense : model.layers - dense);
    if (layers == 0) continue;
    for (const compute::HalfTime& half : {compute::attention_half(gpu, model, slice, software),
                                          compute::feed_forward_half(gpu, model, slice, software, is_dense)}) {
      const compute::HalfTime time = half.with(recompute);
      busy += layers * (time.forward + time.backward);
      host += layers * (time.host_forward + time.host_backward);
    }
  }
  const compute::BothWays ends = compute::ends_seconds(gpu, model, slice, software);
  const double of_micro_batch = std::max(busy + ends.forward + ends.backward, host);
  const double seconds = of_micro_batch * static_cast<double>(accumulation) +
                         compute::accumulation_seconds(gpu, weights, software) * static_cast<double>(accumulation - 1) +
                         compute::optimizer_seconds(gpu, weights, software);
  const compute::Held held{.weights = weights,
                           .layers = static_cast<double>(model.layers),
                           .dense_layers = static_cast<double>(
                               model.experts == 0 ? model.layers : std::min(model.layers, model.dense_layers)),
                           .embedding = static_cast<double>(model.vocabulary * model.hidden),
                           .micro_batches = accumulation};
  const compute::MemoryUse use = compute::peak_memory(model, slice, software, recompute, held);
  return ordered_json{{"seconds", seconds}, {"peak_bytes", use.total()}, {"fits", use.total() <= gpu.memory}};
}

/// `gpu`: a name, or one that is like a known GPU but for what it says itself.
Result<compute::Gpu> read_gpu(Members& members) {
  const json* const asked = members.find("gpu");
  if (asked == nullptr || !asked->is_object()) {
    const auto known = compute::find_gpu(members.text("gpu", "h100-sxm"));
    if (!known) return tl::unexpected(known.error());
    return **known;
  }
  Members own(*asked, "gpu");
  const auto like = compute::find_gpu(own.text("like", "h100-sxm"));
  if (!like) return tl::unexpected(like.error());
  compute::Gpu gpu = **like;
  constexpr std::array<std::pair<const char*, double compute::Gpu::*>, 11> rates = {
      {{"bf16", &compute::Gpu::bf16},
       {"fp8", &compute::Gpu::fp8},
       {"fp4", &compute::Gpu::fp4},
       {"tf32", &compute::Gpu::tf32},
       {"fp32", &compute::Gpu::fp32},
       {"memory_rate", &compute::Gpu::memory_rate},
       {"memory", &compute::Gpu::memory},
       {"memory_part", &compute::Gpu::memory_part},
       {"tile_part", &compute::Gpu::tile_part},
       {"tile_overhead", &compute::Gpu::tile_overhead},
       {"sustained", &compute::Gpu::sustained}}};
  for (const auto& [key, place] : rates) gpu.*place = own.number(key, gpu.*place);
  gpu.multiprocessors = static_cast<int>(
      std::min<std::int64_t>(own.whole("multiprocessors", gpu.multiprocessors, 1), std::int64_t{1} << 20U));
  const double attention = own.number("attention", 1);
  for (compute::AttentionRates* const rates_of : {&gpu.first, &gpu.second, &gpu.third}) {
    rates_of->forward *= attention;
    rates_of->backward *= attention;
  }
  if (auto checked = own.finish(); !checked) return tl::unexpected(checked.error());
  return gpu;
}

}  // namespace

Workload read_workload(Members& members) {
  Workload workload;
  workload.model = read_model(members);
  workload.slice = read_slice(members);
  workload.software = read_software(members);
  workload.recompute = named(members, "recompute", recompute_names, workload.recompute);
  if (workload.model.head_size == 0 && workload.model.hidden % workload.model.heads != 0) {
    members.refuse(fmt::format("hidden {} is no multiple of heads {}", workload.model.hidden, workload.model.heads),
                   "give head_size");
  }
  return workload;
}

Result<ordered_json> answer_question(const json& question) {
  if (!question.is_object()) return fail(ErrorCode::invalid_input, "a question is an object", "see docs/compute.md");
  Members members(question, "question");
  const auto gpu = read_gpu(members);
  if (!gpu) return tl::unexpected(gpu.error());
  using Answerer = Result<ordered_json> (*)(const compute::Gpu&, const json&);
  constexpr std::array<std::pair<const char*, Answerer>, 5> kinds = {{{"product", answer_product},
                                                                      {"attention", answer_attention},
                                                                      {"layer", answer_layer},
                                                                      {"step", answer_step},
                                                                      {"training", answer_training}}};
  for (const auto& [kind, answer] : kinds) {
    const json* const asked = members.find(kind);
    if (asked == nullptr) continue;
    if (!asked->is_object()) return fail(ErrorCode::invalid_input, fmt::format("'{}' is an object", kind));
    return answer(*gpu, *asked);
  }
  if (auto checked = members.finish(); !checked) return tl::unexpected(checked.error());
  return fail(ErrorCode::invalid_input, "the question asks nothing",
              "give product, attention, layer, step or training");
}

}  // namespace espalier::cli
