#include "planners/lp/trees/arborescence.h"

#include <algorithm>
#include <span>

namespace espalier::planners {

namespace {

/// The search: from any vertex back along cheapest entering edges until the root's part or a cycle is met; a cycle
/// becomes one vertex, whose entering edges cost what they cost more than the edge of the cycle that they replace.
/// A contracted vertex lives in the row and column of one of its members.
template <class Cost>
class Contraction {
 public:
  Contraction(std::span<const Cost> cost, std::uint32_t n, std::uint32_t root)
      : n_(n), root_(root), cost_(std::size_t{n} * n), ends_(std::size_t{n} * n), vertex_(n), place_(n), on_path_(n) {
    for (std::uint32_t v = 0; v < n; ++v) {
      vertex_[v] = v;
      place_[v] = v;
      live_.push_back(v);
      for (std::uint32_t u = 0; u < n; ++u) {
        cost_[at(v, u)] = cost[std::size_t{u} * n + v];
        ends_[at(v, u)] = {u, v};
      }
    }
    tree_.resize(n);
  }

  std::vector<std::uint32_t> run() {
    for (std::uint32_t start = 0; start < n_; ++start) {
      if (start != root_ && place_[start] == start) grow(start);
    }
    return expand();
  }

 private:
  struct Ends {
    std::uint32_t from;
    std::uint32_t to;
  };
  /// A vertex or a contracted cycle.
  struct TreeNode {
    std::uint32_t above = none;  ///< The cycle that it became part of.
    Ends entering{none, none};   ///< Its chosen edge.
  };
  static constexpr std::uint32_t none = UINT32_MAX;

  /// Where the edge from u's place to v's is kept.
  [[nodiscard]] std::size_t at(std::uint32_t v, std::uint32_t u) const { return std::size_t{v} * n_ + u; }

  /// The cheapest edge into a place; the root's part wins ties, then the lowest place.
  [[nodiscard]] std::uint32_t cheapest_into(std::uint32_t v) const {
    std::uint32_t best = root_;
    for (const std::uint32_t u : live_) {
      if (u != v && u != root_ && cost_[at(v, u)] < cost_[at(v, best)]) best = u;
    }
    return best;
  }

  void grow(std::uint32_t start) {
    std::vector<std::uint32_t> path = {start};
    on_path_[start] = true;
    while (!path.empty()) {
      const std::uint32_t v = path.back();
      const std::uint32_t u = cheapest_into(v);
      tree_[vertex_[v]].entering = ends_[at(v, u)];
      if (u == root_) {
        for (const std::uint32_t place : path) {
          on_path_[place] = false;
          absorb_column(root_, place);
          place_[place] = root_;
          live_.erase(std::find(live_.begin(), live_.end(), place));
        }
        path.clear();
      } else if (on_path_[u]) {
        contract(path, u, v);
      } else {
        on_path_[u] = true;
        path.push_back(u);
      }
    }
  }

  /// Makes the part of the path from `first` on, which v's chosen edge from it closes, one vertex in first's place.
  void contract(std::vector<std::uint32_t>& path, std::uint32_t first, std::uint32_t last) {
    const auto cycle = static_cast<std::uint32_t>(tree_.size());
    const auto begin = std::find(path.begin(), path.end(), first);
    // Each member was entered from the next one on the path, the last one from the first.
    for (auto member = begin; member != path.end(); ++member) {
      const std::uint32_t entered_from = *member == last ? first : *(member + 1);
      const Cost chosen = cost_[at(*member, entered_from)];
      for (const std::uint32_t u : live_) {
        if (u != *member) cost_[at(*member, u)] -= chosen;
      }
    }
    for (auto member = begin; member != path.end(); ++member) {
      tree_[vertex_[*member]].above = cycle;
      if (*member == first) continue;
      absorb_row(first, *member);
      absorb_column(first, *member);
      place_[*member] = first;
      on_path_[*member] = false;
    }
    for (auto member = begin + 1; member != path.end(); ++member) {
      live_.erase(std::find(live_.begin(), live_.end(), *member));
    }
    path.erase(begin + 1, path.end());
    tree_.emplace_back();
    vertex_[first] = cycle;
  }

