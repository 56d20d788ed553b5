// Prints docs/validation.md's table of closed forms: what the simulator says, what the formula says, how far apart.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "planners/planner.h"
#include "sim/contention_free/walk_ring.h"
#include "sim/simulate.h"
#include "topology/generate/generate.h"

namespace espalier::bench {
namespace {

constexpr Bandwidth rate{100'000'000'000};
constexpr Picoseconds latency{1'000'000};
constexpr double alpha = 1e-6;
constexpr double beta = 1e-11;
constexpr Bytes size{std::int64_t{64} << 20};
constexpr double s = static_cast<double>(size.count);

/// A path of ranks or switches, made by hand.
struct Chain {
  std::vector<Node> nodes;
  std::vector<Link> links;

  explicit Chain(std::size_t ranks) {
    for (std::size_t i = 0; i < ranks; ++i) add_node("g" + std::to_string(i), NodeKind::gpu);
  }
  std::size_t add_node(const std::string& id, NodeKind kind) {
    Node node;
    node.id = id;
    node.kind = kind;
    node.is_rank = kind == NodeKind::gpu;
    nodes.push_back(node);
    return nodes.size() - 1;
  }
  LinkId add_link(std::size_t tail, std::size_t head, Bandwidth bandwidth = rate) {
    Link link;
    link.tail = NodeId(tail);
    link.head = NodeId(head);
    link.nominal = bandwidth;
    link.latency = latency;
    links.push_back(link);
    return LinkId(links.size() - 1);
  }
  [[nodiscard]] Topology topology() const {
    auto made = Topology::make("chain", nodes, links);
    ESPALIER_CHECK(made.has_value(), "a chain is a topology");
    return std::move(*made);
  }
};

/// One slice that goes these routes, one after the other.
double simulate_routes(const Chain& chain, std::size_t ranks, const std::vector<std::vector<LinkId>>& routes,
                       Bytes chunk, Action action = Action::copy) {
  Schedule schedule({CollectiveKind::all_reduce, static_cast<std::uint32_t>(ranks), {}}, "chain", "by hand");
  schedule.units = 1;
  schedule.slices.push_back({0, 1, {}, {}});
  const Topology topology = chain.topology();
  for (std::size_t i = 0; i < routes.size(); ++i) {
    const Rank src = topology.rank_of(topology.link(routes[i].front()).tail);
    const Rank dst = topology.rank_of(topology.link(routes[i].back()).head);
    schedule.add_transfer(schedule.add_route(src, dst, routes[i]), SliceId(0), 1, action, ChannelId(i));
  }
  const auto report = sim::simulate(schedule, topology, {size, chunk, 4});
  ESPALIER_CHECK(report.has_value(), "what is made by hand simulates");
  return report->elapsed.seconds();
}

double simulate_planned(const Result<Topology>& topology, CollectiveKind kind, std::string_view planner) {
  ESPALIER_CHECK(topology.has_value(), "the generators make what is asked");
  const auto collective = make_collective(kind, topology->rank_count(), std::nullopt);
  const auto schedule = planners::plan_unbounded(*topology, *collective, *planners::find_planner(planner));
  ESPALIER_CHECK(schedule.has_value(), "the planner makes this");
  const auto report = sim::simulate(*schedule, *topology, {size, size, 4});
  ESPALIER_CHECK(report.has_value(), "a plan simulates");
  return report->elapsed.seconds();
}

double simulate_walk(std::size_t ranks, sim::RingReport& found) {
  const auto topology = generate_ring({static_cast<std::int64_t>(ranks), true, {rate, latency, "link"}});
  RingWalk walk;
  walk.collective = {CollectiveKind::all_reduce, static_cast<std::uint32_t>(ranks), {}};
  for (std::size_t i = 0; i < ranks; ++i) {
    walk.order.emplace_back(i);
    walk.hops.push_back(topology->links_between(NodeId(i), NodeId((i + 1) % ranks)));
  }
  found = *sim::simulate_ring(walk, *topology, {size, size, 4});
  return found.report.elapsed.seconds();
}

void print_row(const std::string& what, const std::string& formula, double simulated, double expected) {
  std::printf("| %s | %s | %.6f | %.6f | %.1e |\n", what.c_str(), formula.c_str(), simulated * 1e6, expected * 1e6,
              std::abs(simulated - expected) / expected);
}

void print_hand_made() {
  constexpr Bytes chunk{std::int64_t{1} << 16};
  const double b = static_cast<double>(chunk.count);
  {
    Chain chain(2);
    const LinkId link = chain.add_link(0, 1);
    print_row("one link", "alpha + S/B", simulate_routes(chain, 2, {{link}}, chunk), alpha + s * beta);
  }
  {
    Chain chain(2);
    std::vector<LinkId> route;
    std::size_t at = 0;
    for (int i = 0; i < 4; ++i) {
      const std::size_t next = chain.add_node("s" + std::to_string(i), NodeKind::switch_node);
      route.push_back(chain.add_link(at, next));
      at = next;
    }
    route.push_back(chain.add_link(at, 1));
    print_row("5 links through switches", "m alpha + S/B", simulate_routes(chain, 2, {route}, chunk),
              5 * alpha + s * beta);
  }
  {
    Chain chain(9);
    std::vector<std::vector<LinkId>> routes;
    for (std::size_t i = 0; i < 8; ++i) routes.push_back({chain.add_link(i, i + 1)});
    print_row("chain of 8 hops, 1,024 chunks", "h alpha + (h + n - 1) b/B", simulate_routes(chain, 9, routes, chunk),
              8 * alpha + (8 + 1024 - 1) * b * beta);
  }
  for (const bool slow_first : {true, false}) {
    Chain chain(2);
    const std::size_t middle = chain.add_node("s0", NodeKind::switch_node);
    const Bandwidth slow{rate.bytes_per_second / 4};
    const LinkId up = chain.add_link(0, middle, slow_first ? slow : rate);
    const LinkId down = chain.add_link(middle, 1, slow_first ? rate : slow);
    print_row(slow_first ? "slow link, then fast, one chunk" : "fast link, then slow, one chunk", "2 alpha + S/B_slow",
              simulate_routes(chain, 2, {{up, down}}, size), 2 * alpha + 4 * s * beta);
  }
  {
    Chain chain(2);
    const LinkId link = chain.add_link(0, 1);
    chain.nodes[1].reduce_bandwidth = {rate.bytes_per_second / 2};
    print_row("reduce at half the link's rate, 1,024 chunks", "alpha + b/B + S/R",
              simulate_routes(chain, 2, {{link}}, chunk, Action::reduce), alpha + b * beta + 2 * s * beta);
  }
}

void print_planned() {
  const Wire wire{rate, latency, "link"};
  for (const std::int64_t n : {4, 16, 64}) {
    const auto ranks = static_cast<double>(n);
    print_row("flat all_gather, " + std::to_string(n) + " ranks in full mesh", "alpha + S/(N B)",
              simulate_planned(generate_fully_connected({n, wire}), CollectiveKind::all_gather, "flat"),
              alpha + s * beta / ranks);
  }
  for (const std::int64_t dimensions : {3, 6}) {
    const double ranks = std::pow(2.0, static_cast<double>(dimensions));
    print_row("recursive all_reduce, hypercube of " + std::to_string(1 << dimensions),
              "2 log2(N) alpha + 2 (N-1)/N S/B",
              simulate_planned(generate_hypercube({dimensions, wire}), CollectiveKind::all_reduce, "recursive"),
              2 * static_cast<double>(dimensions) * alpha + 2 * (ranks - 1) / ranks * s * beta);
  }
}

void print_rings() {
  for (std::size_t n = 8; n <= 16'384; n *= n == 8 ? 8 : 4) {
    sim::RingReport found;
    const double simulated = simulate_walk(n, found);
    const auto ranks = static_cast<double>(n);
    print_row("ring all_reduce, " + std::to_string(n) + " ranks", "2 (N-1) (alpha + S/(N B))", simulated,
              2 * (ranks - 1) * (alpha + s / ranks * beta));
  }
}

}  // namespace
}  // namespace espalier::bench

int main() {
  std::printf("| case | closed form | simulated (us) | closed form (us) | difference |\n|---|---|---|---|---|\n");
  espalier::bench::print_hand_made();
  espalier::bench::print_planned();
  espalier::bench::print_rings();
}
