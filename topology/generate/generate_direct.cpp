#include <fmt/format.h>

#include <algorithm>

#include "topology/generate/generate.h"
#include "topology/topology_builder.h"

namespace espalier {

Result<void> check_count(const char* option, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value >= low && value <= high) return {};
  return fail(value > high ? ErrorCode::too_large : ErrorCode::invalid_input, fmt::format("{} is {}", option, value),
              fmt::format("give {} a value from {} to {}", option, low, high));
}

Result<void> check_wire(const Wire& wire) {
  if (wire.bandwidth.bytes_per_second <= 0) {
    return fail(ErrorCode::invalid_input, fmt::format("the bandwidth of {} links is not positive", wire.link_class));
  }
  if (wire.latency.count < 0) {
    return fail(ErrorCode::invalid_input, fmt::format("the latency of {} links is negative", wire.link_class));
  }
  return {};
}

Result<void> check_generated_size(__int128 nodes, __int128 links) {
  if (nodes <= max_generated_nodes && links <= max_generated_links) return {};
  return fail(ErrorCode::too_large,
              fmt::format("the topology would have {} nodes and {} links", static_cast<double>(nodes),
                          static_cast<double>(links)),
              fmt::format("at most {} nodes and {} links are generated", max_generated_nodes, max_generated_links));
}

Result<Topology> generate_ring(const RingOptions& options) {
  if (auto checked = check_count("ranks", options.ranks, 2, max_generated_nodes); !checked) {
    return tl::unexpected(checked.error());
  }
  if (!options.one_way) {
    return generate_torus({.dims = {options.ranks}, .wire = options.wire}).and_then([&](const Topology& torus) {
      return Topology::make(fmt::format("ring-{}", options.ranks), {torus.nodes().begin(), torus.nodes().end()},
                            {torus.links().begin(), torus.links().end()});
    });
  }
  if (auto checked = check_wire(options.wire); !checked) return tl::unexpected(checked.error());
  TopologyBuilder builder;
  const auto count = static_cast<std::size_t>(options.ranks);
  for (std::size_t i = 0; i < count; ++i) builder.rank(fmt::format("gpu{}", i));
  for (std::size_t i = 0; i < count; ++i) builder.link(NodeId(i), NodeId((i + 1) % count), options.wire);
  return std::move(builder).build(fmt::format("ring-{}-one-way", count));
}

namespace {

Result<Topology> generate_grid(const char* kind, const GridOptions& options, bool wrap) {
  if (auto checked = check_wire(options.wire); !checked) return tl::unexpected(checked.error());
  if (options.dims.empty() || options.dims.size() > 32) {
    return fail(ErrorCode::invalid_input, fmt::format("a {} has {} dimensions", kind, options.dims.size()),
                "give 1 to 32 dimensions, such as 4x4x4");
  }
  __int128 nodes = 1;
  for (const std::int64_t dim : options.dims) {
    if (auto checked = check_count("a dimension", dim, 1, max_generated_nodes); !checked) {
      return tl::unexpected(checked.error());
    }
    nodes = std::min<__int128>(nodes * dim, __int128{max_generated_nodes} + 1);
  }
  const auto ways = static_cast<__int128>(options.dims.size()) * 2;
  if (auto checked = check_generated_size(nodes, nodes * ways); !checked) return tl::unexpected(checked.error());
  if (nodes < 2) return fail(ErrorCode::invalid_input, fmt::format("a {} of one rank has no links", kind));

  TopologyBuilder builder;
  const auto count = static_cast<std::int64_t>(nodes);
  for (std::int64_t i = 0; i < count; ++i) {
    std::vector<std::string> coordinates;
    for (std::int64_t rest = i, d = static_cast<std::int64_t>(options.dims.size()) - 1; d >= 0; --d) {
      const std::int64_t dim = options.dims[static_cast<std::size_t>(d)];
      coordinates.insert(coordinates.begin(), std::to_string(rest % dim));
      rest /= dim;
    }
    builder.rank(fmt::format("gpu{}", fmt::join(coordinates, ".")));
  }
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t stride = count;
    for (const std::int64_t dim : options.dims) {
      stride /= dim;
      const std::int64_t at = i / stride % dim;
      const bool closes = wrap && at == dim - 1 && dim > 2;
      if (at == dim - 1 && !closes) continue;
      const std::int64_t next = closes ? i - at * stride : i + stride;
      builder.cable(NodeId(static_cast<std::size_t>(i)), NodeId(static_cast<std::size_t>(next)), options.wire);
    }
  }
  return std::move(builder).build(fmt::format("{}-{}", kind, fmt::join(options.dims, "x")));
}

}  // namespace

Result<Topology> generate_torus(const GridOptions& options) { return generate_grid("torus", options, true); }

Result<Topology> generate_mesh(const GridOptions& options) { return generate_grid("mesh", options, false); }

Result<Topology> generate_hypercube(const HypercubeOptions& options) {
  if (auto checked = check_count("dimensions", options.dimensions, 1, 16); !checked) {
    return tl::unexpected(checked.error());
  }
  if (auto checked = check_wire(options.wire); !checked) return tl::unexpected(checked.error());
  const std::size_t count = std::size_t{1} << static_cast<unsigned>(options.dimensions);
  TopologyBuilder builder;
  for (std::size_t i = 0; i < count; ++i) builder.rank(fmt::format("gpu{}", i));
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t bit = 1; bit < count; bit <<= 1U) {
      if ((i & bit) == 0) builder.cable(NodeId(i), NodeId(i | bit), options.wire);
    }
  }
  return std::move(builder).build(fmt::format("hypercube-{}", options.dimensions));
}

Result<Topology> generate_fully_connected(const FullyConnectedOptions& options) {
  if (auto checked = check_count("ranks", options.ranks, 2, max_generated_nodes); !checked) {
    return tl::unexpected(checked.error());
  }
  if (auto checked = check_wire(options.wire); !checked) return tl::unexpected(checked.error());
  const __int128 links = static_cast<__int128>(options.ranks) * (options.ranks - 1);
  if (auto checked = check_generated_size(options.ranks, links); !checked) return tl::unexpected(checked.error());
  const auto count = static_cast<std::size_t>(options.ranks);
  TopologyBuilder builder;
  for (std::size_t i = 0; i < count; ++i) builder.rank(fmt::format("gpu{}", i));
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = i + 1; j < count; ++j) builder.cable(NodeId(i), NodeId(j), options.wire);
  }
  return std::move(builder).build(fmt::format("fully-connected-{}", count));
}

}  // namespace espalier
