#pragma once

// Tested by: tests/unit/topology/routes_test.cpp

#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"
#include "topology/topology.h"

namespace espalier {

/// A way from one rank to another whose inner nodes only forward.
struct FoundRoute {
  std::vector<LinkId> links;  ///< In the order a message takes them; never empty.
  Bandwidth bottleneck;       ///< The smallest rate of its links and of the backplanes of all its nodes.
  Picoseconds latency;        ///< Sum over the links, capped at the largest value.
};

struct RouteOptions {
  /// The message that the route should be fastest for: least latency + size/bottleneck. Zero asks for the least
  /// latency, a large size for the widest route; ties go to less latency, then to fewer links.
  Bytes size{std::int64_t{1} << 20};
  /// Equally good ways are numbered; the one taken moves on by `variant`. So a planner that sends over several channels
  /// uses every parallel link, NIC or spine by asking for variants 0, 1, 2, ...
  std::uint32_t variant = 0;
};

/// The best route from `src` to every other rank, by rank; nothing for `src` itself and for ranks that are reached only
/// through other ranks. Equally good ways (parallel links, switches, spines, NICs) are dealt out in turn over the
/// destinations behind them, and over the sources where one destination is left, so that pairs do not pile on the
/// first. The same input gives the same routes on every machine. Cost: O(L d log(L d)) for L links and d different
/// rates on them (in practice a handful).
std::vector<std::optional<FoundRoute>> routes_from(const Topology& topology, Rank src,
                                                   const RouteOptions& options = {});

/// The same for the variants 0, 1, 2, ... up to `variants`, which take one search together.
std::vector<std::vector<std::optional<FoundRoute>>> route_variants_from(const Topology& topology, Rank src, Bytes size,
                                                                        std::uint32_t variants);

/// The entry of `dst` in `routes_from(topology, src, options)`.
std::optional<FoundRoute> find_route(const Topology& topology, Rank src, Rank dst, const RouteOptions& options = {});

}  // namespace espalier
