#include "topology/draw/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <ranges>
#include <set>

#include "base/counted.h"
#include "topology/draw/ellipse.h"
#include "topology/draw/groups.h"
#include "topology/draw/labels.h"
#include "topology/draw/part_tree.h"
#include "topology/names/name_list.h"

namespace espalier {
namespace {

constexpr double node_gap = 12;       // Between neighbours of a row.
constexpr double row_distance = 78;   // Between rows.
constexpr double line_distance = 36;  // Between lines of one row.
constexpr double frame_margin = 14, caption_height = 24, part_gap = 16;
constexpr double paper_margin = 16, title_height = 44;
constexpr double max_width = max_drawing_width - 2 * paper_margin;
constexpr double bold_letter_width = 7.4, title_letter_width = 8.6;
constexpr double arcs_height = 40;  // Links within the lowest row hang below it.
constexpr std::size_t min_in_circle = 3;
constexpr std::size_t max_in_row = 64;  // Nodes, past which the rest are "others".
constexpr std::size_t max_parts = 8;    // Machines or so that are drawn.

/// Rows of a machine, from the top.
std::size_t row_of(const Node& node) {
  if (node.is_rank) return 3;
  switch (node.kind) {
    case NodeKind::nic: return 0;
    case NodeKind::cpu: return 1;
    case NodeKind::pcie: return 2;
    default: return 4;
  }
}
constexpr std::size_t rank_row = 3, machine_rows = 5;

/// What was placed together: where its nodes and frames are, from its upper left corner.
struct Block {
  double width = 0, height = 0;
  std::vector<std::size_t> nodes, frames;
};

class LayoutMaker {
 public:
  LayoutMaker(const Topology& topology, const DrawnUse& use)
      : topology_(topology), tree_(make_part_tree(topology, use)) {
    layout_.drawn_as.resize(topology.node_count(), none);
    drawn_part_.resize(tree_.parts.size());
    std::iota(drawn_part_.begin(), drawn_part_.end(), std::size_t{0});
  }

