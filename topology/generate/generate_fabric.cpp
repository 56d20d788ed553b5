#include <fmt/format.h>

#include "topology/generate/generate.h"
#include "topology/topology_builder.h"

namespace espalier {

namespace {

/// Checks that must all hold before anything is built; the first breach is the answer.
class Door {
 public:
  Door& count(const char* option, std::int64_t value, std::int64_t low) {
    return also(check_count(option, value, low, max_generated_nodes));
  }
  Door& wire(const Wire& wire) { return also(check_wire(wire)); }
  Door& also(Result<void> checked) {
    if (passed_ && !checked) passed_ = std::move(checked);
    return *this;
  }
  [[nodiscard]] const Result<void>& passed() const { return passed_; }

 private:
  Result<void> passed_;
};

/// The rate of each of `cables` uplinks that together carry `total`/`oversubscription`, when that is a whole number.
Result<Wire> uplink(std::string link_class, __int128 total, std::int64_t cables, std::int64_t oversubscription,
                    Picoseconds latency) {
  const __int128 parts = static_cast<__int128>(cables) * oversubscription;
  if (total % parts != 0) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{} uplinks do not get a whole number of bytes per second each", cables),
                "choose a bandwidth that the number of uplinks and the oversubscription divide");
  }
  return Wire{{static_cast<std::int64_t>(total / parts)}, latency, std::move(link_class)};
}

std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }

}  // namespace

Result<Topology> generate_fat_tree(const FatTreeOptions& options) {
  Door door;
  door.also(check_count("k", options.k, 2, 128)).count("oversubscription", options.oversubscription, 1);
  door.wire(options.wire);
  if (!door.passed()) return tl::unexpected(door.passed().error());
  if (options.k % 2 != 0) {
    return fail(ErrorCode::invalid_input, fmt::format("k is {}", options.k), "a fat tree needs an even k");
  }
  const std::int64_t half = options.k / 2;
  const std::int64_t ranks_per_edge = half * options.oversubscription;
  const __int128 ranks = static_cast<__int128>(options.k) * half * ranks_per_edge;
  const __int128 fabric_cables = static_cast<__int128>(options.k) * half * half * 2;
  const auto checked =
      check_generated_size(ranks + static_cast<__int128>(options.k) * options.k + static_cast<__int128>(half) * half,
                           2 * (ranks + fabric_cables));
  if (!checked) return tl::unexpected(checked.error());

  TopologyBuilder builder;
  std::vector<NodeId> hosts, edges, aggregations, cores;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(ranks); ++i) {
    const std::string id = fmt::format("gpu{}", i);
    hosts.push_back(builder.rank(id, id));
  }
  for (std::int64_t i = 0; i < options.k * half; ++i) {
    edges.push_back(builder.forwarder(NodeKind::switch_node, fmt::format("pod{}.edge{}", i / half, i % half)));
  }
  for (std::int64_t i = 0; i < options.k * half; ++i) {
    aggregations.push_back(builder.forwarder(NodeKind::switch_node, fmt::format("pod{}.agg{}", i / half, i % half)));
  }
  for (std::int64_t i = 0; i < half * half; ++i) {
    cores.push_back(builder.forwarder(NodeKind::switch_node, fmt::format("core{}", i)));
  }
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    builder.cable(hosts[i], edges[i / size(ranks_per_edge)], options.wire);
  }
  for (std::int64_t pod = 0; pod < options.k; ++pod) {
    for (std::int64_t a = 0; a < half; ++a) {
      const NodeId aggregation = aggregations[size(pod * half + a)];
      for (std::int64_t e = 0; e < half; ++e) builder.cable(edges[size(pod * half + e)], aggregation, options.wire);
      for (std::int64_t c = 0; c < half; ++c) builder.cable(aggregation, cores[size(a * half + c)], options.wire);
    }
  }
  return std::move(builder).build(fmt::format("fat-tree-{}", options.k));
}

Result<Topology> generate_leaf_spine(const LeafSpineOptions& options) {
  Door door;
  door.count("leaves", options.leaves, 1).count("ranks per leaf", options.ranks_per_leaf, 1);
  door.count("spines", options.spines, 1).count("oversubscription", options.oversubscription, 1).wire(options.wire);
  if (!door.passed()) return tl::unexpected(door.passed().error());
  const __int128 ranks = static_cast<__int128>(options.leaves) * options.ranks_per_leaf;
  const __int128 uplinks = static_cast<__int128>(options.leaves) * options.spines;
  const auto checked = check_generated_size(ranks + options.leaves + options.spines, 2 * (ranks + uplinks));
  if (!checked) return tl::unexpected(checked.error());
  const auto up =
      uplink("uplink", static_cast<__int128>(options.wire.bandwidth.bytes_per_second) * options.ranks_per_leaf,
             options.spines, options.oversubscription, options.uplink_latency);
  if (!up) return tl::unexpected(up.error());
  if (const auto sound = check_wire(*up); !sound) return tl::unexpected(sound.error());

  TopologyBuilder builder;
  std::vector<NodeId> hosts, spines;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(ranks); ++i) {
    const std::string id = fmt::format("gpu{}", i);
    hosts.push_back(builder.rank(id, id));
  }
  for (std::int64_t i = 0; i < options.spines; ++i) {
    spines.push_back(builder.forwarder(NodeKind::switch_node, fmt::format("spine{}", i)));
  }
  for (std::int64_t i = 0; i < options.leaves; ++i) {
    const NodeId leaf = builder.forwarder(NodeKind::switch_node, fmt::format("leaf{}", i));
    for (std::int64_t h = 0; h < options.ranks_per_leaf; ++h) {
      builder.cable(hosts[size(i * options.ranks_per_leaf + h)], leaf, options.wire);
    }
    for (const NodeId spine : spines) builder.cable(leaf, spine, *up);
  }
  return std::move(builder).build(fmt::format("leaf-spine-{}x{}", options.leaves, options.ranks_per_leaf));
}

