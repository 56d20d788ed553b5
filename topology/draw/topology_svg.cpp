#include "topology/draw/topology_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include "base/counted.h"
#include "base/format_units.h"
#include "topology/draw/layout.h"

namespace espalier {
namespace {

// Told apart also by people who see few colours. Source: P. Tol, "Colour Schemes", SRON, 2021, "bright".
constexpr std::array<std::string_view, 7> palette = {"#4477AA", "#EE6677", "#228833", "#CCBB44",
                                                     "#66CCEE", "#AA3377", "#999999"};

// Every rule is of this drawing alone, which may stand in a page. Loads: P. Tol, as above, "YlOrBr", whose lightness
// goes one way; an idle link, whose grey does not fit in, is dashed.
constexpr std::string_view style =
    "<style>.network text{font:12px sans-serif;fill:#222}.network .head{font-size:16px}.network .paper{fill:#fff}"
    ".network .frame{fill:#0000000a;stroke:#888}.network .node{stroke:#444;fill:#eee}.network .rank{fill:#cfe3ff}"
    ".network .side{stroke:#a37;stroke-width:4}.network path{fill:none}"
    ".network .load0{stroke:#bbb;stroke-dasharray:2 4}.network .load1{stroke:#fee391}"
    ".network .load2{stroke:#fec44f}"
    ".network .load3{stroke:#fb9a29}.network .load4{stroke:#ec7014}.network .load5{stroke:#993404}"
    "@media screen and (prefers-color-scheme:dark){.network text{fill:#eee}.network .paper{fill:#181818}"
    ".network .frame{fill:#ffffff10}.network .node{stroke:#bbb;fill:#333}.network .rank{fill:#234}"
    ".network .side{stroke:#e7a}.network .load0{stroke:#666}.network .load1{stroke:#662506}"
    ".network .load2{stroke:#993404}.network .load3{stroke:#ec7014}.network .load4{stroke:#fec44f}"
    ".network .load5{stroke:#fff7bc}}</style>\n";

constexpr std::array<double, load_steps - 1> step_ends = {0, 0.25, 0.5, 0.75, 0.95};
constexpr std::array<std::string_view, load_steps> step_names = {"idle",       "up to 25 %", "up to 50 %",
                                                                 "up to 75 %", "up to 95 %", "over 95 %"};

std::string in_xml(std::string_view text) {
  std::string safe;
  for (const char letter : text) {
    switch (letter) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      default: safe += letter;
    }
  }
  return safe;
}

/// All links of a class between two nodes.
struct Cord {
  std::int64_t forth = 0, back = 0;  ///< Bytes per second, summed.
  std::size_t forth_links = 0, back_links = 0;
  std::vector<std::size_t> links;
};

using CordKey = std::tuple<std::size_t, std::size_t, std::string>;  // the lower node, the higher one, the class

std::map<CordKey, Cord> gather_cords(const Topology& topology) {
  std::map<CordKey, Cord> cords;
  for (std::size_t i = 0; i < topology.link_count(); ++i) {
    const Link& link = topology.link(LinkId(i));
    const std::size_t tail = link.tail.index(), head = link.head.index();
    Cord& cord = cords[{std::min(tail, head), std::max(tail, head), link.link_class}];
    (tail < head ? cord.forth : cord.back) += link.bandwidth().bytes_per_second;
    ++(tail < head ? cord.forth_links : cord.back_links);
    cord.links.push_back(i);
  }
  return cords;
}

class SvgWriter {
 public:
  SvgWriter(const Topology& topology, const DrawnUse& use)
      : topology_(topology),
        use_(use),
        layout_(lay_out(topology)),
        cords_(gather_cords(topology)),
        is_on_side_(topology.node_count(), false) {
    for (const NodeId node : use.side) is_on_side_[node.index()] = true;
    for (const Link& link : topology.links())
      colours_.emplace(link.link_class, palette[colours_.size() % palette.size()]);
  }

  std::string write() {
    const std::size_t rows = use_.loads.empty() ? colours_.size() : load_steps;
    const double height = layout_.height + 24 * static_cast<double>(rows) + 20;
    const std::string what =
        fmt::format("{}: {}, {}, {}", topology_.name(), counted(topology_.rank_count(), "rank"),
                    counted(topology_.node_count(), "node"), counted(topology_.link_count(), "link"));
    text_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"network\" viewBox=\"0 0 {:.0f} {:.0f}\" width=\"{:.0f}\" "
        "height=\"{:.0f}\" role=\"img\" aria-label=\"{}\">\n",
        layout_.width, height, layout_.width, height, in_xml(what));
    text_ += style;
    text_ += "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n";
    text_ += fmt::format("<text class=\"head\" x=\"16\" y=\"28\">{}</text>\n", in_xml(what));
    for (const DrawnHost& host : layout_.hosts) add_host(host);
    for (const auto& [key, cord] : cords_) add_cord(key, cord);
    for (std::size_t i = 0; i < topology_.node_count(); ++i) add_node(i);
    add_legend();
    return text_ + "</svg>\n";
  }

 private:
  void add_host(const DrawnHost& host) {
    text_ +=
        fmt::format("<rect class=\"frame\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"8\"/>\n",
                    host.left, host.top, host.width, host.height);
    text_ +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", host.left + 8, host.top + 16, in_xml(host.name));
  }

