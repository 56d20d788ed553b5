#include <fmt/format.h>

#include "base/random.h"
#include "topology/generate/generate.h"
#include "topology/topology_builder.h"

namespace espalier {

namespace {

/// Draws the parts of one random graph; the order of the draws is part of what a seed means.
class Painter {
 public:
  explicit Painter(const RandomOptions& options)
      : options_(options), random_(options.seed), nodes_(size(options.ranks + options.switches)) {
    for (std::int64_t i = 0; i < options.ranks; ++i) builder_.rank(fmt::format("gpu{}", i));
    for (std::int64_t i = 0; i < options.switches; ++i) {
      builder_.forwarder(NodeKind::switch_node, fmt::format("switch{}", i));
    }
  }

  Result<Topology> paint() && {
    if (nodes_ > 1) {
      if (options_.one_way) {
        close_cycle();
      } else {
        grow_tree();
      }
    }
    for (std::int64_t i = 0; i < options_.extra && nodes_ > 1; ++i) {
      if (options_.one_way) {
        add_path();
      } else {
        add_cable();
      }
    }
    return std::move(builder_).build(fmt::format("random-{}", options_.seed));
  }

 private:
  static std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }

  Wire draw_wire() {
    return {options_.rates[random_.below(options_.rates.size())],
            options_.latencies[random_.below(options_.latencies.size())], ""};
  }

  std::vector<NodeId> shuffled_nodes() {
    std::vector<NodeId> order;
    for (std::size_t i = 0; i < nodes_; ++i) order.emplace_back(i);
    for (std::size_t i = nodes_ - 1; i > 0; --i) std::swap(order[i], order[random_.below(i + 1)]);
    return order;
  }

  void duplex(NodeId a, NodeId b) {
    const Wire there = draw_wire();
    builder_.link(a, b, there);
    builder_.link(b, a, options_.balanced ? there : draw_wire());
  }

  void grow_tree() {
    const std::vector<NodeId> order = shuffled_nodes();
    for (std::size_t i = 1; i < nodes_; ++i) duplex(order[i], order[random_.below(i)]);
  }

  void add_cable() {
    const std::size_t a = random_.below(nodes_);
    const std::size_t b = (a + 1 + random_.below(nodes_ - 1)) % nodes_;
    duplex(NodeId(a), NodeId(b));
  }

  /// One rate all around: every node gets as much as it gives.
  void close_cycle() {
    const std::vector<NodeId> order = shuffled_nodes();
    const Wire around = draw_wire();
    for (std::size_t i = 0; i < nodes_; ++i) {
      builder_.link(order[i], order[(i + 1) % nodes_], options_.balanced ? around : draw_wire());
    }
  }

  /// From a rank to another over up to three switches at one rate, so that the switches stay balanced.
  void add_path() {
    if (options_.ranks < 2) return;
    const std::size_t first = random_.below(size(options_.ranks));
    const std::size_t last = (first + 1 + random_.below(size(options_.ranks) - 1)) % size(options_.ranks);
    const Wire along = draw_wire();
    NodeId at(first);
    const std::uint64_t inner = options_.switches == 0 ? 0 : random_.below(4);
    for (std::uint64_t i = 0; i < inner; ++i) {
      const NodeId next(size(options_.ranks) + random_.below(size(options_.switches)));
      if (next == at) continue;
      builder_.link(at, next, options_.balanced ? along : draw_wire());
      at = next;
    }
    builder_.link(at, NodeId(last), options_.balanced ? along : draw_wire());
  }

  const RandomOptions& options_;
  Random random_;
  std::size_t nodes_;
  TopologyBuilder builder_;
};

}  // namespace

Result<Topology> generate_random(const RandomOptions& options) {
  if (auto checked = check_count("ranks", options.ranks, 1, max_generated_nodes); !checked) {
    return tl::unexpected(checked.error());
  }
  if (auto checked = check_count("switches", options.switches, 0, max_generated_nodes); !checked) {
    return tl::unexpected(checked.error());
  }
  if (auto checked = check_count("extra", options.extra, 0, max_generated_links); !checked) {
    return tl::unexpected(checked.error());
  }
  const __int128 nodes = options.ranks + options.switches;
  if (auto checked = check_generated_size(nodes, 2 * nodes + 4 * static_cast<__int128>(options.extra)); !checked) {
    return tl::unexpected(checked.error());
  }
  if (options.rates.empty() || options.latencies.empty()) {
    return fail(ErrorCode::invalid_input, "a random topology needs rates and latencies to draw from");
  }
  for (const Bandwidth rate : options.rates) {
    if (auto checked = check_wire({rate, {}, "random"}); !checked) return tl::unexpected(checked.error());
  }
  for (const Picoseconds latency : options.latencies) {
    if (auto checked = check_wire({{1}, latency, "random"}); !checked) return tl::unexpected(checked.error());
  }
  return Painter(options).paint();
}

}  // namespace espalier