Result<Topology> generate_dragonfly(const DragonflyOptions& options) {
  Door door;
  door.count("routers", options.routers, 1).count("ranks", options.ranks, 1);
  door.count("global links", options.global_links, 1);
  door.wire(options.rank_wire).wire(options.local_wire).wire(options.global_wire);
  if (!door.passed()) return tl::unexpected(door.passed().error());
  const __int128 ports = static_cast<__int128>(options.routers) * options.global_links;
  const __int128 routers = (ports + 1) * options.routers;
  if (const auto checked = check_generated_size(routers, routers); !checked) return tl::unexpected(checked.error());
  const __int128 links = routers * (2 * options.ranks + options.routers - 1 + options.global_links);
  const auto checked = check_generated_size(routers * (options.ranks + 1), links);
  if (!checked) return tl::unexpected(checked.error());

  const auto groups = static_cast<std::int64_t>(ports) + 1;
  TopologyBuilder builder;
  std::vector<NodeId> hosts, nodes;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(routers) * options.ranks; ++i) {
    const std::string id = fmt::format("gpu{}", i);
    hosts.push_back(builder.rank(id, id));
  }
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(routers); ++i) {
    nodes.push_back(builder.forwarder(NodeKind::switch_node,
                                      fmt::format("group{}.router{}", i / options.routers, i % options.routers)));
  }
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    builder.cable(hosts[i], nodes[i / size(options.ranks)], options.rank_wire);
  }
  for (std::int64_t group = 0; group < groups; ++group) {
    const std::int64_t first = group * options.routers;
    for (std::int64_t a = 0; a < options.routers; ++a) {
      for (std::int64_t b = a + 1; b < options.routers; ++b) {
        builder.cable(nodes[size(first + a)], nodes[size(first + b)], options.local_wire);
      }
    }
  }
  // Port j of a group leads to the group j+1 further on, and comes out there at port a h - 1 - j: each pair meets once.
  for (std::int64_t group = 0; group < groups; ++group) {
    for (std::int64_t port = 0; port < groups - 1; ++port) {
      const std::int64_t other = (group + port + 1) % groups;
      if (other < group) continue;
      const std::int64_t far_port = groups - 2 - port;
      builder.cable(nodes[size(group * options.routers + port / options.global_links)],
                    nodes[size(other * options.routers + far_port / options.global_links)], options.global_wire);
    }
  }
  return std::move(builder).build(
      fmt::format("dragonfly-a{}p{}h{}", options.routers, options.ranks, options.global_links));
}

Result<Topology> generate_rail_boxes(const RailBoxesOptions& options) {
  Door door;
  door.count("boxes", options.boxes, 1).count("GPUs per box", options.gpus_per_box, 1);
  door.count("rails", options.rails, 1).count("spines", options.spines, 0);
  door.wire(options.nvlink).wire(options.pcie).wire(options.nic);
  if (!door.passed()) return tl::unexpected(door.passed().error());
  if (options.gpus_per_box % options.rails != 0) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{} GPUs per box do not spread evenly over {} rails", options.gpus_per_box, options.rails),
                "choose a number of rails that divides the GPUs per box");
  }
  const __int128 gpus = static_cast<__int128>(options.boxes) * options.gpus_per_box;
  const __int128 fabric = static_cast<__int128>(options.rails) * options.spines;
  const auto checked =
      check_generated_size(2 * gpus + options.boxes + options.rails + options.spines, 6 * gpus + 2 * fabric);
  if (!checked) return tl::unexpected(checked.error());

  TopologyBuilder builder;
  std::vector<NodeId> rails;
  for (std::int64_t r = 0; r < options.rails; ++r) {
    rails.push_back(
        builder.forwarder(NodeKind::switch_node, fmt::format("rail{}", r), {}, static_cast<std::int32_t>(r)));
  }
  for (std::int64_t b = 0; b < options.boxes; ++b) {
    const std::string box = fmt::format("box{}", b);
    const NodeId nvswitch = builder.forwarder(NodeKind::switch_node, box + ".nvswitch", box);
    for (std::int64_t i = 0; i < options.gpus_per_box; ++i) {
      const auto rail = static_cast<std::int32_t>(i % options.rails);
      const NodeId gpu = builder.rank(fmt::format("{}.gpu{}", box, i), box, rail);
      const NodeId nic = builder.forwarder(NodeKind::nic, fmt::format("{}.nic{}", box, i), box, rail);
      builder.cable(gpu, nvswitch, options.nvlink);
      builder.cable(gpu, nic, options.pcie);
      builder.cable(nic, rails[size(rail)], options.nic);
    }
  }
  if (options.spines > 0) {
    const std::int64_t nics_per_rail = options.boxes * (options.gpus_per_box / options.rails);
    const auto up = uplink("uplink", static_cast<__int128>(options.nic.bandwidth.bytes_per_second) * nics_per_rail,
                           options.spines, 1, options.nic.latency);
    if (!up) return tl::unexpected(up.error());
    for (std::int64_t s = 0; s < options.spines; ++s) {
      const NodeId spine = builder.forwarder(NodeKind::switch_node, fmt::format("spine{}", s));
      for (const NodeId rail : rails) builder.cable(rail, spine, *up);
    }
  }
  return std::move(builder).build(fmt::format("rail-boxes-{}x{}", options.boxes, options.gpus_per_box));
}

}  // namespace espalier
