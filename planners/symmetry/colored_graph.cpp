#include "planners/symmetry/colored_graph.h"

#include <bliss/graph.hh>

namespace espalier::planners {

namespace {

using Visit = std::function<void(std::span<const std::uint32_t>)>;

void call_visit(void* visit, unsigned int size, const unsigned int* automorphism) {
  (*static_cast<const Visit*>(visit))({automorphism, size});
}

}  // namespace

void visit_automorphisms(const ColoredGraph& graph, const Visit& visit) {
  bliss::Digraph searched;
  for (const std::uint32_t color : graph.colors) searched.add_vertex(color);
  for (const auto& [tail, head] : graph.arcs) searched.add_edge(tail, head);
  bliss::Stats stats;
  Visit called = visit;
  searched.set_component_recursion(false);  // bliss 0.73 leaks memory with it
  searched.find_automorphisms(stats, call_visit, &called);
}

}  // namespace espalier::planners
