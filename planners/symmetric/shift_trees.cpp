#include "planners/symmetric/shift_trees.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/check.h"
#include "planners/graph/path_search.h"

namespace espalier::planners {

namespace {

using Edges = std::vector<std::uint32_t>;

/// As orbit_loads of one path, at a cost that its own edges have.
std::vector<Entry> loads_of(const OrbitGraph& orbits, const Edges& edges) {
  std::vector<Entry> loads;
  for (const std::uint32_t e : edges) {
    for (const std::uint32_t resource : orbits.graph.edges[e].resources) {
      const std::uint32_t orbit = orbits.resources.of[resource];
      const auto at = std::ranges::lower_bound(loads, orbit, {}, &Entry::index);
      if (at != loads.end() && at->index == orbit) {
        ++at->value;
      } else {
        loads.insert(at, {orbit, 1});
      }
    }
  }
  return loads;
}

/// Paths from rank 0 that load links as one of them does.
class LikePaths {
 public:
  LikePaths(const Shifts& shifts, const Edges& model)
      : shifts_(shifts),
        loads_(loads_of(shifts.orbits(), model)),
        paths_(shifts.orbits().graph, lengths_by(shifts.orbits(), loads_), shifts.orbits().graph.rank_nodes.front(),
               false) {}

  [[nodiscard]] std::optional<Edges> to(std::uint32_t rank) const {
    const ResourceGraph& graph = shifts_.orbits().graph;
    Edges edges;
    for (std::uint32_t node = graph.rank_nodes[rank]; node != graph.rank_nodes.front();) {
      if (!paths_.has_path(node) || paths_.distance(node) >= far) return std::nullopt;
      const std::uint32_t e = paths_.entering_edge()[node];
      edges.push_back(e);
      node = graph.edges[e].tail;
    }
    std::reverse(edges.begin(), edges.end());
    const std::vector<Entry> loads = loads_of(shifts_.orbits(), edges);
    const bool is_like = std::ranges::equal(
        loads, loads_, [](const Entry& a, const Entry& b) { return a.index == b.index && a.value == b.value; });
    return is_like ? std::optional(std::move(edges)) : std::nullopt;
  }

 private:
  static constexpr std::int64_t far = std::int64_t{1} << 40;

  /// Links of other orbits than these are far.
  static std::vector<std::int64_t> lengths_by(const OrbitGraph& orbits, const std::vector<Entry>& loads) {
    std::vector<std::int64_t> prices(orbits.resources.count(), far);
    for (const Entry& entry : loads) prices[entry.index] = 1;
    return edge_lengths<std::int64_t>(orbits, prices);
  }

  const Shifts& shifts_;
  std::vector<Entry> loads_;
  ShortestPaths<std::int64_t> paths_;
};

/// Cosets of a subgroup that are joined at once: from the one of 0 by each of these steps, or one after the other.
struct Join {
  std::vector<std::uint32_t> steps;  ///< Of a star; of a chain the one step.
  std::uint32_t cosets = 0;
  bool is_star = false;
};

/// The parts that a number of cosets is joined in: factors of at most max_children + 1 as far as there are any.
std::vector<std::uint32_t> factors_of(std::uint32_t cosets, std::uint32_t max_children) {
  std::vector<std::uint32_t> factors;
  for (std::uint32_t rest = cosets; rest > 1;) {
    std::uint32_t factor = std::min(rest, max_children + 1);
    while (factor > 1 && rest % factor != 0) --factor;
    if (factor == 1) {
      factor = max_children + 2;
      while (rest % factor != 0) ++factor;
    }
    factors.push_back(factor);
    rest /= factor;
  }
  return factors;
}

class TreeMaker {
 public:
  TreeMaker(const Shifts& shifts, std::uint32_t max_children) : shifts_(shifts), max_children_(max_children) {}

  /// Joins what the shift makes of the subgroup so far.
  void add(std::uint32_t shift, std::uint32_t cosets, const Edges& path) {
    const LikePaths like(shifts_, path);
    std::vector<std::uint32_t> multiples = {0};
    for (std::uint32_t k = 1; k < cosets; ++k) multiples.push_back(shifts_.sum(multiples.back(), shift));
    std::vector<ShiftTree::Step> steps;
    for (std::uint32_t k = 1; k < cosets; ++k) {
      auto edges = k == 1 ? std::optional(path) : like.to(multiples[k]);
      if (!edges) break;
      steps.push_back({multiples[k], *std::move(edges)});
    }
    if (steps.size() + 1 < cosets) {
      joins_.push_back({{number_of({shift, path})}, cosets, false});
      return;
    }
    std::uint32_t stride = cosets;
    for (const std::uint32_t factor : factors_of(cosets, max_children_)) {
      stride /= factor;
      Join join{{}, factor, true};
      for (std::uint32_t k = 1; k < factor; ++k) join.steps.push_back(number_of(steps[k * stride - 1]));
      joins_.push_back(std::move(join));
    }
  }

