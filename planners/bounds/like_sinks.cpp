#include "planners/bounds/like_sinks.h"

#include <map>
#include <set>
#include <utility>

#include "base/disjoint_sets.h"

namespace espalier::planners {
namespace {

/// Fewer ranks are all tried: that is quick.
constexpr std::size_t min_sinks_folded = 2049;
/// Arcs of a switch between machines; of one within a machine there are fewer.
constexpr std::size_t min_hub_arcs = 128;

/// The machines that a network falls into without its hubs, and which of them are alike.
class Machines {
 public:
  Machines(const FlowNetwork& network, Rank root) : network_(network), place_(network.vertex_count()) {
    const std::size_t vertices = network.vertex_count();
    DisjointSets joined(vertices);
    for (const FlowArc& arc : network.arcs()) {
      if (!is_hub(arc.tail) && !is_hub(arc.head)) joined.join(arc.tail, arc.head);
    }
    std::vector<std::uint32_t> sizes(vertices, 0);
    machine_of_.resize(vertices);
    signatures_.resize(vertices);
    for (std::uint32_t vertex = 0; vertex < vertices; ++vertex) {
      const std::uint32_t machine = machine_of_[vertex] = joined.find(vertex);
      place_[vertex] = sizes[machine]++;
      signatures_[machine].push_back(network.rank_at(vertex).is_none() ? 0 : 1);
    }
    for (const FlowArc& arc : network.arcs()) {
      if (!is_hub(arc.tail)) note(machine_of_[arc.tail], arc);
      if (!is_hub(arc.head) && is_hub(arc.tail)) note(machine_of_[arc.head], arc);
    }
    if (!root.is_none()) signatures_[machine_of_[network.source_of(root)]].push_back(UINT64_MAX);
  }

  /// Equal for vertices that some swap of like machines takes to each other. Requires: no hub.
  std::pair<std::uint32_t, std::uint32_t> kind_of(std::uint32_t vertex) {
    const std::uint32_t machine = machine_of_[vertex];
    return {first_like_.try_emplace(signatures_[machine], machine).first->second, place_[vertex]};
  }

  [[nodiscard]] bool is_hub(std::uint32_t vertex) const {
    return network_.arcs_from(vertex).size() + network_.arcs_to(vertex).size() >= min_hub_arcs;
  }

 private:
  using Signature = std::vector<std::uint64_t>;

  /// An end by its place in the machine, or as the hub that it is.
  [[nodiscard]] std::uint64_t end_of(std::uint32_t vertex) const {
    return is_hub(vertex) ? 2 * std::uint64_t{vertex} + 1 : 2 * std::uint64_t{place_[vertex]};
  }

  void note(std::uint32_t machine, const FlowArc& arc) {
    Signature& signature = signatures_[machine];
    signature.insert(signature.end(), {end_of(arc.tail), end_of(arc.head), static_cast<std::uint64_t>(arc.capacity)});
  }

  const FlowNetwork& network_;
  std::vector<std::uint32_t> machine_of_;  // by vertex; a hub is one of its own
  std::vector<std::uint32_t> place_;       // by vertex: in its machine
  std::vector<Signature> signatures_;      // by machine
  std::map<Signature, std::uint32_t> first_like_;
};

}  // namespace

std::vector<std::uint32_t> like_sinks(const FlowNetwork& network, Rank root) {
  const auto all = network.rank_vertices();
  if (all.size() < min_sinks_folded) return {all.begin(), all.end()};
  Machines machines(network, root);
  std::set<std::pair<std::uint32_t, std::uint32_t>> kinds;
  std::vector<std::uint32_t> sinks;
  for (const std::uint32_t sink : all) {
    // A rank that must not relay has a second vertex elsewhere.
    const bool is_apart = network.source_of(network.rank_at(sink)) != sink;
    if (is_apart || machines.is_hub(sink) || kinds.insert(machines.kind_of(sink)).second) sinks.push_back(sink);
  }
  return sinks;
}

}  // namespace espalier::planners
