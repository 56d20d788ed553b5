#include "topology/draw/part_tree.h"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>

#include "base/disjoint_sets.h"
#include "base/fnv.h"
#include "topology/names/name_list.h"

namespace espalier {
namespace {

/// What tells nodes apart.
struct Detail {
  bool places = false;  ///< Which node of the machine a link leads to.
  bool use = false;     ///< Loads, and the side of the cut.
};

class TreeMaker {
 public:
  TreeMaker(const Topology& topology, const DrawnUse& use)
      : topology_(topology),
        use_(use),
        machine_of_(topology.node_count(), none),
        place_(topology.node_count(), 0),
        level_(topology.node_count(), 0),
        is_on_side_(topology.node_count(), false) {
    for (const NodeId node : use.side) is_on_side_[node.index()] = true;
  }

  PartTree make() {
    make_machines();
    find_levels();
    join_levels();
    structure_ = node_colours({true, false});
    tree_.likeness = node_colours({true, true});
    tree_.loose_likeness = node_colours({false, true});
    tree_.part_of.resize(topology_.node_count());
    for (std::size_t i = 0; i < tree_.parts.size(); ++i) {  // Children come before what they hang below.
      describe(i);
      for (const std::size_t node : tree_.parts[i].nodes) tree_.part_of[node] = i;
      for (const std::size_t child : tree_.parts[i].children) tree_.parts[child].parent = i;
    }
    tree_.parts[tree_.root].parent = tree_.root;
    return std::move(tree_);
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  /// Nodes of one host; ranks of none, each by itself. Where no node has a host, and there is more than ranks and
  /// switches, all is one machine.
  void make_machines() {
    const auto nodes = topology_.nodes();
    const bool has_hosts = std::ranges::any_of(nodes, [](const Node& node) { return !node.host.empty(); });
    const bool is_one = !has_hosts && std::ranges::any_of(nodes, [](const Node& node) {
      return !node.is_rank && node.kind != NodeKind::switch_node;
    });
    std::map<std::string, std::size_t> by_host;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const Node& node = nodes[i];
      if (node.host.empty() && !node.is_rank && !is_one) continue;
      const bool is_alone = node.host.empty() && !is_one;
      const std::size_t next = tree_.parts.size();
      const std::size_t part = is_alone ? next : by_host.emplace(node.host, next).first->second;
      if (part == next) tree_.parts.push_back({.name = is_alone ? node.id : node.host, .is_machine = true});
      machine_of_[i] = part;
      tree_.parts[part].nodes.push_back(i);
    }
    for (NetworkPart& part : tree_.parts) {
      // Names count "nic2" before "nic10".
      std::ranges::sort(part.nodes, {}, [&](std::size_t node) {
        const Node& it = topology_.node(NodeId(node));
        return std::tuple(it.kind, it.id.size(), it.id);
      });
      for (std::size_t i = 0; i < part.nodes.size(); ++i) place_[part.nodes[i]] = i;
    }
  }

  template <class Use>
  void for_neighbours(std::size_t node, Use use) const {
    for (const LinkId link : topology_.out_links(NodeId(node))) use(topology_.link(link).head.index());
    for (const LinkId link : topology_.in_links(NodeId(node))) use(topology_.link(link).tail.index());
  }

  /// How many hops the nodes outside machines are from these; 1 for those that none leads to.
  void find_levels() {
    std::queue<std::size_t> waiting;
    for (std::size_t i = 0; i < level_.size(); ++i) {
      level_[i] = machine_of_[i] == none ? none : 0;
      if (level_[i] == 0) waiting.push(i);
    }
    for (; !waiting.empty(); waiting.pop()) {
      for_neighbours(waiting.front(), [&](std::size_t next) {
        if (level_[next] != none) return;
        level_[next] = level_[waiting.front()] + 1;
        waiting.push(next);
      });
    }
    std::ranges::replace(level_, none, std::size_t{1});
  }

