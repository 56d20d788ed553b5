#include "planners/symmetry/colored_graph.h"

#include <algorithm>
#include <bliss/graph.hh>
#if __has_include(<bliss/digraph.hh>)  // since bliss 0.77
#include <bliss/digraph.hh>
#endif
#include <set>

namespace espalier::planners {

namespace {

using Visit = std::function<void(std::span<const std::uint32_t>)>;

/// bliss 0.77 takes any function, 0.73 one with a pointer.
template <typename Searched>
void search_automorphisms(Searched& searched, bliss::Stats& stats, const Visit& visit) {
  const auto call = [&visit](unsigned int size, const unsigned int* automorphism) { visit({automorphism, size}); };
  if constexpr (requires { searched.find_automorphisms(stats, call); }) {
    searched.find_automorphisms(stats, call);
  } else {
    using Call = decltype(call);
    searched.find_automorphisms(
        stats,
        [](void* called, unsigned int size, const unsigned int* automorphism) {
          (*static_cast<const Call*>(called))(size, automorphism);
        },
        const_cast<void*>(static_cast<const void*>(&call)));
  }
}

/// The neighbors of all vertices along arcs, or against them.
class Neighbors {
 public:
  Neighbors(const ColoredGraph& graph, bool against) : first_(graph.colors.size() + 1, 0), all_(graph.arcs.size()) {
    const auto ends = [&](const auto& arc) { return against ? std::pair(arc.second, arc.first) : arc; };
    for (const auto& arc : graph.arcs) ++first_[ends(arc).first + 1];
    for (std::size_t v = 1; v < first_.size(); ++v) first_[v] += first_[v - 1];
    std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
    for (const auto& arc : graph.arcs) all_[next[ends(arc).first]++] = ends(arc).second;
  }

  /// Appends the neighbors' colors in order.
  void append_colors(std::size_t vertex, const std::vector<std::uint32_t>& colors,
                     std::vector<std::uint32_t>& key) const {
    const auto begin = static_cast<std::ptrdiff_t>(key.size());
    for (std::size_t i = first_[vertex]; i < first_[vertex + 1]; ++i) key.push_back(colors[all_[i]]);
    std::sort(key.begin() + begin, key.end());
  }

 private:
  std::vector<std::size_t> first_;
  std::vector<std::uint32_t> all_;
};

}  // namespace

std::size_t count_refined_colors(const ColoredGraph& graph, std::size_t count) {
  const Neighbors out(graph, false), in(graph, true);
  std::vector<std::uint32_t> colors = graph.colors;
  for (std::size_t before = 0;;) {
    std::map<std::vector<std::uint32_t>, std::uint32_t> numbers;
    std::vector<std::uint32_t> refined;
    for (std::size_t v = 0; v < colors.size(); ++v) {
      std::vector<std::uint32_t> key = {colors[v]};
      out.append_colors(v, colors, key);
      key.push_back(static_cast<std::uint32_t>(colors.size()));  // no color: here those along arcs end
      in.append_colors(v, colors, key);
      refined.push_back(numbers.try_emplace(std::move(key), static_cast<std::uint32_t>(numbers.size())).first->second);
    }
    colors = std::move(refined);
    if (numbers.size() == before) break;
    before = numbers.size();
  }
  return std::set<std::uint32_t>(colors.begin(), colors.begin() + static_cast<std::ptrdiff_t>(count)).size();
}

namespace {

void fill(bliss::Digraph& searched, const ColoredGraph& graph) {
  for (const std::uint32_t color : graph.colors) searched.add_vertex(color);
  for (const auto& [tail, head] : graph.arcs) searched.add_edge(tail, head);
  searched.set_component_recursion(false);  // bliss 0.73 leaks memory with it
}

}  // namespace

void visit_automorphisms(const ColoredGraph& graph, const Visit& visit) {
  bliss::Digraph searched;
  fill(searched, graph);
  bliss::Stats stats;
  search_automorphisms(searched, stats, visit);
}

std::vector<std::uint32_t> canonical_numbers(const ColoredGraph& graph) {
  bliss::Digraph searched;
  fill(searched, graph);
  bliss::Stats stats;
  const unsigned int* const numbers = searched.canonical_form(stats, nullptr, nullptr);
  return {numbers, numbers + graph.colors.size()};
}

}  // namespace espalier::planners
