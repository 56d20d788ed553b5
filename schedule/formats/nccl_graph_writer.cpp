// NCCL graph XML, as NCCL_GRAPH_FILE is read: the order of GPUs in each ring. Elements and attributes: NCCL's
// src/graph/search.cc.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "schedule/formats/writers.h"
#include "schedule/trees/tree_schedule.h"
#include "topology/routes.h"

namespace espalier {
namespace {

using Ring = std::vector<Rank>;

tl::unexpected<Error> no_rings(std::string what, std::string help = "plan with -a ring") {
  return fail(ErrorCode::unsupported, "NCCL graph XML has rings, and " + std::move(what), std::move(help));
}

/// The ranks of a tree in the order in which data passes them, the first rank first; nothing when the tree branches.
std::optional<Ring> ring_of(const Arborescence& tree, bool is_in_tree, std::size_t ranks) {
  std::vector<Rank> next(ranks);
  for (const TreeEdge& edge : tree.edges) {
    if (!next[edge.parent.index()].is_none()) return std::nullopt;
    next[edge.parent.index()] = edge.child;
  }
  Ring ring{tree.root};
  while (ring.size() < ranks && !next[ring.back().index()].is_none()) ring.push_back(next[ring.back().index()]);
  if (ring.size() < ranks) return std::nullopt;
  if (is_in_tree) std::ranges::reverse(ring);
  std::ranges::rotate(ring, std::ranges::min_element(ring));
  return ring;
}

/// How often each link is used when every ring passes all of its pairs once.
Result<double> slowest_share(const std::vector<std::pair<Ring, std::int64_t>>& rings, const Topology& topology,
                             bool& is_nvlink) {
  std::vector<std::int64_t> uses(topology.link_count(), 0);
  std::map<std::pair<Rank, Rank>, std::uint32_t> passes;
  for (const auto& [ring, count] : rings) {
    for (std::size_t i = 0; i < ring.size(); ++i) {
      const Rank from = ring[i], to = ring[(i + 1) % ring.size()];
      for (std::int64_t k = 0; k < count; ++k) {
        const auto route = find_route(topology, from, to, {.variant = passes[{from, to}]++});
        if (!route)
          return no_rings(topology.rank_name(from) + " reaches " + topology.rank_name(to) + " through ranks only");
        for (const LinkId link : route->links) {
          ++uses[link.index()];
          const std::string& name = topology.link(link).link_class;
          is_nvlink = is_nvlink && (name.starts_with("nvlink") || name.starts_with("xgmi"));
        }
      }
    }
  }
  double least = 0;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (uses[i] == 0) continue;
    const double share =
        static_cast<double>(topology.link(LinkId(i)).bandwidth().bytes_per_second) / static_cast<double>(uses[i]) / 1e9;
    least = least == 0 ? share : std::min(least, share);
  }
  return least;
}

}  // namespace

Result<std::string> write_nccl_graph(const Schedule& schedule, const Topology& topology) {
  if (auto refused = refuse_relays(schedule, topology, "NCCL graph XML"); !refused) {
    return tl::unexpected(refused.error());
  }
  const std::size_t ranks = topology.rank_count();
  std::set<std::string> hosts;
  for (std::size_t i = 0; i < ranks; ++i) hosts.insert(topology.node(topology.node_of(Rank(i))).host);
  if (hosts.size() > 1) {
    return no_rings(
        fmt::format("{} has {} hosts: it does not say how machines follow each other", topology.name(), hosts.size()),
        "plan for one of them (--ranks)");
  }
  const Forest forest = spanning_trees(schedule);
  std::map<Ring, std::int64_t> counts;
  for (const bool is_in_tree : {false, true}) {
    for (const Arborescence& tree : is_in_tree ? forest.in_trees : forest.out_trees) {
      auto ring = ring_of(tree, is_in_tree, ranks);
      if (!ring) return no_rings("the plan has trees that branch");
      ++counts[*std::move(ring)];
    }
  }
  if (counts.empty()) return no_rings("the plan has none");
  std::int64_t common = 0, channels = 0;
  for (const auto& [ring, count] : counts) common = std::gcd(common, count);
  std::vector<std::pair<Ring, std::int64_t>> rings;
  for (const auto& [ring, count] : counts) {
    rings.emplace_back(ring, count / common);
    channels += count / common;
  }
  constexpr std::int64_t most_channels = 32;
  if (channels > most_channels) {
    return no_rings(fmt::format("NCCL has at most {} of them; the plan has {}", most_channels, channels));
  }
  bool is_nvlink = true;
  const auto speed = slowest_share(rings, topology, is_nvlink);
  if (!speed) return tl::unexpected(speed.error());
  const char* const type = is_nvlink ? "NVL" : "SYS";
  std::string text = fmt::format(
      "<graphs version=\"1\">\n  <graph id=\"0\" pattern=\"4\" crossnic=\"0\" nchannels=\"{}\" speedintra=\"{:g}\" "
      "speedinter=\"{:g}\" latencyinter=\"0\" typeintra=\"{}\" typeinter=\"PIX\" samechannels=\"0\">\n",
      channels, *speed, *speed, type);
  for (const auto& [ring, count] : rings) {
    for (std::int64_t k = 0; k < count; ++k) {
      text += "    <channel>\n";
      for (const Rank rank : ring) text += fmt::format("      <gpu dev=\"{:#x}\"/>\n", rank.index());
      text += "    </channel>\n";
    }
  }
  return text + "  </graph>\n</graphs>\n";
}

}  // namespace espalier
