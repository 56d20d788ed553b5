#pragma once

// Tested by: tests/unit/planners/symmetry_test.cpp

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace espalier::planners {

/// A directed graph whose vertices have colors.
struct ColoredGraph {
  std::vector<std::uint32_t> colors;                          ///< By vertex.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> arcs;  ///< Tail and head.
};

/// Keys as numbers from `first` on, in the keys' own order, so that a graph does not depend on the order of a file.
template <class Key>
std::map<Key, std::uint32_t> number_keys(const std::vector<Key>& keys, std::uint32_t first) {
  std::map<Key, std::uint32_t> numbers;
  for (const Key& key : keys) numbers.emplace(key, 0);
  for (auto& [key, number] : numbers) number = first++;
  return numbers;
}

/// How many colors the first `count` vertices have when colors tell apart all that neighbors and their colors tell
/// apart (the coarsest equitable partition): automorphisms keep these colors, so there are as many orbits or more.
/// Cost: O((vertices + arcs) log) per round, in rounds as many as the graph is deep.
std::size_t count_refined_colors(const ColoredGraph& graph, std::size_t count);

/// Calls `visit` with generators of the group of automorphisms that keep all colors and arcs; vertex i becomes entry i.
/// Deterministic. Cost: nearly linear on networks in practice.
/// Source: T. Junttila and P. Kaski, "Engineering an efficient canonical labeling tool for large and sparse graphs",
/// ALENEX 2007; the work is done by their library, bliss.
void visit_automorphisms(const ColoredGraph& graph, const std::function<void(std::span<const std::uint32_t>)>& visit);

/// A number for each vertex, such that two graphs that differ in the numbers of vertices alone are the same once these
/// are their numbers (a canonical labeling). Cost and source: as visit_automorphisms.
std::vector<std::uint32_t> canonical_numbers(const ColoredGraph& graph);

}  // namespace espalier::planners