  TopologyLayout make() {
    const NetworkPart& root = tree_.parts[tree_.root];
    const bool is_framed = root.is_machine && !root.name.empty() && root.nodes.size() > 1;
    const Block all = is_framed ? parts_block({tree_.root}, max_width, "") : part_block(tree_.root, max_width, "");
    layout_.title = fmt::format("{}: {}, {}, {}", topology_.name(), counted(topology_.rank_count(), "rank"),
                                counted(topology_.node_count(), "node"), counted(topology_.link_count(), "link"));
    const double title_width = title_letter_width * static_cast<double>(layout_.title.size());
    layout_.width = std::max(all.width, std::min(title_width, max_width)) + 2 * paper_margin;
    move(all, (layout_.width - all.width) / 2, title_height);
    layout_.height = title_height + all.height + paper_margin;
    layout_.leads_to_like.reserve(topology_.link_count());
    for (const Link& link : topology_.links()) layout_.leads_to_like.push_back(leads_to_like(link));
    return std::move(layout_);
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  void move(const Block& block, double right, double down) {
    for (const std::size_t i : block.nodes) {
      layout_.nodes[i].x += right;
      layout_.nodes[i].y += down;
    }
    for (const std::size_t i : block.frames) {
      layout_.frames[i].left += right;
      layout_.frames[i].top += down;
    }
  }

  /// The parts that hold its ends, where they hang below the same, are different ones that are drawn as one; or the
  /// ends are.
  [[nodiscard]] bool leads_to_like(const Link& link) const {
    if (layout_.drawn_as[link.tail.index()] == layout_.drawn_as[link.head.index()]) return true;
    std::size_t a = tree_.part_of[link.tail.index()], b = tree_.part_of[link.head.index()];
    std::size_t below_a = a, below_b = b;
    while (a != b) {  // What hangs below a part has a smaller number.
      std::size_t& lower = a < b ? a : b;
      (a < b ? below_a : below_b) = lower;
      lower = tree_.parts[lower].parent;
    }
    return below_a != below_b && drawn_part_[below_a] == drawn_part_[below_b];
  }

  static void add(Block& block, const Block& part) {
    block.nodes.insert(block.nodes.end(), part.nodes.begin(), part.nodes.end());
    block.frames.insert(block.frames.end(), part.frames.begin(), part.frames.end());
  }

  /// A part without its frame. Within the scope's frame nodes go by their own names.
  Block part_block(std::size_t index, double width, const std::string& scope) {
    const NetworkPart& part = tree_.parts[index];
    if (part.is_machine) return machine_block(part, width, scope);
    Block block = children_block(part, width, scope);
    if (part.nodes.empty()) return block;
    put_row_above(make_row(part.nodes, width, scope), block, row_distance - drawn_node_height);
    return block;
  }

  // --- Rows of nodes.

  struct Row {
    std::vector<std::size_t> nodes;  ///< Drawn ones.
    double cell = 0;                 ///< The widest of them, and a gap.
    std::size_t per_line = 1;

    void wrap(double width) {
      per_line = std::max<std::size_t>(1, static_cast<std::size_t>(width / cell));
      if (lines() > 1) per_line = (nodes.size() + lines() - 1) / lines();
    }
    [[nodiscard]] std::size_t lines() const { return (nodes.size() + per_line - 1) / per_line; }
    [[nodiscard]] double width() const { return cell * static_cast<double>(std::min(per_line, nodes.size())); }
    [[nodiscard]] double height() const { return line_distance * static_cast<double>(lines() - 1) + drawn_node_height; }
  };

  /// The nodes of a row: each by itself where they fit in a line, else those that are joined with the same, else those
  /// that are alike, are one.
  Row make_row(const Group& nodes, double width, const std::string& scope) {
    Row row = make_row(nodes, scope,
                       [&](std::size_t count, double cell) { return cell * static_cast<double>(count) <= width; });
    row.wrap(width);
    return row;
  }

  /// `fits` says so of a number of nodes and the width of each.
  template <class Fits>
  Row make_row(const Group& nodes, const std::string& scope, Fits fits) {
    std::vector<Group> groups = one_each(nodes);
    for (const auto* colours : {&tree_.likeness, &tree_.loose_likeness}) {
      if (fits(groups.size(), cell_of(groups, scope))) break;
      groups = grouped(nodes, [&](std::size_t node) { return (*colours)[node]; });
    }
    unfold_small(groups, max_in_row);
    Group others;
    for (; groups.size() > max_in_row; groups.pop_back()) {
      others.insert(others.begin(), groups.back().begin(), groups.back().end());
    }
    Row row;
    row.cell = cell_of(groups, scope);
    for (Group& group : groups) row.nodes.push_back(add_node(std::move(group), scope));
    if (!others.empty()) {
      std::vector<std::string> names = names_of(others);
      row.nodes.push_back(add_others(std::move(others), std::move(names)));
      row.cell = std::max(row.cell, layout_.nodes.back().width + node_gap);
    }
    return row;
  }

  [[nodiscard]] std::string label_of(const Group& group, const std::string& scope) const {
    std::vector<std::string> names;
    for (const std::size_t node : group) names.push_back(own_name(topology_.node(NodeId(node)).id, scope));
    return node_label(names);
  }

  [[nodiscard]] double cell_of(const std::vector<Group>& groups, const std::string& scope) const {
    double widest = 0;
    for (const Group& group : groups) widest = std::max(widest, node_width(label_of(group, scope)));
    return widest + node_gap;
  }

  std::size_t add_node(Group group, const std::string& scope) {
    std::string label = label_of(group, scope);
    for (const std::size_t node : group) layout_.drawn_as[node] = layout_.nodes.size();
    std::vector<std::string> names = names_of(group);
    const double width = node_width(label);
    layout_.nodes.push_back({std::move(group), std::move(names), std::move(label), 0, 0, width, true, false});
    return layout_.nodes.size() - 1;
  }

  /// Parts that are not alike as one node.
  std::size_t add_others(Group nodes, std::vector<std::string> names) {
    std::string label = counted(names.size(), "other");
    for (const std::size_t node : nodes) layout_.drawn_as[node] = layout_.nodes.size();
    const double width = node_width(label);
    layout_.nodes.push_back({std::move(nodes), std::move(names), std::move(label), 0, 0, width, true, true});
    return layout_.nodes.size() - 1;
  }

  [[nodiscard]] std::vector<std::string> names_of(const Group& group) const {
    std::vector<std::string> names;
    for (const std::size_t node : group) names.push_back(topology_.node(NodeId(node)).id);
    return names;
  }

  /// Lines over the width of a block, in the order of where their neighbours in it are.
  void place_row(Row& row, Block& block, double top) {
    sort_by_neighbours(row.nodes, block);
    const std::size_t lines = row.lines();
    for (std::size_t line = 0; line < lines; ++line) {
      const std::size_t first = line * row.per_line, count = std::min(row.per_line, row.nodes.size() - first);
      const double step = block.width / static_cast<double>(count);
      for (std::size_t i = 0; i < count; ++i) {
        DrawnNode& node = layout_.nodes[row.nodes[first + i]];
        node.x = step * (static_cast<double>(i) + 0.5);
        node.y = top + drawn_node_height / 2 + line_distance * static_cast<double>(line);
      }
    }
    block.nodes.insert(block.nodes.end(), row.nodes.begin(), row.nodes.end());
  }

  void put_row_above(Row row, Block& block, double distance) {
    const double width = std::max(block.width, row.width()), lower = row.height() + distance;
    move(block, (width - block.width) / 2, lower);
    block.width = width;
    block.height += lower;
    place_row(row, block, 0);
  }

  void sort_by_neighbours(std::vector<std::size_t>& row, const Block& block) const {
    const std::set<std::size_t> placed(block.nodes.begin(), block.nodes.end());
    std::vector<std::pair<double, std::size_t>> keyed;
    bool has_any = false;
    for (const std::size_t node : row) {
      double sum = 0;
      int count = 0;
      const auto meet = [&](NodeId other) {
        const std::size_t drawn = layout_.drawn_as[other.index()];
        if (!placed.contains(drawn)) return;
        sum += layout_.nodes[drawn].x;
        ++count;
      };
      const NodeId first(layout_.nodes[node].nodes.front());
      for (const LinkId link : topology_.out_links(first)) meet(topology_.link(link).head);
      for (const LinkId link : topology_.in_links(first)) meet(topology_.link(link).tail);
      keyed.emplace_back(count == 0 ? max_drawing_width : sum / count, node);
      has_any = has_any || count > 0;
    }
    if (!has_any) return;
    std::ranges::stable_sort(keyed, {}, [](const auto& key) { return key.first; });
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = keyed[i].second;
  }

  // --- Machines.

  /// Links lead from some of the nodes to others of them.
  [[nodiscard]] bool are_joined(const Group& nodes) const {
    const std::set<std::size_t> among(nodes.begin(), nodes.end());
    return std::ranges::any_of(nodes, [&](std::size_t node) {
      return std::ranges::any_of(topology_.out_links(NodeId(node)),
                                 [&](LinkId link) { return among.contains(topology_.link(link).head.index()); });
    });
  }

  Block machine_block(const NetworkPart& machine, double width, const std::string& scope) {
    std::array<Group, machine_rows> rows;
    for (const std::size_t node : machine.nodes) rows[row_of(topology_.node(NodeId(node)))].push_back(node);
    if (rows[rank_row].size() == machine.nodes.size() && is_circle(machine.nodes)) {
      return circle_block(machine.nodes, width, scope);
    }
    std::array<std::optional<Row>, machine_rows> made;
    std::array<double, machine_rows> tops{};
    Block block;
    for (std::size_t i = 0; i < machine_rows; ++i) {
      if (rows[i].empty()) continue;
      made[i] = make_row(rows[i], width, scope);
      block.width = std::max(block.width, made[i]->width());
      tops[i] = block.height == 0 ? 0 : block.height + row_distance - drawn_node_height;
      block.height = tops[i] + made[i]->height();
    }
    // Ranks first: the others stand where what they are joined with does.
    constexpr std::array<std::size_t, machine_rows> order = {rank_row, 2, 1, 0, 4};
    for (const std::size_t i : order) {
      if (made[i]) place_row(*made[i], block, tops[i]);
    }
    const auto lowest = std::ranges::find_if(std::views::reverse(rows), [](const Group& row) { return !row.empty(); });
    if (are_joined(*lowest)) block.height += arcs_height;
    return block;
  }

  [[nodiscard]] bool is_circle(const Group& ranks) const { return ranks.size() >= min_in_circle && are_joined(ranks); }

  /// An ellipse, as small as its nodes let it be.
  Block circle_block(const Group& ranks, double width, const std::string& scope) {
    const double max_radius = (width - 2 * node_gap) / 2;
    const auto fits = [&](std::size_t count, double cell) {
      return !on_ellipse(count, cell, max_radius - cell / 2, 1).empty();
    };
    Row row = make_row(ranks, scope, fits);
    const std::size_t count = row.nodes.size();
    if (!fits(count, row.cell)) {
      Block lines{0, arcs_height, {}, {}};
      row.wrap(width);
      put_row_above(row, lines, 0);
      return lines;
    }
    double radius = row.cell / 2;
    while (on_ellipse(count, row.cell, radius, 1).empty()) radius = std::min(radius + 10, max_radius - row.cell / 2);
    double loose = 1;  // As far apart as they can be there.
    while (!on_ellipse(count, row.cell, radius, loose * 1.01).empty()) loose *= 1.01;
    const std::vector<std::pair<double, double>> places = on_ellipse(count, row.cell, radius, loose);
    constexpr double room = drawn_node_height / 2 + node_gap;
    Block block{2 * radius + row.cell + 2 * node_gap, 2 * (ellipse_height * radius + room), row.nodes, {}};
    for (std::size_t i = 0; i < count; ++i) {
      DrawnNode& node = layout_.nodes[row.nodes[i]];
      node.x = block.width / 2 + places[i].first;
      node.y = block.height / 2 + places[i].second;
      node.in_row = false;
    }
    if (count == 1) block.height += arcs_height;
    return block;
  }

  // --- What hangs below switches.

  /// Nodes in a row, or a circle; below them the parts that have more than one.
  Block children_block(const NetworkPart& part, double width, const std::string& scope) {
    Group singles, parts;
    for (const std::size_t child : part.children) {
      const NetworkPart& below = tree_.parts[child];
      if (below.nodes.size() == 1 && below.children.empty()) {
        singles.push_back(below.nodes.front());
      } else {
        parts.push_back(child);
      }
    }
    if (part.nodes.empty() && parts.empty() && is_circle(singles)) {
      return circle_block(singles, width, scope);
    }
    Block block;
    const bool is_chain = parts.size() == 1 && !tree_.parts[parts.front()].is_machine;
    if (is_chain) block = part_block(parts.front(), width, scope);
    if (!parts.empty() && !is_chain) block = parts_block(parts, width, scope);
    if (singles.empty()) return block;
    if (parts.empty() && are_joined(singles)) block.height = arcs_height;
    put_row_above(make_row(singles, width, scope), block, parts.empty() ? 0 : row_distance - drawn_node_height);
    return block;
  }

  /// Side by side where all fit in one line. Else those that are alike are one.
  Block parts_block(const Group& parts, double width, const std::string& scope) {
    const double inner_width = width - 2 * frame_margin;
    Group others;
    std::vector<Group> groups = groups_of(parts, others);
    const std::size_t all_parts = max_parts_;
    max_parts_ = std::max<std::size_t>(2, max_parts_ / groups.size());  // Shared by what hangs below each of them.
    std::map<std::size_t, Block> blocks;
    double unfolded = -part_gap;
    for (const Group& group : groups) {
      const std::size_t first = group.front();
      blocks[first] = part_block(first, inner_width, inner_scope(first, scope));
      const double one = frame_width(blocks[first], caption_of(first, {}, scope));
      unfolded += (one + part_gap) * static_cast<double>(group.size());
    }
    if (others.empty() && unfolded <= width) groups = one_each(parts);
    std::vector<Block> framed;
    for (const Group& group : groups) {
      const std::size_t first = group.front();
      if (!blocks.contains(first)) blocks[first] = part_block(first, inner_width, inner_scope(first, scope));
      framed.push_back(frame(std::move(blocks[first]), group, width, scope));
    }
    if (!others.empty()) framed.push_back(others_block(others));
    max_parts_ = all_parts;
    return in_lines(framed, width);
  }

  /// Parts that are alike, those of another structure first, then the busier ones; past the most that are drawn,
  /// others.
  std::vector<Group> groups_of(const Group& parts, Group& others) const {
    std::vector<Group> groups = grouped(parts, [&](std::size_t part) { return tree_.parts[part].likeness; });
    unfold_small(groups, max_parts_);
    if (groups.size() <= max_parts_) return groups;
    std::set<std::uint64_t> structures;
    std::vector<std::pair<std::pair<bool, double>, std::size_t>> keyed;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const NetworkPart& first = tree_.parts[groups[i].front()];
      const bool is_known = !structures.insert(first.structure).second;
      keyed.push_back({{is_known, is_known ? -first.load : 0}, i});
    }
    std::ranges::stable_sort(keyed, {}, [](const auto& key) { return key.first; });
    std::vector<bool> is_drawn(groups.size());
    for (std::size_t i = 0; i + 1 < max_parts_; ++i) is_drawn[keyed[i].second] = true;
    std::vector<Group> drawn;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (is_drawn[i]) {
        drawn.push_back(std::move(groups[i]));
      } else {
        others.insert(others.end(), groups[i].begin(), groups[i].end());
      }
    }
    return drawn;
  }

