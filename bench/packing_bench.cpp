// How long the exact bound and the packing take as machines grow.
#include <benchmark/benchmark.h>

#include "planners/bounds/cut_bound.h"
#include "planners/packing/packing.h"
#include "topology/topology.h"

namespace espalier::bench {
namespace {

/// Collects nodes and links of a machine.
class Maker {
 public:
  NodeId add(NodeKind kind) {
    Node node;
    node.id = std::to_string(nodes_.size());
    node.kind = kind;
    node.is_rank = kind == NodeKind::gpu;
    nodes_.push_back(std::move(node));
    return NodeId(nodes_.size() - 1);
  }
  void join(NodeId a, NodeId b, std::int64_t gigabytes) {
    for (const auto& [tail, head] : {std::pair(a, b), std::pair(b, a)}) {
      Link link;
      link.tail = tail;
      link.head = head;
      link.nominal = {gigabytes * 1'000'000'000};
      links_.push_back(std::move(link));
    }
  }
  Topology build() { return *Topology::make("bench", std::move(nodes_), std::move(links_)); }

 private:
  std::vector<Node> nodes_;
  std::vector<Link> links_;
};

/// Boxes of eight GPUs on one switch, each GPU with a NIC on its rail.
Topology rail_boxes(std::int64_t boxes) {
  Maker maker;
  std::vector<NodeId> rails;
  for (int rail = 0; rail < 8; ++rail) rails.push_back(maker.add(NodeKind::switch_node));
  for (std::int64_t box = 0; box < boxes; ++box) {
    const NodeId inner = maker.add(NodeKind::switch_node);
    for (const NodeId rail : rails) {
      const NodeId gpu = maker.add(NodeKind::gpu);
      const NodeId nic = maker.add(NodeKind::nic);
      maker.join(gpu, inner, 450);
      maker.join(gpu, nic, 50);
      maker.join(nic, rail, 50);
    }
  }
  return maker.build();
}

/// A square torus of direct links.
Topology torus(std::int64_t side) {
  Maker maker;
  std::vector<NodeId> ranks;
  for (std::int64_t i = 0; i < side * side; ++i) ranks.push_back(maker.add(NodeKind::gpu));
  const auto at = [&](std::int64_t x, std::int64_t y) {
    return ranks[static_cast<std::size_t>(x % side * side + y % side)];
  };
  for (std::int64_t x = 0; x < side; ++x) {
    for (std::int64_t y = 0; y < side; ++y) {
      maker.join(at(x, y), at(x + 1, y), 25);
      maker.join(at(x, y), at(x, y + 1), 25);
    }
  }
  return maker.build();
}

/// Leaves of eight hosts, two hosts' worth of uplinks to each of two spines.
Topology leaf_spine(std::int64_t leaves) {
  Maker maker;
  const std::array spines{maker.add(NodeKind::switch_node), maker.add(NodeKind::switch_node)};
  for (std::int64_t i = 0; i < leaves; ++i) {
    const NodeId leaf = maker.add(NodeKind::switch_node);
    for (const NodeId spine : spines) maker.join(leaf, spine, 200);
    for (int host = 0; host < 8; ++host) maker.join(maker.add(NodeKind::gpu), leaf, 100);
  }
  return maker.build();
}

using Family = Topology (*)(std::int64_t);

Collective all_gather_on(const Topology& topology) {
  return {CollectiveKind::all_gather, static_cast<std::uint32_t>(topology.rank_count()), Rank()};
}

void bound(benchmark::State& state, Family family) {
  const Topology topology = family(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(planners::cut_bound(topology, all_gather_on(topology)));
  state.counters["ranks"] = static_cast<double>(topology.rank_count());
}

void pack(benchmark::State& state, Family family) {
  const Topology topology = family(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(planners::plan_packing(topology, all_gather_on(topology)));
  state.counters["ranks"] = static_cast<double>(topology.rank_count());
}

BENCHMARK_CAPTURE(bound, rail_boxes, rail_boxes)->RangeMultiplier(4)->Range(2, 128)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(pack, rail_boxes, rail_boxes)->RangeMultiplier(4)->Range(2, 128)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(bound, torus, torus)->RangeMultiplier(2)->Range(4, 16)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(pack, torus, torus)->RangeMultiplier(2)->Range(4, 8)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(bound, leaf_spine, leaf_spine)->RangeMultiplier(2)->Range(2, 16)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(pack, leaf_spine, leaf_spine)->RangeMultiplier(2)->Range(2, 8)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace espalier::bench

BENCHMARK_MAIN();