  /// Level by level, switches that join the same parts are one part above them.
  void join_levels() {
    DisjointSets joined(static_cast<std::uint32_t>(topology_.node_count()));
    const auto number = [](std::size_t node) { return static_cast<std::uint32_t>(node); };
    std::vector<std::size_t> tops;
    for (std::size_t part = 0; part < tree_.parts.size(); ++part) {
      tops.push_back(part);
      for (const std::size_t node : tree_.parts[part].nodes) {
        joined.join(number(node), number(tree_.parts[part].nodes.front()));
      }
    }
    const std::size_t highest = *std::ranges::max_element(level_);
    for (std::size_t level = 1; level <= highest; ++level) {
      for (std::size_t i = 0; i < level_.size(); ++i) {
        if (level_[i] != level) continue;
        for_neighbours(i, [&](std::size_t other) {
          if (level_[other] < level || (level_[other] == level && is_one_scope(i, other)))
            joined.join(number(i), number(other));
        });
      }
      std::map<std::uint32_t, std::size_t> above;  // by set
      for (std::size_t i = 0; i < level_.size(); ++i) {
        if (level_[i] != level) continue;
        const auto [place, is_new] = above.emplace(joined.find(number(i)), tree_.parts.size());
        if (is_new) tree_.parts.emplace_back();
        tree_.parts[place->second].nodes.push_back(i);
      }
      std::vector<std::size_t> next;
      for (const std::size_t part : tops) {
        const auto found = above.find(joined.find(number(tree_.parts[part].nodes.front())));
        (found == above.end() ? next : tree_.parts[found->second].children).push_back(part);
      }
      for (const auto& [set, part] : above) next.push_back(part);
      tops = std::move(next);
    }
    tree_.root = tops.front();
    if (tops.size() == 1) return;
    tree_.root = tree_.parts.size();
    tree_.parts.push_back({.children = std::move(tops)});
  }

  /// Switches of a group that is named: "group0.router1".
  [[nodiscard]] bool is_one_scope(std::size_t a, std::size_t b) const {
    const std::string scope = scope_of(a);
    return !scope.empty() && scope == scope_of(b);
  }

  [[nodiscard]] std::vector<std::uint64_t> node_colours(Detail detail) const {
    std::vector<std::uint64_t> colours(topology_.node_count());
    std::vector<std::uint64_t> links;
    for (std::size_t i = 0; i < colours.size(); ++i) {
      const Node& node = topology_.node(NodeId(i));
      Fnv1a colour;
      colour.add_number(static_cast<std::uint64_t>(node.kind));
      for (const bool is : {node.is_rank, node.relay, node.multicast, node.reduction, detail.use && is_on_side_[i]}) {
        colour.add(is ? 1 : 0);
      }
      colour.add_number(static_cast<std::uint64_t>(node.bandwidth.bytes_per_second));
      colour.add_number(static_cast<std::uint64_t>(node.reduce_bandwidth.bytes_per_second));
      links.clear();
      for (const LinkId link : topology_.out_links(NodeId(i))) links.push_back(link_colour(i, link, true, detail));
      for (const LinkId link : topology_.in_links(NodeId(i))) links.push_back(link_colour(i, link, false, detail));
      std::ranges::sort(links);
      for (const std::uint64_t link : links) colour.add_number(link);
      colours[i] = colour.value();
    }
    return colours;
  }

  [[nodiscard]] std::uint64_t link_colour(std::size_t near, LinkId id, bool leaves, Detail detail) const {
    const Link& link = topology_.link(id);
    const std::size_t far = (leaves ? link.head : link.tail).index();
    const Node &here = topology_.node(NodeId(near)), &there = topology_.node(NodeId(far));
    const bool is_inside = machine_of_[near] != none && machine_of_[near] == machine_of_[far];
    Fnv1a colour;
    colour.add_text(link.link_class);
    colour.add_number(static_cast<std::uint64_t>(link.bandwidth().bytes_per_second));
    colour.add_number(static_cast<std::uint64_t>(link.latency.count));
    colour.add_number(static_cast<std::uint64_t>(link.overhead.count));
    colour.add(leaves ? 1 : 0);
    colour.add_number(static_cast<std::uint64_t>(there.kind));
    colour.add_number(is_inside ? none : level_[far]);
    if (is_inside && detail.places) colour.add_number(place_[far]);
    colour.add(here.rail == there.rail ? 1 : 0);  // A cable in another rail's switch.
    if (detail.use && !use_.loads.empty()) colour.add_number(load_step(use_.loads[id.index()]));
    return colour.value();
  }

