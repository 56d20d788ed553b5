#pragma once

// Tested by: tests/unit/topology/yaml/schema_test.cpp

#include <array>
#include <string_view>

namespace espalier {

/// The keys that may stand in each kind of map of a topology file; docs/topology.md and the JSON Schema name the same.
namespace read_keys {

constexpr std::array<std::string_view, 11> file = {"espalier", "name",  "profile", "gpu",   "parameters", "include",
                                                   "classes",  "nodes", "groups",  "links", "provenance"};
constexpr std::array<std::string_view, 8> group = {"id",      "count", "host",   "include",
                                                   "classes", "nodes", "groups", "links"};
constexpr std::array<std::string_view, 2> include = {"file", "parameters"};
constexpr std::array<std::string_view, 5> link_class = {"bandwidth", "latency", "overhead", "efficiency", "reported"};
constexpr std::array<std::string_view, 12> node = {
    "id",        "count",     "kind", "rank", "relay", "bandwidth", "reduce_bandwidth",
    "multicast", "reduction", "rail", "host", "model"};
constexpr std::array<std::string_view, 13> link = {"between",  "from",       "to",      "zip",       "all",
                                                   "one_way",  "count",      "class",   "bandwidth", "latency",
                                                   "overhead", "efficiency", "reported"};
constexpr std::array<std::string_view, 5> provenance = {"class", "key", "value", "origin", "source"};

}  // namespace read_keys
}  // namespace espalier
