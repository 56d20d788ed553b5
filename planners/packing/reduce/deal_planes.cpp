#include <algorithm>
#include <map>
#include <utility>

#include "planners/packing/realize_trees.h"
#include "planners/packing/reduce/edge_coloring.h"
#include "planners/packing/reduce/even_layers.h"
#include "planners/packing/reduce/parallel_switches.h"

namespace espalier::planners {

namespace {

constexpr std::size_t max_passes = std::size_t{1} << 18U;
constexpr std::int64_t max_copies = 64;  // of one tree
constexpr std::size_t max_layers = 4;

/// Where a tree passes a parallel switch.
struct PlanePass {
  std::size_t tree = 0;  ///< Of unit weight.
  std::size_t edge = 0;
  std::size_t place = 0;  ///< Of the link that comes in, among those of the edge.
  std::size_t end = 0;    ///< Of the one after that which leaves.
  std::uint32_t plane = 0;
};

/// What passes one group of parallel switches.
struct PlaneCrossing {
  std::size_t planes = 0;
  std::vector<PlanePass> passes;
  std::vector<std::pair<std::uint32_t, std::uint32_t>>
      edges;                ///< By pass: from which link to which, in the first plane.
  bool is_layered = false;  ///< Passes then have a colour and not a plane.
};

class PlaneDealer {
 public:
  PlaneDealer(const Topology& topology, const ParallelSwitches& parallel, std::span<const std::int64_t> capacities,
              std::span<const Arborescence> trees, std::int64_t unit)
      : topology_(topology),
        parallel_(parallel),
        capacities_(capacities),
        unit_(unit),
        crossings_(parallel.group_count()) {
    for (const Arborescence& tree : trees) {
      const std::int64_t copies = tree.weight / unit;
      is_small_ = is_small_ && copies <= max_copies;
      for (std::int64_t copy = 0; copy < copies && is_small_; ++copy) add(tree);
    }
  }

  std::optional<std::vector<Arborescence>> run() {
    if (!is_small_) return std::nullopt;
    for (PlaneCrossing& crossing : crossings_) {
      if (!crossing.passes.empty() && !paint_planes(crossing) && !paint_layers(crossing)) return std::nullopt;
    }
    if (layers_.empty()) layers_.push_back({1, {}});
    return dealt();
  }

 private:
  void add(const Arborescence& tree) {
    for (std::size_t e = 0; e < tree.edges.size(); ++e) {
      const std::vector<LinkId>& links = tree.edges[e].links;
      for (std::size_t i = 0; i + 1 < links.size(); ++i) {
        const std::uint32_t group = parallel_.group_of(topology_.link(links[i]).head);
        if (group == ParallelSwitches::no_group) continue;
        std::size_t end = i + 1;
        while (end < links.size() && parallel_.group_of(topology_.link(links[end - 1]).head) == group) ++end;
        PlaneCrossing& crossing = crossings_[group];
        crossing.planes = parallel_.planes(links[i]);
        crossing.passes.push_back({trees_.size(), e, i, end, 0});
        crossing.edges.emplace_back(parallel_.in_plane(links[i], 0).value(),
                                    parallel_.in_plane(links[end - 1], 0).value());
        i = end - 1;
        is_small_ = is_small_ && ++pass_count_ <= max_passes;
      }
    }
    trees_.push_back(&tree);
  }

  /// How many edges every link has, by link.
  static std::map<std::uint32_t, std::int64_t> degrees(const PlaneCrossing& crossing) {
    std::map<std::uint32_t, std::int64_t> degree;
    for (const auto& [in, out] : crossing.edges) {
      ++degree[in];
      ++degree[out];
    }
    return degree;
  }

  /// Gives every pass a colour. A link is as many vertices as it needs to have an edge per colour at most.
  static void paint(PlaneCrossing& crossing, std::uint32_t colors) {
    std::map<std::uint32_t, std::uint32_t> met;  // by link
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> vertex;
    const auto vertex_of = [&](std::uint32_t link) {
      const std::uint32_t part = met[link]++ / colors;
      return vertex.try_emplace({link, part}, static_cast<std::uint32_t>(vertex.size())).first->second;
    };
    std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
    for (const auto& [in, out] : crossing.edges) {
      const std::uint32_t tail = vertex_of(in);
      edges.emplace_back(tail, vertex_of(out));
    }
    const std::vector<std::uint32_t> color = color_edges(edges, colors);
    for (std::size_t i = 0; i < color.size(); ++i) crossing.passes[i].plane = color[i];
  }

