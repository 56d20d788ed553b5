#include "compute/zoo.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/suggest.h"

namespace espalier::compute {
namespace {

/// Learned positions, two matrices in the feed-forward part, embedding and output layer one.
constexpr NamedModel gpt(std::string_view name, std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                         std::int64_t sequence, std::int64_t vocabulary = 50304) {
  return {
      .name = name,
      .sequence = sequence,
      .shape = {.layers = layers, .hidden = hidden, .heads = heads, .vocabulary = vocabulary, .positions = sequence}};
}

/// Rotary positions, a gated feed-forward part, grouped keys and values, embedding and output layer apart.
constexpr NamedModel llama(std::string_view name, std::int64_t sequence, std::int64_t layers, std::int64_t hidden,
                           std::int64_t heads, std::int64_t kv_heads, std::int64_t feed_forward,
                           std::int64_t vocabulary, std::int64_t head_size = 0, bool is_tied = false) {
  return {.name = name,
          .sequence = sequence,
          .shape = {.layers = layers,
                    .hidden = hidden,
                    .heads = heads,
                    .kv_heads = kv_heads,
                    .head_size = head_size,
                    .feed_forward = feed_forward,
                    .is_gated = true,
                    .vocabulary = vocabulary,
                    .is_tied = is_tied}};
}

constexpr NamedModel sparse(NamedModel model, std::int64_t experts, std::int64_t per_token, std::int64_t width,
                            std::int64_t shared = 0, std::int64_t dense_layers = 0) {
  model.shape.experts = experts;
  model.shape.experts_per_token = per_token;
  model.shape.expert_width = width;
  model.shape.shared_experts = shared;
  model.shape.dense_layers = dense_layers;
  return model;
}

constexpr NamedModel latent(NamedModel model, std::int64_t query_rank, std::int64_t kv_rank, std::int64_t rotary) {
  model.shape.query_rank = query_rank;
  model.shape.kv_rank = kv_rank;
  model.shape.rotary_size = rotary;
  return model;
}

// GPT-3: T. Brown et al., "Language models are few-shot learners", 2020, table 2.1; the vocabulary rounded up as
// Megatron does. GPT of Megatron: D. Narayanan et al., SC 2021, table 1. BLOOM: T. Le Scao et al., 2022, table 3.
// LLaMA: H. Touvron et al., 2023, table 2, and "Llama 2", table 1; Llama 3: A. Dubey et al., 2024, table 3, Llama 3.2's
// model card. Mistral 7B: A. Jiang et al., 2023, table 1. Mixtral: "Mixtral of experts", 2024, table 1, and 8x22B's
// configuration. Qwen2.5 and Qwen3: their technical reports of 2024 and 2025. DeepSeek-V3: its technical report of
// 2024, section 4.2.
constexpr std::array named_models = {
    gpt("gpt-3-125m", 12, 768, 12, 2048),
    gpt("gpt-3-1.3b", 24, 2048, 16, 2048),
    gpt("gpt-3-2.7b", 32, 2560, 32, 2048),
    gpt("gpt-3-6.7b", 32, 4096, 32, 2048),
    gpt("gpt-3-13b", 40, 5120, 40, 2048),
    gpt("gpt-3-175b", 96, 12288, 96, 2048, 51200),
    gpt("megatron-18b", 40, 6144, 48, 2048, 51200),
    gpt("megatron-39b", 48, 8192, 64, 2048, 51200),
    gpt("megatron-530b", 105, 20480, 128, 2048, 51200),
    gpt("megatron-1t", 128, 25600, 160, 2048, 51200),
    gpt("bloom-176b", 70, 14336, 112, 2048, 250880),
    llama("llama-7b", 2048, 32, 4096, 32, 32, 11008, 32000),
    llama("llama-13b", 2048, 40, 5120, 40, 40, 13824, 32000),
    llama("llama-65b", 2048, 80, 8192, 64, 64, 22016, 32000),
    llama("llama-2-7b", 4096, 32, 4096, 32, 32, 11008, 32000),
    llama("llama-2-13b", 4096, 40, 5120, 40, 40, 13824, 32000),
    llama("llama-2-70b", 4096, 80, 8192, 64, 8, 28672, 32000),
    llama("llama-3-8b", 8192, 32, 4096, 32, 8, 14336, 128256),
    llama("llama-3-70b", 8192, 80, 8192, 64, 8, 28672, 128256),
    llama("llama-3-405b", 8192, 126, 16384, 128, 8, 53248, 128256),
    llama("llama-3.2-1b", 8192, 16, 2048, 32, 8, 8192, 128256, 64, true),
    llama("mistral-7b", 8192, 32, 4096, 32, 8, 14336, 32000),
    llama("qwen2.5-7b", 4096, 28, 3584, 28, 4, 18944, 152064),
    llama("qwen2.5-32b", 4096, 64, 5120, 40, 8, 27648, 152064),
    llama("qwen2.5-72b", 4096, 80, 8192, 64, 8, 29568, 152064),
    llama("qwen3-32b", 4096, 64, 5120, 64, 8, 25600, 151936, 128),
    sparse(llama("mixtral-8x7b", 4096, 32, 4096, 32, 8, 14336, 32000), 8, 2, 14336),
    sparse(llama("mixtral-8x22b", 4096, 56, 6144, 48, 8, 16384, 32768), 8, 2, 16384),
    sparse(llama("qwen3-30b-a3b", 4096, 48, 2048, 32, 4, 6144, 151936, 128), 128, 8, 768),
    sparse(llama("qwen3-235b-a22b", 4096, 94, 4096, 64, 4, 12288, 151936, 128), 128, 8, 1536),
    latent(sparse(llama("deepseek-v3", 4096, 61, 7168, 128, 128, 18432, 129280, 128), 256, 8, 2048, 1, 3), 1536, 512,
           64),
};

}  // namespace

std::span<const NamedModel> models() { return named_models; }

Result<const NamedModel*> find_model(std::string_view name) {
  const auto* const found = std::ranges::find(named_models, name, &NamedModel::name);
  if (found != named_models.end()) return found;
  std::vector<std::string_view> names;
  for (const NamedModel& model : named_models) names.push_back(model.name);
  return fail(ErrorCode::invalid_input, fmt::format("there is no model '{}'", name.substr(0, 60)),
              suggest(name, names));
}

}  // namespace espalier::compute
