#pragma once

#include <array>
#include <string_view>

/// The keys that may stand in each kind of map of a profile; docs/profiles.md and the JSON Schema name the same.
namespace espalier::profile::profile_keys {

constexpr std::array<std::string_view, 9> file = {"espalier_profile", "name",  "about",      "channels", "processors",
                                                  "launch",           "links", "algorithms", "sources"};
constexpr std::array<std::string_view, 3> links = {"fabric", "pcie", "network"};
constexpr std::array<std::string_view, 6> algorithms = {"ring", "tree", "nvls", "nvls_tree", "pat", "p2p"};
constexpr std::array<std::string_view, 3> protocols = {"ll", "ll128", "simple"};
constexpr std::array<std::string_view, 13> way = {"base",      "per_rank", "fabric", "pcie",  "network",
                                                  "message",   "payload",  "rate",   "chunk", "least_chunk",
                                                  "in_flight", "most",     "since"};

}  // namespace espalier::profile::profile_keys
