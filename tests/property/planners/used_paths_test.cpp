#include "planners/used_paths.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "planners/planner.h"
#include "schedule/verify/verify.h"
#include "topology/link_kind.h"
#include "topology/reachable.h"

namespace espalier::planners {
namespace {

/// Boxes of random insides: GPUs on a fabric that joins all, some or none of them, PCIe switches and processors between
/// them and NICs, NICs on one or two leaves of a network, and now and then a GPU that is no rank.
class RandomCluster {
 public:
  explicit RandomCluster(std::uint64_t seed) : random_(seed) {}

  Topology make() {
    const std::size_t leaves = 1 + random_.below(2);
    for (std::size_t i = 0; i < leaves; ++i) add("leaf" + std::to_string(i), NodeKind::switch_node, "");
    if (leaves == 2) join(0, 1, "cable");
    const std::size_t boxes = 1 + random_.below(3);
    for (std::size_t box = 0; box < boxes; ++box) add_box("box" + std::to_string(box), leaves);
    auto made = Topology::make("random", nodes_, links_);
    EXPECT_TRUE(made) << made.error().message;
    return *std::move(made);
  }

 private:
  std::size_t add(std::string id, NodeKind kind, const std::string& host) {
    Node node;
    node.id = std::move(id);
    node.kind = kind;
    node.host = host;
    node.is_rank = kind == NodeKind::gpu && (random_.below(8) > 0 || !has_rank_);
    has_rank_ = has_rank_ || node.is_rank;
    nodes_.push_back(node);
    return nodes_.size() - 1;
  }

  void join(std::size_t a, std::size_t b, const std::string& name) {
    const Bandwidth rate{static_cast<std::int64_t>(1 + random_.below(4)) * 1'000'000'000};
    for (const auto& [tail, head] : {std::pair(a, b), std::pair(b, a)}) {
      Link link;
      link.tail = NodeId(tail);
      link.head = NodeId(head);
      link.nominal = rate;
      link.latency = {1000};
      link.link_class = name;
      links_.push_back(link);
    }
  }

  void add_box(const std::string& host, std::size_t leaves) {
    std::vector<std::size_t> gpus, buses;
    const auto one_of = [&](const std::vector<std::size_t>& some) { return some[random_.below(some.size())]; };
    for (std::size_t i = 0; i < 1 + random_.below(4); ++i)
      gpus.push_back(add(host + ".gpu" + std::to_string(i), NodeKind::gpu, host));
    const std::uint64_t fabric = random_.below(3);
    if (fabric == 1) {
      const std::size_t hub = add(host + ".hub", NodeKind::switch_node, host);
      for (const std::size_t gpu : gpus) join(gpu, hub, "nvlink");
    }
    if (fabric == 2) {
      for (std::size_t i = 1; i < gpus.size(); ++i) {
        if (random_.below(4) > 0) join(gpus[i - 1], gpus[i], "nvlink");
      }
    }
    for (std::size_t i = 0; i < 1 + random_.below(3); ++i) {
      buses.push_back(
          add(host + ".bus" + std::to_string(i), random_.below(2) == 0 ? NodeKind::pcie : NodeKind::cpu, host));
      nodes_.back().is_rank = false;
      if (i > 0) join(buses[i - 1], buses[i], "pcie");
    }
    for (const std::size_t gpu : gpus) join(gpu, one_of(buses), "pcie");
    for (std::size_t i = 0; i < 1 + random_.below(2); ++i) {
      const std::size_t nic = add(host + ".nic" + std::to_string(i), NodeKind::nic, host);
      join(nic, random_.below(3) > 0 ? one_of(buses) : one_of(gpus), "pcie");
      for (std::size_t leaf = 0; leaf < leaves; ++leaf) {
        if (leaf == 0 || random_.below(2) == 0) join(nic, leaf, "cable");
      }
    }
  }

  Random random_;
  std::vector<Node> nodes_;
  std::vector<Link> links_;
  bool has_rank_ = false;
};

TEST(UsedPaths, EveryPlanStaysRightAndInside) {
  constexpr std::uint64_t clusters = 300;
  std::size_t restricted = 0, planned = 0;
  for (std::uint64_t seed = 0; seed < clusters; ++seed) {
    const Topology topology = RandomCluster(seed).make();
    if (topology.rank_count() < 2 || find_unreachable(topology)) continue;
    const UsedPaths paths(topology);
    if (!paths.topology()) continue;
    ++restricted;
    EXPECT_FALSE(find_unreachable(*paths.topology())) << seed;
    const BundledNetwork network(topology, Paths::software);
    for (const CollectiveKind kind :
         {CollectiveKind::all_reduce, CollectiveKind::broadcast, CollectiveKind::all_to_all}) {
      const Collective collective{kind, static_cast<std::uint32_t>(topology.rank_count()),
                                  has_root(kind) ? Rank(0) : Rank()};
      for (const char* name : {"ring", "tree", "packing", "flat", "pairwise"}) {
        const auto schedule = plan_unbounded(network, collective, *find_planner(name));
        if (!schedule) continue;
        ++planned;
        EXPECT_TRUE(verify(*schedule, topology, 1).ok()) << seed << " " << name;
        for (std::size_t i = 0; i < schedule->route_count(); ++i) {
          const Route route = schedule->route(RouteId(i));
          const auto host = [&](Rank rank) { return topology.node(topology.node_of(rank)).host; };
          const auto leaves = [&](LinkId link) { return kind_of(topology, link) == LinkKind::network; };
          // All of a box are joined inside, by PCIe at least.
          EXPECT_FALSE(host(route.src) == host(route.dst) && std::ranges::any_of(route.links, leaves))
              << seed << " " << name;
        }
      }
    }
  }
  EXPECT_GT(restricted, clusters / 4);
  EXPECT_GT(planned, restricted);
}

}  // namespace
}  // namespace espalier::planners
