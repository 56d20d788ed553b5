#pragma once

// Tested by: tests/unit/profile/read_profile_test.cpp

#include <array>
#include <string_view>

/// The keys that may stand in each kind of map of a profile; docs/profiles.md and the JSON Schema name the same.
namespace espalier::profile::profile_keys {

constexpr std::array<std::string_view, 11> file = {"espalier_profile", "name",  "about", "channels", "processors",
                                                   "launch",           "links", "paths", "tuner",    "algorithms",
                                                   "sources"};
constexpr std::array<std::string_view, 5> launch = {"call", "per_rank", "per_send", "per_channel", "overlap"};
constexpr std::array<std::string_view, 4> tuner = {"generation", "fabric", "pcie", "network"};
constexpr std::array<std::string_view, 4> links = {"fabric", "pcie", "network", "switched"};
constexpr std::array<std::string_view, 9> algorithms = {"ring",          "tree", "nvls", "nvls_tree", "collnet_direct",
                                                        "collnet_chain", "pat",  "pxn",  "p2p"};
constexpr std::array<std::string_view, 3> protocols = {"ll", "ll128", "simple"};
constexpr std::array<std::string_view, 18> way = {
    "own",  "drain", "base",        "per_rank",  "fabric", "pcie",  "network",     "message",        "payload",
    "rate", "chunk", "least_chunk", "in_flight", "most",   "since", "per_channel", "fabric_between", "under_way"};

}  // namespace espalier::profile::profile_keys