  /// "box0", "box0, and 63 more like it: box[1-63]"; nothing round a switch, whose name is in it.
  [[nodiscard]] std::string caption_of(std::size_t index, const std::vector<std::string>& like,
                                       const std::string& scope) const {
    const NetworkPart& part = tree_.parts[index];
    const std::string name = own_name(part.name, scope);
    if (!like.empty()) {
      std::vector<std::string> names;
      for (const std::string& one : like) names.push_back(own_name(one, scope));
      return fmt::format("{}, and {} more like it: {}", name, like.size(), summarize_names(names));
    }
    const bool is_named_inside =
        !part.is_machine && part.nodes.size() == 1 && part.name == topology_.node(NodeId(part.nodes.front())).id;
    return is_named_inside ? "" : name;
  }

  /// Within a frame nodes go by what follows its name.
  [[nodiscard]] std::string inner_scope(std::size_t index, const std::string& outer) const {
    const NetworkPart& part = tree_.parts[index];
    return topology_.node(NodeId(part.nodes.front())).id.starts_with(part.name + ".") ? part.name : outer;
  }

  static double frame_width(const Block& block, const std::string& caption) {
    return std::max(block.width, bold_letter_width * static_cast<double>(caption.size())) + 2 * frame_margin;
  }

  /// Round the first part of a group; the others are drawn as it.
  Block frame(Block block, const Group& group, double width, const std::string& scope) {
    std::vector<std::string> like;
    const std::vector<std::size_t> drawn = nodes_in_order(tree_, group.front());
    for (std::size_t i = 1; i < group.size(); ++i) {
      like.push_back(tree_.parts[group[i]].name);
      drawn_part_[group[i]] = group.front();
      const std::vector<std::size_t> nodes = nodes_in_order(tree_, group[i]);
      for (std::size_t j = 0; j < nodes.size(); ++j) layout_.drawn_as[nodes[j]] = layout_.drawn_as[drawn[j]];
    }
    std::string caption = caption_of(group.front(), like, scope);
    const double head = caption.empty() ? frame_margin : caption_height + 4;
    const double all = std::min(width, frame_width(block, caption));
    move(block, (all - block.width) / 2, head);
    block.frames.push_back(layout_.frames.size());
    block.width = all;
    block.height += head + frame_margin;
    layout_.frames.push_back(
        {tree_.parts[group.front()].name, std::move(like), std::move(caption), 0, 0, block.width, block.height});
    return block;
  }