  /// Straight, or an arc where both ends are in one row, so that it passes the nodes between them.
  void add_cord(const CordKey& key, const Cord& cord) {
    const auto& [low, high, link_class] = key;
    const DrawnNode &a = layout_.nodes[low], &b = layout_.nodes[high];
    const double dx = b.x - a.x;
    const bool is_level = a.in_row && b.in_row && std::abs(a.y - b.y) < 1;
    const double bow = is_level ? 14 + std::abs(dx) / 6 : 0;
    const auto rate = static_cast<double>(std::max(cord.forth, cord.back)) / 1e9;
    const double width = std::clamp(1 + std::log2(1 + rate) / 2, 1.0, 7.0);
    const bool is_one_way = cord.forth == 0 || cord.back == 0;
    text_ += fmt::format(
        "<path d=\"M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}\" {} "
        "stroke-width=\"{:.2f}\"{}><title>{}</title></path>\n",
        a.x, a.y, (a.x + b.x) / 2, (a.y + b.y) / 2 + bow, b.x, b.y, colour_of(link_class, cord), width,
        is_one_way ? " stroke-dasharray=\"6 4\"" : "", in_xml(describe(low, high, link_class, cord)));
  }

  [[nodiscard]] std::string colour_of(const std::string& link_class, const Cord& cord) const {
    if (use_.loads.empty()) return fmt::format("stroke=\"{}\"", colours_.at(link_class));
    return fmt::format("class=\"load{}\" data-links=\"{}\"", load_step(most_load(cord)), fmt::join(cord.links, " "));
  }

  [[nodiscard]] double most_load(const Cord& cord) const {
    double most = 0;
    for (const std::size_t link : cord.links) most = std::max(most, use_.loads[link]);
    return most;
  }

  /// "gpu0 - gpu1: nvlink, 2 links, 50 GB/s each way; busy 97 %"
  [[nodiscard]] std::string describe(std::size_t low, std::size_t high, const std::string& link_class,
                                     const Cord& cord) const {
    const std::string load = use_.loads.empty() ? "" : fmt::format("; busy {:.0f} %", 100 * most_load(cord));
    return describe_rates(low, high, link_class, cord) + load;
  }

  [[nodiscard]] std::string describe_rates(std::size_t low, std::size_t high, const std::string& link_class,
                                           const Cord& cord) const {
    const std::string& a = topology_.node(NodeId(low)).id;
    const std::string& b = topology_.node(NodeId(high)).id;
    const std::string name = link_class.empty() ? "" : link_class + ", ";
    const auto side = [&](const std::string& tail, const std::string& head, std::size_t links, std::int64_t rate) {
      return fmt::format("{} > {}: {}{}, {}", tail, head, name, counted(links, "link"), format_bandwidth({rate}));
    };
    if (cord.forth == cord.back && cord.forth_links == cord.back_links) {
      return fmt::format("{} - {}: {}{}, {} each way", a, b, name, counted(cord.forth_links, "link"),
                         format_bandwidth({cord.forth}));
    }
    std::string text;
    if (cord.forth > 0) text = side(a, b, cord.forth_links, cord.forth);
    if (cord.back > 0) text += (text.empty() ? "" : "; ") + side(b, a, cord.back_links, cord.back);
    return text;
  }

  void add_node(std::size_t i) {
    const Node& node = topology_.node(NodeId(i));
    const DrawnNode& at = layout_.nodes[i];
    // Within its machine's frame a node goes by its own name.
    const bool is_inside = !node.host.empty() && node.id.starts_with(node.host + ".");
    std::string name = is_inside ? node.id.substr(node.host.size() + 1) : node.id;
    constexpr std::size_t longest = 12;
    if (name.size() > longest) name = name.substr(0, longest - 1) + ".";
    text_ += fmt::format(
        "<g><title>{} ({})</title><rect class=\"node{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"72\" height=\"24\" "
        "rx=\"{}\"/>"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text></g>\n",
        in_xml(node.id), to_string(node.kind),
        fmt::format("{}{}", node.is_rank ? " rank" : "", is_on_side_[i] ? " side" : ""), at.x - 36, at.y - 12,
        node.kind == NodeKind::switch_node ? 12 : 3, at.x, at.y + 4, in_xml(name));
  }

  void add_legend() {
    double y = layout_.height + 10;
    for (std::size_t step = 0; step < load_steps && !use_.loads.empty(); ++step, y += 24) {
      text_ += fmt::format(
          "<path d=\"M16 {:.1f}h36\" class=\"load{}\" stroke-width=\"4\"/><text x=\"60\" y=\"{:.1f}\">{}</text>\n", y,
          step, y + 4, load_step_name(step));
    }
    if (!use_.loads.empty()) return;
    for (const auto& [link_class, colour] : colours_) {
      text_ += fmt::format(
          "<path d=\"M16 {:.1f}h36\" stroke=\"{}\" stroke-width=\"4\"/><text x=\"60\" y=\"{:.1f}\">{}</text>\n", y,
          colour, y + 4, in_xml(link_class.empty() ? "links of no class" : link_class));
      y += 24;
    }
  }

  const Topology& topology_;
  const DrawnUse& use_;
  TopologyLayout layout_;
  std::map<CordKey, Cord> cords_;
  std::vector<bool> is_on_side_;  ///< By node: of the cut.
  std::map<std::string, std::string_view> colours_;
  std::string text_;
};

}  // namespace

std::size_t load_step(double load) {
  const auto end = std::ranges::find_if(step_ends, [&](double last) { return load <= last; });
  return static_cast<std::size_t>(end - step_ends.begin());
}

std::string_view load_step_name(std::size_t step) { return step_names[step]; }

Result<std::string> topology_svg(const Topology& topology, const DrawnUse& use) {
  if (topology.node_count() > most_drawn_nodes) {
    return fail(ErrorCode::too_large,
                fmt::format("{} has {} nodes, and a drawing shows at most {}", topology.name(), topology.node_count(),
                            most_drawn_nodes),
                "draw one machine of it");
  }
  return SvgWriter(topology, use).write();
}

}  // namespace espalier