  void describe(std::size_t index) {
    NetworkPart& part = tree_.parts[index];
    if (!part.is_machine && !part.nodes.empty()) part.name = name_of(index);
    part.structure = colour_of(part, structure_, &NetworkPart::structure);
    part.likeness = colour_of(part, tree_.likeness, &NetworkPart::likeness);
    for (const std::size_t child : part.children) part.load = std::max(part.load, tree_.parts[child].load);
    if (use_.loads.empty()) return;
    for (const std::size_t node : part.nodes) {
      for (const LinkId link : topology_.out_links(NodeId(node))) {
        part.load = std::max(part.load, use_.loads[link.index()]);
      }
      for (const LinkId link : topology_.in_links(NodeId(node))) {
        part.load = std::max(part.load, use_.loads[link.index()]);
      }
    }
  }

  [[nodiscard]] std::uint64_t colour_of(const NetworkPart& part, const std::vector<std::uint64_t>& of_nodes,
                                        std::uint64_t NetworkPart::*of_parts) const {
    std::vector<std::uint64_t> nodes, children;
    for (const std::size_t node : part.nodes) nodes.push_back(of_nodes[node]);
    for (const std::size_t child : part.children) children.push_back(tree_.parts[child].*of_parts);
    if (!part.is_machine) std::ranges::sort(nodes);
    std::ranges::sort(children);
    Fnv1a colour;
    for (const auto* colours : {&nodes, &children}) {
      colour.add_number(colours->size());
      for (const std::uint64_t one : *colours) colour.add_number(one);
    }
    return colour.value();
  }

  /// "pod0" where its switches, and no nodes outside it, are called "pod0...."; else its own switches.
  [[nodiscard]] std::string name_of(std::size_t part) const {
    std::vector<std::string> names;
    std::string common = scope_of(tree_.parts[part].nodes.front());
    for (const std::size_t node : tree_.parts[part].nodes) {
      names.push_back(topology_.node(NodeId(node)).id);
      const std::string scope = scope_of(node);
      while (!scope.starts_with(common)) common.resize(common.rfind('.', common.size() - 2) + 1);
    }
    const auto is_called_so = [&](const std::string& id) { return id.starts_with(common); };
    const auto inside = std::ranges::count_if(
        nodes_in_order(tree_, part), [&](std::size_t node) { return is_called_so(topology_.node(NodeId(node)).id); });
    if (common.empty() || inside != std::ranges::count_if(topology_.nodes(), is_called_so, &Node::id)) {
      return summarize_names(names);
    }
    return common.substr(0, common.size() - 1);
  }

  /// "pod0.box1." of "pod0.box1.gpu2".
  [[nodiscard]] std::string scope_of(std::size_t node) const {
    const std::string& id = topology_.node(NodeId(node)).id;
    return id.substr(0, id.rfind('.') + 1);
  }

  const Topology& topology_;
  const DrawnUse& use_;
  PartTree tree_;
  std::vector<std::size_t> machine_of_, place_, level_;  ///< By node.
  std::vector<bool> is_on_side_;
  std::vector<std::uint64_t> structure_;
};

void add_in_order(const PartTree& tree, std::size_t index, std::vector<std::size_t>& nodes) {
  const NetworkPart& part = tree.parts[index];
  std::vector<std::size_t> own = part.nodes, children = part.children;
  if (!part.is_machine) std::ranges::stable_sort(own, {}, [&](std::size_t node) { return tree.likeness[node]; });
  std::ranges::stable_sort(children, {}, [&](std::size_t child) { return tree.parts[child].likeness; });
  nodes.insert(nodes.end(), own.begin(), own.end());
  for (const std::size_t child : children) add_in_order(tree, child, nodes);
}

}  // namespace

PartTree make_part_tree(const Topology& topology, const DrawnUse& use) { return TreeMaker(topology, use).make(); }

std::vector<std::size_t> nodes_in_order(const PartTree& tree, std::size_t part) {
  std::vector<std::size_t> nodes;
  add_in_order(tree, part, nodes);
  return nodes;
}

}  // namespace espalier
