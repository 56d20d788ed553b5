#pragma once

// Tested by: tests/unit/scenario/read/read_scenario_test.cpp

#include <array>
#include <string_view>

namespace espalier::scenario {

/// The keys that may stand in each kind of map of a scenario file; docs/scenarios.md and the JSON Schema name the same.
namespace scenario_keys {

constexpr std::array<std::string_view, 15> file = {
    "espalier_scenario", "name",     "topology",   "model",      "seed",   "chunk", "endpoints", "jitter", "groups",
    "collectives",       "training", "background", "stragglers", "events", "replan"};
constexpr std::array<std::string_view, 5> endpoints = {"protocol", "payload", "launch", "copy_engines", "per_message"};
constexpr std::array<std::string_view, 2> jitter = {"hops", "compute"};
constexpr std::array<std::string_view, 3> group = {"ranks", "of", "across"};
constexpr std::array<std::string_view, 13> collective = {"name",  "collective", "group",      "size",  "type",
                                                         "chunk", "algorithm",  "root",       "start", "repeat",
                                                         "gap",   "gossip",     "compression"};
constexpr std::array<std::string_view, 60> training = {"ranks",
                                                       "trace",
                                                       "spmd",
                                                       "layers",
                                                       "hidden",
                                                       "heads",
                                                       "kv_heads",
                                                       "feed_forward",
                                                       "gated",
                                                       "sequence",
                                                       "vocabulary",
                                                       "batch",
                                                       "micro_batch",
                                                       "experts",
                                                       "experts_per_token",
                                                       "type",
                                                       "gradients",
                                                       "flops",
                                                       "utilisation",
                                                       "recompute",
                                                       "optimizer",
                                                       "tensor",
                                                       "sequence_parallel",
                                                       "pipeline",
                                                       "virtual_stages",
                                                       "data",
                                                       "expert",
                                                       "sharding",
                                                       "bucket",
                                                       "steps",
                                                       "algorithms",
                                                       "chunk",
                                                       "chunks",
                                                       "memory",
                                                       "gossip",
                                                       "compression",
                                                       "gpu",
                                                       "model",
                                                       "precision",
                                                       "schedule",
                                                       "stage_layers",
                                                       "head_size",
                                                       "query_rank",
                                                       "kv_rank",
                                                       "rotary_size",
                                                       "expert_feed_forward",
                                                       "shared_experts",
                                                       "dense_layers",
                                                       "context",
                                                       "context_exchange",
                                                       "expert_tensor",
                                                       "shard_group",
                                                       "tied",
                                                       "causal",
                                                       "attention",
                                                       "kernels",
                                                       "dropout",
                                                       "slowed",
                                                       "overlap_param_gather",
                                                       "tp_comm_overlap"};
constexpr std::array<std::string_view, 10> experts = {"count",   "skew",    "matrix",   "dispatch", "precision",
                                                      "combine", "changes", "capacity", "layers",   "placement"};
constexpr std::array<std::string_view, 3> gossip = {"accuracy", "rounds", "graph"};
constexpr std::array<std::string_view, 1> compression = {"low_rank"};
constexpr std::array<std::string_view, 4> algorithms = {"tensor", "data", "expert", "context"};
constexpr std::array<std::string_view, 5> chunks = {"tensor", "data", "expert", "pipeline", "context"};
/// Those of `training` that may stand beside `trace`.
constexpr std::array<std::string_view, 6> trace = {"trace", "spmd", "ranks", "type", "flops", "chunk"};
constexpr std::array<std::string_view, 4> background = {"pairs", "size", "load", "ranks"};
constexpr std::array<std::string_view, 3> straggler = {"ranks", "compute", "start"};
constexpr std::array<std::string_view, 7> event = {"at", "link", "rate", "down", "for", "every", "times"};
constexpr std::array<std::string_view, 1> replan = {"detection"};

}  // namespace scenario_keys
}  // namespace espalier::scenario
