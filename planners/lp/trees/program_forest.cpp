#include "planners/lp/trees/program_forest.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "base/check.h"

namespace espalier::planners {

namespace {

/// A path of a tree as it is met on the way out from a root.
struct Step {
  std::size_t path;
  bool along;           ///< Met at its beginning.
  std::uint32_t depth;  ///< Paths from the root to its far end.
};

/// A tree's paths, each after the one that joins it to the root, level by level.
std::vector<Step> walk_from(const std::vector<RankPath>& paths, std::uint32_t root, std::uint32_t rank_count) {
  std::vector<std::vector<std::size_t>> at_rank(rank_count);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    at_rank[paths[i].from].push_back(i);
    at_rank[paths[i].to].push_back(i);
  }
  std::vector<bool> met(paths.size(), false);
  std::vector<Step> walk;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> open = {{root, 0}};  // rank and its depth
  for (std::size_t at = 0; at < open.size(); ++at) {
    const auto [rank, depth] = open[at];
    for (const std::size_t i : at_rank[rank]) {
      if (met[i]) continue;
      met[i] = true;
      const bool along = paths[i].from == rank;
      walk.push_back({i, along, depth + 1});
      open.emplace_back(along ? paths[i].to : paths[i].from, depth + 1);
    }
  }
  ESPALIER_CHECK(walk.size() == paths.size(), "a program's tree is not joined to its root");
  return walk;
}

/// How many blocks go over each of a tree's ordered paths.
std::vector<std::int64_t> blocks_over(const std::vector<RankPath>& ordered, const std::vector<std::uint32_t>& targets) {
  if (targets.empty()) return std::vector<std::int64_t>(ordered.size(), 1);
  std::map<std::uint32_t, std::int64_t> behind;
  for (const std::uint32_t target : targets) ++behind[target];
  std::vector<std::int64_t> blocks(ordered.size());
  for (std::size_t i = ordered.size(); i-- > 0;) {
    blocks[i] = behind[ordered[i].to];
    behind[ordered[i].from] += blocks[i];
  }
  return blocks;
}

constexpr std::int64_t max_exact_units = std::int64_t{1} << 50;
constexpr std::int64_t max_units_of_all = std::int64_t{1} << 60;  // of all roots together: within max_units
constexpr std::int64_t rounded_units = std::int64_t{1} << 30;

/// A tree, or a part of one, over links.
struct Piece {
  Rational share;
  std::vector<TreeEdge> edges;
};

using PiecesByRoot = std::map<std::pair<std::uint32_t, bool>, std::vector<Piece>>;  // by root and whether inward

/// How many units stand for a share of 1: as many as make all shares whole, if they are not too many.
std::int64_t unit_count(const PiecesByRoot& by_root) {
  BigInteger units = 1;
  Rational sum = 1;
  for (const auto& [key, pieces] : by_root) {
    for (const Piece& piece : pieces) sum += piece.share;
  }
  for (const auto& [key, pieces] : by_root) {
    for (const Piece& piece : pieces) {
      units = lcm(units, BigInteger(denominator(piece.share)));
      if (units > max_exact_units || units * sum > max_units_of_all) return rounded_units;
    }
  }
  return units.convert_to<std::int64_t>();
}

/// Gives trees the links that they run over.
class LinkFiller {
 public:
  LinkFiller(const Topology& topology, const ResourceGraph& graph, const Rational& time_per_share) : graph_(graph) {
    room_.resize(graph.edges.size());
    for (std::size_t e = 0; e < room_.size(); ++e) {
      for (const LinkId link : graph.edges[e].links) {
        room_[e].push_back(time_per_share * topology.link(link).bandwidth().bytes_per_second);
      }
    }
  }

  /// The tree in as many pieces as its links need.
  std::vector<Piece> place(const ProgramTree& tree) {
    std::vector<RankPath> found = split_paths(graph_, tree.edges);
    std::vector<RankPath> paths;
    for (const Step& step : walk_from(found, tree.root, graph_.rank_count())) {
      paths.push_back(std::move(found[step.path]));
    }
    const std::vector<std::int64_t> blocks = blocks_over(paths, tree.targets);
    std::vector<Piece> pieces = {{tree.share, {}}};
    for (std::size_t p = 0; p < paths.size(); ++p) {
      const Rank from(paths[p].from);
      const Rank to(paths[p].to);
      for (Piece& piece : pieces) piece.edges.push_back({tree.inward ? to : from, tree.inward ? from : to, {}});
      for (const std::uint32_t e : paths[p].edges) {
        for (std::size_t i = 0; i < pieces.size(); ++i) {
          if (auto rest = extend(pieces[i], e, blocks[p])) pieces.push_back(*std::move(rest));
        }
      }
    }
    return pieces;
  }

