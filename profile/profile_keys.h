#pragma once

#include <array>
#include <string_view>

/// The keys that may stand in each kind of map of a profile; docs/profiles.md and the JSON Schema name the same.
namespace espalier::profile::profile_keys {

constexpr std::array<std::string_view, 8> file = {"espalier_profile", "name",  "about",      "channels",
                                                  "launch",           "links", "algorithms", "sources"};
constexpr std::array<std::string_view, 3> links = {"fabric", "pcie", "network"};
constexpr std::array<std::string_view, 5> algorithms = {"ring", "tree", "nvls", "nvls_tree", "p2p"};
constexpr std::array<std::string_view, 3> protocols = {"ll", "ll128", "simple"};
constexpr std::array<std::string_view, 10> way = {"base", "fabric", "pcie",        "network",   "payload",
                                                  "rate", "chunk",  "least_chunk", "in_flight", "most"};

}  // namespace espalier::profile::profile_keys