  void absorb_row(std::uint32_t into, std::uint32_t from) {
    for (const std::uint32_t u : live_) {
      if (u == into || u == from || !(cost_[at(from, u)] < cost_[at(into, u)])) continue;
      cost_[at(into, u)] = cost_[at(from, u)];
      ends_[at(into, u)] = ends_[at(from, u)];
    }
  }
  void absorb_column(std::uint32_t into, std::uint32_t from) {
    for (const std::uint32_t v : live_) {
      if (v == into || v == from || !(cost_[at(v, from)] < cost_[at(v, into)])) continue;
      cost_[at(v, into)] = cost_[at(v, from)];
      ends_[at(v, into)] = ends_[at(v, from)];
    }
  }

  /// From the outermost cycles inwards: the edge that enters a cycle replaces the one chosen for the member it enters.
  std::vector<std::uint32_t> expand() {
    std::vector<std::uint32_t> parent(n_, root_);
    std::vector<bool> settled(tree_.size(), false);
    for (auto node = static_cast<std::uint32_t>(tree_.size()); node-- > 0;) {
      if (settled[node] || node == root_) continue;
      const Ends entering = tree_[node].entering;
      parent[entering.to] = entering.from;
      for (std::uint32_t inner = entering.to; inner != none && !settled[inner]; inner = tree_[inner].above) {
        settled[inner] = true;
      }
    }
    return parent;
  }

  std::uint32_t n_;
  std::uint32_t root_;
  std::vector<Cost> cost_;
  std::vector<Ends> ends_;
  std::vector<std::uint32_t> vertex_;  ///< By place: the node of `tree_` that lives there.
  std::vector<std::uint32_t> place_;   ///< By vertex: itself, or where it was merged to.
  std::vector<std::uint32_t> live_;    ///< The places in use, in order.
  std::vector<bool> on_path_;
  std::vector<TreeNode> tree_;
};

/// Every vertex with its cheapest parent, the root winning ties, then the lowest.
template <class Cost>
std::vector<std::uint32_t> cheapest_parents(std::span<const Cost> cost, std::uint32_t n, std::uint32_t root) {
  std::vector<std::uint32_t> parent(n, root);
  for (std::uint32_t u = 0; u < n; ++u) {
    const std::span<const Cost> row = cost.subspan(std::size_t{u} * n, n);
    for (std::uint32_t v = 0; v < n; ++v) {
      if (u != v && v != root && row[v] < cost[std::size_t{parent[v]} * n + v]) parent[v] = u;
    }
  }
  return parent;
}

bool is_tree(const std::vector<std::uint32_t>& parent, std::uint32_t root) {
  std::vector<std::uint32_t> met_from(parent.size(), UINT32_MAX);
  met_from[root] = root;
  for (std::uint32_t start = 0; start < parent.size(); ++start) {
    std::uint32_t v = start;
    while (met_from[v] == UINT32_MAX) {
      met_from[v] = start;
      v = parent[v];
    }
    if (met_from[v] == start && v != root) return false;
    for (v = start; met_from[v] == start && v != root; v = parent[v]) met_from[v] = root;
  }
  return true;
}

}  // namespace

template <class Cost>
std::vector<std::uint32_t> cheapest_arborescence(const std::vector<Cost>& cost, std::uint32_t n, std::uint32_t root) {
  std::vector<std::uint32_t> parent = cheapest_parents<Cost>(cost, n, root);
  return is_tree(parent, root) ? parent : Contraction<Cost>(cost, n, root).run();
}

template std::vector<std::uint32_t> cheapest_arborescence(const std::vector<double>&, std::uint32_t, std::uint32_t);
template std::vector<std::uint32_t> cheapest_arborescence(const std::vector<std::int64_t>&, std::uint32_t,
                                                          std::uint32_t);
template std::vector<std::uint32_t> cheapest_arborescence(const std::vector<BigInteger>&, std::uint32_t, std::uint32_t);

}  // namespace espalier::planners