  ShiftTree finish() {
    std::vector<std::uint32_t> reached = {0};
    for (auto join = joins_.rbegin(); join != joins_.rend(); ++join) {
      const std::size_t before = reached.size();
      std::vector<std::uint32_t> last(reached);
      for (std::uint32_t k = 1; k < join->cosets; ++k) {
        const std::uint32_t step = join->is_star ? join->steps[k - 1] : join->steps.front();
        for (std::size_t i = 0; i < before; ++i) {
          const std::uint32_t parent = join->is_star ? reached[i] : last[i];
          tree_.edges.push_back({parent, step});
          last[i] = shifts_.sum(parent, tree_.steps[step].shift);
          reached.push_back(last[i]);
        }
      }
    }
    return std::move(tree_);
  }

 private:
  std::uint32_t number_of(ShiftTree::Step step) {
    tree_.steps.push_back(std::move(step));
    return static_cast<std::uint32_t>(tree_.steps.size() - 1);
  }

  const Shifts& shifts_;
  std::uint32_t max_children_;
  std::vector<Join> joins_;  // from within
  ShiftTree tree_;
};

void append_image(const OrbitGraph& orbits, const Automorphism& by, const Edges& path, Edges& edges) {
  for (const std::uint32_t e : path) edges.push_back(orbits.edge_image(by, e));
}

}  // namespace

ShiftTree make_shift_tree(const Shifts& shifts, const Column& column, std::uint32_t max_children) {
  TreeMaker maker(shifts, max_children);
  ShiftChain chain(shifts);
  for (const RankPath& path : split_paths(shifts.orbits().graph, column.edges)) {
    maker.add(path.to, chain.add(path.to), path.edges);
  }
  return maker.finish();
}

namespace {

/// The steps of a path through all ranks, and how many cosets each of them joins.
struct PathSteps {
  PathSteps(const Shifts& shifts, const Column& column) {
    ShiftChain chain(shifts);
    for (RankPath& step : split_paths(shifts.orbits().graph, column.edges)) {
      cosets.push_back(chain.add(step.to));
      steps.push_back({step.to, std::move(step.edges)});
    }
  }

  std::vector<ShiftTree::Step> steps;
  std::vector<std::uint32_t> cosets;
};

/// The path that begins when `first` of the inmost steps are done; none where it comes to a rank twice.
std::optional<ShiftTree> path_from(const Shifts& shifts, const PathSteps& of, std::uint32_t first) {
  ShiftTree path;
  path.steps = of.steps;
  std::vector<bool> is_reached(shifts.count(), false);
  is_reached[0] = true;
  std::vector<std::uint32_t> done(of.cosets.size(), 1);
  done.front() += first;
  for (std::uint32_t at = 0; path.edges.size() + 1 < shifts.count();) {
    std::uint32_t step = 0;
    while (step + 1 < done.size() && done[step] == of.cosets[step]) done[step++] = 1;
    ++done[step];
    path.edges.push_back({at, step});
    at = shifts.sum(at, path.steps[step].shift);
    if (is_reached[at]) return std::nullopt;
    is_reached[at] = true;
  }
  return path;
}

}  // namespace

ShiftTree make_shift_path(const Shifts& shifts, const Column& column) {
  auto path = path_from(shifts, PathSteps(shifts, column), 0);
  ESPALIER_CHECK(path.has_value(), "steps that each join all their cosets lead through all ranks");
  return *std::move(path);
}

std::vector<ShiftTree> make_shift_rings(const Shifts& shifts, const Column& column, std::uint32_t most) {
  const PathSteps steps(shifts, column);
  std::vector<ShiftTree> rings;
  const std::uint32_t inside = steps.cosets.size() > 1 ? steps.cosets.front() : 1;
  std::uint32_t count = std::min(inside, most);
  while (inside % count != 0) --count;
  for (std::uint32_t i = 0; i < count; ++i) {
    auto path = path_from(shifts, steps, i * (inside / count));
    if (!path) return {make_shift_path(shifts, column)};
    rings.push_back(*std::move(path));
  }
  return rings;
}

std::vector<std::uint32_t> outward(const Shifts& shifts, const ShiftTree& tree) {
  Edges edges;
  for (const auto& [parent, step] : tree.edges) {
    append_image(shifts.orbits(), shifts.by(parent), tree.steps[step].edges, edges);
  }
  return edges;
}

std::vector<std::uint32_t> inward(const Shifts& shifts, const ShiftTree& tree) {
  Edges edges;
  for (const auto& [parent, step] : tree.edges) {
    const std::uint32_t child = shifts.minus(shifts.sum(parent, tree.steps[step].shift));
    append_image(shifts.orbits(), shifts.by(child), tree.steps[step].edges, edges);
  }
  return edges;
}

}  // namespace espalier::planners
