#include "planners/program/arborescence.h"

#include <limits>
#include <utility>

namespace espalier {

namespace {

constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

template <class Cost>
std::vector<std::uint32_t> cheapest_parents(std::span<const Cost> cost, std::uint32_t n, std::uint32_t root) {
  std::vector<std::uint32_t> parent(n, root);
  for (std::uint32_t v = 0; v < n; ++v) {
    if (v == root) continue;
    std::uint32_t best = none;
    for (std::uint32_t u = 0; u < n; ++u) {
      if (u != v && (best == none || cost[u * n + v] < cost[best * n + v])) best = u;
    }
    parent[v] = best;
  }
  return parent;
}

/// Gives the vertices of each cycle of `parent` one number, every other vertex its own; returns how many there are.
std::uint32_t number_components(std::span<const std::uint32_t> parent, std::uint32_t root,
                                std::vector<std::uint32_t>& component, std::vector<bool>& on_cycle) {
  const auto n = static_cast<std::uint32_t>(parent.size());
  component.assign(n, none);
  on_cycle.assign(n, false);
  std::vector<std::uint32_t> walk(n, none);
  std::uint32_t count = 0;
  for (std::uint32_t start = 0; start < n; ++start) {
    std::uint32_t v = start;
    while (v != root && walk[v] == none) {
      walk[v] = start;
      v = parent[v];
    }
    if (v == root || walk[v] != start || component[v] != none) continue;
    for (; component[v] == none; v = parent[v]) {
      component[v] = count;
      on_cycle[v] = true;
    }
    ++count;
  }
  for (std::uint32_t v = 0; v < n; ++v) {
    if (component[v] == none) component[v] = count++;
  }
  return count;
}

template <class Cost>
std::vector<std::uint32_t> solve(std::span<const Cost> cost, std::uint32_t n, std::uint32_t root) {
  std::vector<std::uint32_t> parent = cheapest_parents(cost, n, root);
  std::vector<std::uint32_t> component;
  std::vector<bool> on_cycle;
  const std::uint32_t count = number_components(parent, root, component, on_cycle);
  if (count == n) return parent;

  // Entering a cycle at v saves the cycle's own edge into v.
  std::vector<Cost> reduced(std::size_t{count} * count, Cost(0));
  std::vector<std::pair<std::uint32_t, std::uint32_t>> origin(std::size_t{count} * count, {none, none});
  for (std::uint32_t u = 0; u < n; ++u) {
    for (std::uint32_t v = 0; v < n; ++v) {
      if (component[u] == component[v] || v == root) continue;
      Cost value = cost[u * n + v];
      if (on_cycle[v]) value -= cost[parent[v] * n + v];
      const std::size_t at = std::size_t{component[u]} * count + component[v];
      if (origin[at].first == none || value < reduced[at]) {
        reduced[at] = std::move(value);
        origin[at] = {u, v};
      }
    }
  }
  const std::vector<std::uint32_t> contracted = solve<Cost>(reduced, count, component[root]);
  for (std::uint32_t c = 0; c < count; ++c) {
    if (c == component[root]) continue;
    const auto [from, to] = origin[std::size_t{contracted[c]} * count + c];
    parent[to] = from;
  }
  return parent;
}

}  // namespace

std::vector<std::uint32_t> cheapest_arborescence(std::span<const double> cost, std::uint32_t n, std::uint32_t root) {
  return solve(cost, n, root);
}

std::vector<std::uint32_t> cheapest_arborescence(std::span<const BigInteger> cost, std::uint32_t n,
                                                 std::uint32_t root) {
  return solve(cost, n, root);
}

}  // namespace espalier
