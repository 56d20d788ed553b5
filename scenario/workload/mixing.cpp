#include "scenario/workload/mixing.h"

#include <fmt/format.h>

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <set>

namespace espalier::scenario {
namespace {

using Pair = std::pair<std::uint32_t, std::uint32_t>;

/// The ranks that a path from `from` reaches which passes through no other rank.
std::vector<Rank> reach(const Topology& topology, Rank from) {
  std::vector<Rank> reached;
  std::vector<bool> seen(topology.node_count(), false);
  std::vector<NodeId> waiting{topology.node_of(from)};
  seen[waiting.front().index()] = true;
  while (!waiting.empty()) {
    const NodeId at = waiting.back();
    waiting.pop_back();
    for (const LinkId link : topology.out_links(at)) {
      const NodeId head = topology.link(link).head;
      if (seen[head.index()]) continue;
      seen[head.index()] = true;
      topology.rank_of(head).is_none() ? waiting.push_back(head) : reached.push_back(topology.rank_of(head));
    }
  }
  return reached;
}

std::set<Pair> network_pairs(const Topology& topology, std::span<const Rank> ranks) {
  std::set<Pair> one_way, pairs;
  for (std::uint32_t i = 0; i < ranks.size(); ++i) {
    for (const Rank other : reach(topology, ranks[i])) {
      const auto at = std::ranges::lower_bound(ranks, other);
      if (at == ranks.end() || *at != other) continue;
      const auto j = static_cast<std::uint32_t>(at - ranks.begin());
      one_way.emplace(i, j);
      if (one_way.contains({j, i})) pairs.emplace(std::min(i, j), std::max(i, j));
    }
  }
  return pairs;
}

/// Rank i and rank i + step for each step, around the circle.
std::set<Pair> circle_pairs(std::uint32_t count, std::uint32_t last_step) {
  std::set<Pair> pairs;
  for (std::uint32_t step = 1; step <= last_step && step < count; step *= 2) {
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t j = (i + step) % count;
      pairs.emplace(std::min(i, j), std::max(i, j));
    }
  }
  return pairs;
}

double find_gap(const std::vector<Pair>& pairs, const std::vector<std::uint32_t>& degrees) {
  const auto count = static_cast<Eigen::Index>(degrees.size());
  Eigen::MatrixXd weights = Eigen::MatrixXd::Identity(count, count);
  for (const auto& [i, j] : pairs) {
    const double weight = 1.0 / (1 + std::max(degrees[i], degrees[j]));
    weights(i, j) = weights(j, i) = weight;
    weights(i, i) -= weight;
    weights(j, j) -= weight;
  }
  const Eigen::VectorXd values =
      Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(weights, Eigen::EigenvaluesOnly).eigenvalues();
  // Ascending, the last is 1, of the mean itself.
  return 1 - std::max(std::abs(values(0)), std::abs(values(count - 2)));
}

}  // namespace

std::int64_t Mixing::rounds_to(double part) const {
  const double rate = 1 - spectral_gap;
  if (rate <= part) return 1;
  // What is rounded in the eigenvalues must not add a round.
  return static_cast<std::int64_t>(std::ceil(std::log(part) / std::log(rate) - 1e-9));
}

Result<Mixing> make_mixing(const Topology& topology, std::span<const Rank> ranks, MixingGraph graph) {
  if (ranks.size() > max_mixing_ranks) {
    return fail(ErrorCode::too_large,
                fmt::format("{} ranks gossip, and the most are {}", ranks.size(), max_mixing_ranks),
                "cut them into groups");
  }
  const auto count = static_cast<std::uint32_t>(ranks.size());
  Mixing mixing;
  if (count == 1) return mixing;
  const std::set<Pair> pairs = graph == MixingGraph::network
                                   ? network_pairs(topology, ranks)
                                   : circle_pairs(count, graph == MixingGraph::ring ? 1 : count);
  mixing.pairs.assign(pairs.begin(), pairs.end());
  std::vector<std::uint32_t> degrees(count, 0);
  for (const auto& [i, j] : mixing.pairs) {
    ++degrees[i];
    ++degrees[j];
  }
  mixing.degree = *std::ranges::max_element(degrees);
  mixing.spectral_gap = find_gap(mixing.pairs, degrees);
  if (mixing.spectral_gap > 1e-12) return mixing;
  return fail(ErrorCode::infeasible, "the ranks fall into parts that never hear of each other",
              "gossip needs paths in both directions, past no rank outside the group; or write 'graph: ring'");
}

}  // namespace espalier::scenario
