#pragma once

// Tested by: tests/unit/topology/yaml/read_limits_test.cpp

#include <cstddef>
#include <cstdint>

namespace espalier {

/// What the topology reader takes at most. Past a limit an input is refused with an error, never cut short in silence.
/// What it may expand to is in read_topology.h (ExpansionLimits).
namespace read_limits {

constexpr std::size_t file_bytes = std::size_t{64} << 20U;  ///< One file.
constexpr std::size_t all_bytes = std::size_t{128} << 20U;  ///< A file and all that it includes.
/// Text inside one pair of outermost brackets: yaml-cpp holds all tokens of it at once, up to 250 bytes for a byte.
constexpr std::size_t flow_bytes = std::size_t{8} << 20U;
constexpr std::size_t open_brackets = 10'000;    ///< Brackets opened in a row before yaml-cpp has seen one close.
constexpr std::size_t depth = 32;                ///< Maps and lists inside each other.
constexpr std::uint64_t values = 8'000'000;      ///< Values of one file, those behind an alias counted at each use.
constexpr std::size_t name_bytes = 256;          ///< One node id, class or parameter name after expansion.
constexpr std::size_t substituted_bytes = 4096;  ///< One text with its parameters filled in.
constexpr std::size_t include_depth = 8;         ///< Files that include each other in a row.
constexpr std::size_t group_depth = 8;           ///< Groups inside groups.
constexpr std::uint64_t range = 1'000'000;       ///< Names that one range stands for, and the largest `count` of nodes.
constexpr std::int64_t link_count = 2'000'000;   ///< The largest `count` of links.
constexpr std::size_t errors = 50;               ///< Errors shown; more are counted only.

}  // namespace read_limits
}  // namespace espalier