  /// A plane for every pass, so that no link gets more whole trees than it holds: a link is as many vertices as it
  /// holds trees, each with one edge per plane at most. False where some link has too many edges for that.
  bool paint_planes(PlaneCrossing& crossing) const {
    for (const auto& [link, degree] : degrees(crossing)) {
      if (degree > static_cast<std::int64_t>(crossing.planes) * (capacities_[link] / unit_)) return false;
    }
    paint(crossing, static_cast<std::uint32_t>(crossing.planes));
    return true;
  }

  /// A colour for every pass and layers that give colours planes. False where other passes need other layers.
  bool paint_layers(PlaneCrossing& crossing) {
    std::int64_t most = 0;
    for (const auto& [link, degree] : degrees(crossing)) most = std::max(most, degree);
    if (!layers_.empty() && (most != colors_ || crossing.planes != layers_.front().counts.size())) return false;
    if (layers_.empty()) layers_ = even_layers(most, crossing.planes);
    colors_ = most;
    if (layers_.size() > max_layers) return false;
    paint(crossing, static_cast<std::uint32_t>(most));
    crossing.is_layered = true;
    return true;
  }

  /// Every layer of every tree; nothing where a link would carry too much.
  [[nodiscard]] std::optional<std::vector<Arborescence>> dealt() const {
    BigInteger common = 1;
    for (const PlaneLayer& layer : layers_) common = lcm(common, BigInteger(denominator(layer.part)));
    if (common > max_weight) return std::nullopt;
    std::vector<Arborescence> result;
    std::vector<BigInteger> load(capacities_.size(), 0);
    for (const PlaneLayer& layer : layers_) {
      const BigInteger weight = numerator(layer.part) * (common / denominator(layer.part));
      const std::size_t first = result.size();
      for (const Arborescence* tree : trees_) {
        result.push_back({tree->root, weight.convert_to<std::int64_t>(), tree->edges});
      }
      const std::vector<std::uint32_t> plane_of = planes_by_color(layer);
      for (const PlaneCrossing& crossing : crossings_) {
        for (const PlanePass& pass : crossing.passes) {
          const std::uint32_t plane = crossing.is_layered ? plane_of[pass.plane] : pass.plane;
          std::vector<LinkId>& links = result[first + pass.tree].edges[pass.edge].links;
          for (std::size_t i = pass.place; i < pass.end; ++i) links[i] = parallel_.in_plane(links[i], plane);
        }
      }
      for (std::size_t i = first; i < result.size(); ++i) {
        for (const TreeEdge& edge : result[i].edges) {
          for (const LinkId link : edge.links) load[link.index()] += weight;
        }
      }
    }
    for (std::size_t link = 0; link < load.size(); ++link) {
      if (load[link] * unit_ > common * capacities_[link]) return std::nullopt;
    }
    return result;
  }

  [[nodiscard]] static std::vector<std::uint32_t> planes_by_color(const PlaneLayer& layer) {
    std::vector<std::uint32_t> planes;
    for (std::uint32_t plane = 0; plane < layer.counts.size(); ++plane) {
      planes.insert(planes.end(), static_cast<std::size_t>(layer.counts[plane]), plane);
    }
    return planes;
  }

  static constexpr std::int64_t max_weight = std::int64_t{1} << 50U;

  const Topology& topology_;
  const ParallelSwitches& parallel_;
  std::span<const std::int64_t> capacities_;
  std::int64_t unit_;
  std::vector<PlaneCrossing> crossings_;    ///< By group of parallel ones.
  std::vector<const Arborescence*> trees_;  ///< Of unit weight each.
  std::vector<PlaneLayer> layers_;          ///< Of those groups that need some.
  std::int64_t colors_ = 0;
  std::size_t pass_count_ = 0;
  bool is_small_ = true;
};

/// Like trees as one.
std::vector<Arborescence> merge_like(std::vector<Arborescence> trees) {
  std::map<std::vector<std::uint32_t>, std::size_t> known;
  std::vector<Arborescence> result;
  for (Arborescence& tree : trees) {
    std::vector<std::uint32_t> key = {tree.root.value()};
    for (const TreeEdge& edge : tree.edges) {
      key.push_back(edge.child.value());
      for (const LinkId link : edge.links) key.push_back(link.value());
    }
    const auto [place, is_new] = known.try_emplace(std::move(key), result.size());
    if (is_new) {
      result.push_back(std::move(tree));
    } else {
      result[place->second].weight += tree.weight;
    }
  }
  return result;
}

}  // namespace

std::optional<std::vector<Arborescence>> ParallelSwitches::lift(std::span<const std::int64_t> capacities,
                                                                std::span<const Arborescence> trees,
                                                                std::int64_t unit) const {
  auto dealt = PlaneDealer(topology_, *this, capacities, trees, unit).run();
  if (!dealt) return std::nullopt;
  reduce_weights(*dealt);
  return merge_like(*std::move(dealt));
}

}  // namespace espalier::planners