 private:
  /// Puts the piece on the edge's link, the roomiest if there are several; what does not fit there comes back as a
  /// piece of its own.
  std::optional<Piece> extend(Piece& piece, std::uint32_t e, std::int64_t blocks) {
    const std::vector<LinkId>& links = graph_.edges[e].links;
    if (links.size() == 1) {
      piece.edges.back().links.push_back(links.front());
      return std::nullopt;
    }
    std::vector<Rational>& room = room_[e];
    const auto roomiest = std::max_element(room.begin(), room.end());
    const Rational fits = *roomiest / blocks;
    std::optional<Piece> rest;
    if (fits < piece.share) {
      ESPALIER_CHECK(fits > 0, "a program's solution does not fit on its links");
      rest = piece;
      piece.share = fits;
      rest->share -= fits;
    }
    *roomiest -= piece.share * blocks;
    piece.edges.back().links.push_back(links[static_cast<std::size_t>(roomiest - room.begin())]);
    return rest;
  }

  const ResourceGraph& graph_;
  std::vector<std::vector<Rational>> room_;  ///< By edge and link, in shares.
};

}  // namespace

std::vector<std::int64_t> apportion(std::span<const Rational> shares, std::int64_t units) {
  const auto floor_of = [](const Rational& value) {
    return BigInteger(numerator(value) / denominator(value)).convert_to<std::int64_t>();
  };
  Rational sum = 0;
  std::vector<std::int64_t> weights;
  std::vector<Rational> remainders;
  std::int64_t given = 0;
  for (const Rational& share : shares) {
    const Rational value = share * units;
    sum += value;
    weights.push_back(floor_of(value));
    remainders.push_back(value - weights.back());
    given += weights.back();
  }
  std::vector<std::size_t> order(shares.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return remainders[a] > remainders[b]; });
  std::int64_t missing = floor_of(sum + make_rational(1, 2)) - given;
  for (const std::size_t i : order) {
    if (missing-- > 0) ++weights[i];
  }
  return weights;
}

Forest whole_forest(const Topology& topology, const ResourceGraph& graph, const std::vector<ProgramTree>& trees,
                    const Rational& time_per_share) {
  LinkFiller filler(topology, graph, time_per_share);
  PiecesByRoot by_root;
  for (const ProgramTree& tree : trees) {
    std::vector<Piece> pieces = filler.place(tree);
    std::vector<Piece>& all = by_root[{tree.root, tree.inward}];
    std::move(pieces.begin(), pieces.end(), std::back_inserter(all));
  }
  const std::int64_t units = unit_count(by_root);
  Forest forest;
  for (auto& [key, pieces] : by_root) {
    const auto [root, inward] = key;
    std::vector<Rational> shares;
    for (const Piece& piece : pieces) shares.push_back(piece.share);
    const std::vector<std::int64_t> weights = apportion(shares, units);
    std::vector<Arborescence>& side = inward ? forest.in_trees : forest.out_trees;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (weights[i] > 0) side.push_back({Rank(root), weights[i], std::move(pieces[i].edges)});
    }
  }
  return forest;
}

std::vector<std::uint32_t> tree_heights(const ResourceGraph& graph, const std::vector<std::uint32_t>& edges) {
  const std::vector<RankPath> paths = split_paths(graph, edges);
  std::vector<std::uint32_t> heights(graph.rank_count(), no_root);
  for (std::uint32_t root = 0; root < graph.rank_count(); ++root) {
    if (!graph.is_dead_end[graph.rank_nodes[root]])
      heights[root] = walk_from(paths, root, graph.rank_count()).back().depth;
  }
  return heights;
}

std::vector<std::uint32_t> directed_from(const ResourceGraph& graph, const std::vector<std::uint32_t>& edges,
                                         std::uint32_t root) {
  const std::vector<RankPath> paths = split_paths(graph, edges);
  std::vector<std::uint32_t> directed;
  for (const Step& step : walk_from(paths, root, graph.rank_count())) {
    const std::vector<std::uint32_t>& path = paths[step.path].edges;
    const std::vector<std::uint32_t> along = step.along ? path : mirror_image(graph, path);
    directed.insert(directed.end(), along.begin(), along.end());
  }
  return directed;
}

std::vector<std::uint32_t> mirror_image(const ResourceGraph& graph, const std::vector<std::uint32_t>& edges) {
  std::vector<std::uint32_t> mirrored;
  for (auto e = edges.rbegin(); e != edges.rend(); ++e) mirrored.push_back(graph.edges[*e].mirror);
  return mirrored;
}

}  // namespace espalier::planners