  Block others_block(const Group& parts) {
    Group nodes;
    std::vector<std::string> names;
    for (const std::size_t part : parts) {
      const std::vector<std::size_t> own = nodes_in_order(tree_, part);
      nodes.insert(nodes.end(), own.begin(), own.end());
      names.push_back(tree_.parts[part].name);
    }
    const std::size_t node = add_others(std::move(nodes), std::move(names));
    const double width = layout_.nodes[node].width;
    layout_.nodes[node].x = width / 2;
    layout_.nodes[node].y = drawn_node_height / 2;
    return {width, drawn_node_height, {node}, {}};
  }

  Block in_lines(const std::vector<Block>& parts, double width) {
    Block block;
    for (std::size_t first = 0; first < parts.size();) {
      double line_width = 0, height = 0;
      std::size_t end = first;
      for (; end < parts.size(); ++end) {
        const double next = line_width + (end == first ? 0 : part_gap) + parts[end].width;
        if (end > first && next > width) break;
        move(parts[end], next - parts[end].width, block.height);
        height = std::max(height, parts[end].height);
        line_width = next;
        add(block, parts[end]);
      }
      first = end;
      block.width = std::max(block.width, line_width);
      block.height += height + (first < parts.size() ? part_gap : 0);
    }
    return block;
  }

  const Topology& topology_;
  PartTree tree_;
  TopologyLayout layout_;
  std::size_t max_parts_ = max_parts;    ///< Of one part, side by side and in further lines; the rest are "others".
  std::vector<std::size_t> drawn_part_;  ///< By part: as which one it is drawn.
};

}  // namespace

TopologyLayout lay_out(const Topology& topology, const DrawnUse& use) { return LayoutMaker(topology, use).make(); }

}  // namespace espalier
