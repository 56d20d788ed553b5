#include "topology/draw/topology_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <ranges>
#include <tuple>

#include "base/counted.h"
#include "base/format_units.h"
#include "topology/draw/layout.h"
#include "topology/names/name_list.h"

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
    ".network .side{stroke:#a37;stroke-width:4}.network .others{stroke-dasharray:3 3}.network path{fill:none}"
    ".network .slow{stroke:#d00;stroke-dasharray:2 3}.network .many{font-weight:bold}"
    ".network .caption{paint-order:stroke;stroke:#fff;stroke-width:4;stroke-linejoin:round}"
    ".network .load0{stroke:#bbb;stroke-dasharray:2 4}.network .load1{stroke:#fee391}"
    ".network .load2{stroke:#fec44f}"
    ".network .load3{stroke:#fb9a29}.network .load4{stroke:#ec7014}.network .load5{stroke:#993404}"
    "@media screen and (prefers-color-scheme:dark){.network text{fill:#eee}.network .paper{fill:#181818}"
    ".network .frame{fill:#ffffff10}.network .caption{stroke:#181818}.network .node{stroke:#bbb;fill:#333}.network "
    ".rank{fill:#234}"
    ".network .side{stroke:#e7a}.network .load0{stroke:#666}.network .load1{stroke:#662506}"
    ".network .load2{stroke:#993404}.network .load3{stroke:#ec7014}.network .load4{stroke:#fec44f}"
    ".network .load5{stroke:#fff7bc}}</style>\n";

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

/// Links of a class between two nodes.
struct Strand {
  std::int64_t forth = 0, back = 0;  ///< Bytes per second, summed.
  std::size_t forth_links = 0, back_links = 0;
  bool is_slow = false;  ///< Some of them are slower than most of their class.

  [[nodiscard]] bool is_empty() const { return forth_links + back_links == 0; }
  [[nodiscard]] std::size_t cables() const { return std::max(forth_links, back_links); }
};

/// "0 1", "0+2x64 130": numbers, and regular ones by the first, the step and how many.
std::string compact(const std::vector<std::size_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    const std::size_t step = end < numbers.size() ? numbers[end] - numbers[i] : 0;
    while (end < numbers.size() && numbers[end] - numbers[end - 1] == step) ++end;
    if (!text.empty()) text += ' ';
    constexpr std::size_t min_regular = 3;
    if (end - i < min_regular) end = i + 1;
    text += end == i + 1 ? std::to_string(numbers[i]) : fmt::format("{}+{}x{}", numbers[i], step, end - i);
    i = end;
  }
  return text;
}

/// All links of a class between two drawn nodes.
struct Cord {
  /// By how many of a link's ends are of the parts that are drawn, not of others like them.
  std::array<Strand, 3> strands;
  std::vector<std::size_t> forth_links, back_links;  ///< By number.

  [[nodiscard]] std::string links_text() const {
    const std::string forth = compact(forth_links), back = compact(back_links);
    return forth + (forth.empty() || back.empty() ? "" : " ") + back;
  }
  /// What the line says: of the drawn nodes themselves, as far as they are joined.
  [[nodiscard]] const Strand& drawn() const {
    return !strands[2].is_empty() ? strands[2] : !strands[1].is_empty() ? strands[1] : strands[0];
  }
  /// Cables that it stands for beside those.
  [[nodiscard]] std::size_t more() const {
    return strands[0].cables() + strands[1].cables() + strands[2].cables() - drawn().cables();
  }
};

using CordKey = std::tuple<std::size_t, std::size_t, std::string>;  // the lower drawn node, the higher one, the class

/// The rates of links by class and kinds of ends.
class ClassRates {
 public:
  explicit ClassRates(const Topology& topology) : topology_(topology) {
    for (const Link& link : topology.links()) ++counts_[key_of(link)][link.bandwidth().bytes_per_second];
  }

  /// Most links of its class are faster.
  [[nodiscard]] bool is_slow(const Link& link) const {
    std::size_t faster = 0, all = 0;
    for (const auto& [rate, count] : counts_.at(key_of(link))) {
      all += count;
      if (rate > link.bandwidth().bytes_per_second) faster += count;
    }
    return 8 * faster >= 7 * all;
  }

 private:
  using Key = std::tuple<std::string, NodeKind, NodeKind>;
  [[nodiscard]] Key key_of(const Link& link) const {
    const auto [low, high] = std::minmax(topology_.node(link.tail).kind, topology_.node(link.head).kind);
    return {link.link_class, low, high};
  }

  const Topology& topology_;
  std::map<Key, std::map<std::int64_t, std::size_t>> counts_;
};

class SvgWriter {
 public:
  SvgWriter(const Topology& topology, const DrawnUse& use)
      : topology_(topology),
        use_(use),
        layout_(lay_out(topology, use)),
        is_on_side_(topology.node_count(), false),
        is_own_(topology.node_count(), false) {
    for (const NodeId node : use.side) is_on_side_[node.index()] = true;
    for (const DrawnNode& drawn : layout_.nodes) {
      for (const std::size_t node : drawn.nodes) is_own_[node] = !drawn.is_others;
    }
    for (const Link& link : topology.links())
      colours_.emplace(link.link_class, palette[colours_.size() % palette.size()]);
    gather_cords();
  }

  std::string write() {
    std::string legend = write_legend(layout_.height + 14);
    const std::string& what = layout_.title;
    text_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"network\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
        "height=\"{1:.0f}\" role=\"img\" aria-label=\"{2}\">\n",
        layout_.width, legend_end_ + 10, in_xml(what));
    text_ += style;
    text_ += "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n";
    text_ += fmt::format("<text class=\"head\" x=\"16\" y=\"28\">{}</text>\n",
                         in_xml(shortened(what, layout_.width - 32, 8.6)));
    for (const DrawnFrame& frame : std::views::reverse(layout_.frames)) add_frame(frame);
    add_cords();
    for (const DrawnFrame& frame : layout_.frames) add_caption(frame);
    for (const DrawnNode& node : layout_.nodes) add_node(node);
    return text_ + legend + "</svg>\n";
  }

 private:
  /// As much of a text as fits.
  static std::string shortened(const std::string& text, double width, double letter_width) {
    const auto room = static_cast<std::size_t>(std::max(4.0, width / letter_width));
    return text.size() <= room ? text : text.substr(0, room - 2) + "..";
  }

  void gather_cords() {
    const ClassRates rates(topology_);
    for (std::size_t i = 0; i < topology_.link_count(); ++i) {
      const Link& link = topology_.link(LinkId(i));
      const std::size_t tail = layout_.drawn_as[link.tail.index()], head = layout_.drawn_as[link.head.index()];
      const bool is_loop = layout_.leads_to_like[i];
      const auto own = [&](NodeId node) { return (is_loop ? is_first(node) : is_own_[node.index()]) ? 1U : 0U; };
      const std::size_t own_tail = own(link.tail), own_head = own(link.head);
      const auto add = [&](std::size_t low, std::size_t high, std::size_t own_ends, bool is_forth) {
        Cord& cord = cords_[{low, high, link.link_class}];
        Strand& strand = cord.strands[own_ends];
        (is_forth ? strand.forth : strand.back) += link.bandwidth().bytes_per_second;
        ++(is_forth ? strand.forth_links : strand.back_links);
        strand.is_slow = strand.is_slow || rates.is_slow(link);
        (is_forth ? cord.forth_links : cord.back_links).push_back(i);
      };
      if (is_loop) {
        add(tail, tail, own_tail, true);
        add(head, head, own_head, false);
      } else {
        add(std::min(tail, head), std::max(tail, head), own_tail + own_head, tail < head);
      }
    }
  }

  /// The one whose name a drawn node has.
  [[nodiscard]] bool is_first(NodeId node) const {
    const DrawnNode& drawn = layout_.nodes[layout_.drawn_as[node.index()]];
    return !drawn.is_others && drawn.nodes.front() == node.index();
  }

  void add_frame(const DrawnFrame& frame) {
    text_ +=
        fmt::format("<rect class=\"frame\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"8\"/>\n",
                    frame.left, frame.top, frame.width, frame.height);
  }

  void add_caption(const DrawnFrame& frame) {
    if (frame.caption.empty()) return;
    const std::string shown = shortened(frame.caption, frame.width - 16, 7.4);
    const std::string whole = shown == frame.caption ? "" : "<title>" + in_xml(frame.caption) + "</title>";
    text_ += fmt::format("<text class=\"caption{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}{}</text>\n",
                         frame.like.empty() ? "" : " many", frame.left + 8, frame.top + 16, in_xml(shown), whole);
  }

  /// Straight; an arc where both ends are in one row, so that it passes the nodes between them; a loop to others that
  /// are drawn as the same node. Each further one between the same nodes bows more.
  [[nodiscard]] static std::string path_between(const DrawnNode& a, const DrawnNode& b, std::size_t number) {
    constexpr double half = drawn_node_height / 2, highest_bow = 56, distance = 14;
    const double further = distance * static_cast<double>(number);
    if (&a == &b) {
      return fmt::format("M{:.1f} {:.1f}c{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} 0", a.x - 10 - further / 2, a.y + half,
                         -24 - further, 30 + further / 2, 44 + 2 * further, 30 + further / 2, 20 + further);
    }
    const double dx = b.x - a.x, dy = b.y - a.y;
    const bool is_level = a.in_row && b.in_row && std::abs(dy) < 1;
    const double bow = is_level ? std::min(14 + std::abs(dx) / 6, highest_bow) + further : 0;
    const double aside = is_level ? 0 : further * 2 / std::sqrt(dx * dx + dy * dy);
    return fmt::format("M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}", a.x, a.y, (a.x + b.x) / 2 - dy * aside,
                       (a.y + b.y) / 2 + dx * aside + bow, b.x, b.y);
  }

  void add_cords() {
    std::pair<std::size_t, std::size_t> before{};
    std::size_t number = 0;
    for (const auto& [key, cord] : cords_) {
      const std::pair ends(std::get<0>(key), std::get<1>(key));
      number = &key != &cords_.begin()->first && ends == before ? number + 1 : 0;
      before = ends;
      add_cord(key, cord, number);
    }
  }

  void add_cord(const CordKey& key, const Cord& cord, std::size_t number) {
    const auto& [low, high, link_class] = key;
    const Strand& drawn = cord.drawn();
    const auto rate = static_cast<double>(std::max(drawn.forth, drawn.back)) / 1e9;
    const double width = std::clamp(1 + std::log2(1 + rate) / 2, 1.0, 7.0);
    const bool is_one_way = drawn.forth == 0 || drawn.back == 0;
    text_ += fmt::format("<path d=\"{}\" {} stroke-width=\"{:.2f}\"{}><title>{}</title></path>\n",
                         path_between(layout_.nodes[low], layout_.nodes[high], number), colour_of(link_class, cord),
                         width, is_one_way ? " stroke-dasharray=\"6 4\"" : "", in_xml(describe(key, cord)));
  }

  [[nodiscard]] std::string colour_of(const std::string& link_class, const Cord& cord) const {
    if (!use_.loads.empty()) {
      return fmt::format("class=\"load{}\" data-links=\"{}\"", load_step(max_load(cord)), cord.links_text());
    }
    return cord.drawn().is_slow ? "class=\"slow\"" : fmt::format("stroke=\"{}\"", colours_.at(link_class));
  }

  [[nodiscard]] double max_load(const Cord& cord) const {
    double most = 0;
    for (const auto* links : {&cord.forth_links, &cord.back_links}) {
      for (const std::size_t link : *links) most = std::max(most, use_.loads[link]);
    }
    return most;
  }

  /// "gpu0 - gpu1: nvlink, 2 links, 50 GB/s each way; 63 more like it; busy 97 %"
  [[nodiscard]] std::string describe(const CordKey& key, const Cord& cord) const {
    std::string text = describe_rates(key, cord.drawn());
    if (cord.more() > 0)
      text += fmt::format("; {} more like {}", cord.more(), cord.drawn().cables() == 1 ? "it" : "them");
    if (!use_.loads.empty()) text += fmt::format("; busy {:.0f} %", 100 * max_load(cord));
    return text;
  }

  [[nodiscard]] std::string name_of(std::size_t drawn) const {
    const DrawnNode& node = layout_.nodes[drawn];
    return node.nodes.size() > 1 ? node.label : topology_.node(NodeId(node.nodes.front())).id;
  }

  [[nodiscard]] std::string describe_rates(const CordKey& key, const Strand& strand) const {
    const auto& [low, high, link_class] = key;
    const bool is_loop = low == high && !layout_.nodes[low].is_others;
    const std::string a = is_loop ? topology_.node(NodeId(layout_.nodes[low].nodes.front())).id : name_of(low);
    const std::string b = low == high ? "others like it" : name_of(high);
    const std::string name =
        (link_class.empty() ? "" : link_class + ", ") + (strand.is_slow ? "slower than most, " : "");
    const auto side = [&](const std::string& tail, const std::string& head, std::size_t links, std::int64_t rate) {
      return fmt::format("{} > {}: {}{}, {}", tail, head, name, counted(links, "link"), format_bandwidth({rate}));
    };
    if (strand.forth == strand.back && strand.forth_links == strand.back_links) {
      return fmt::format("{} - {}: {}{}, {} each way", a, b, name, counted(strand.forth_links, "link"),
                         format_bandwidth({strand.forth}));
    }
    std::string text;
    if (strand.forth > 0) text = side(a, b, strand.forth_links, strand.forth);
    if (strand.back > 0) text += (text.empty() ? "" : "; ") + side(b, a, strand.back_links, strand.back);
    return text;
  }

  void add_node(const DrawnNode& drawn) {
    const Node& node = topology_.node(NodeId(drawn.nodes.front()));
    const bool is_round = node.kind == NodeKind::switch_node && !drawn.is_others;
    std::string look = drawn.is_others ? " others" : node.is_rank ? " rank" : "";
    if (std::ranges::any_of(drawn.nodes, [&](std::size_t one) { return is_on_side_[one]; })) look += " side";
    std::string what = summarize_names(drawn.names);
    if (!drawn.is_others) what += fmt::format(" ({})", to_string(node.kind));
    text_ += fmt::format(
        "<g><title>{}</title><rect class=\"node{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.0f}\" "
        "rx=\"{}\"/><text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text></g>\n",
        in_xml(what), look, drawn.x - drawn.width / 2, drawn.y - drawn_node_height / 2, drawn.width, drawn_node_height,
        is_round ? 12 : 3, drawn.x, drawn.y + 4, in_xml(drawn.label));
  }

  /// Entries side by side, as many as fit in a line.
  std::string write_legend(double top) {
    std::vector<std::pair<std::string, std::string>> entries;  // look, name
    if (use_.loads.empty()) {
      for (const auto& [link_class, colour] : colours_) {
        entries.emplace_back(fmt::format("stroke=\"{}\"", colour),
                             link_class.empty() ? "links of no class" : link_class);
      }
      const auto is_slow = [](const auto& cord) { return cord.second.drawn().is_slow; };
      if (std::ranges::any_of(cords_, is_slow)) entries.emplace_back("class=\"slow\"", "slower than most of its class");
    } else {
      for (std::size_t step = 0; step < load_steps; ++step) {
        entries.emplace_back(fmt::format("class=\"load{}\"", step),
                             (step == 0 ? "" : "busy ") + std::string(load_step_name(step)));
      }
    }
    std::string text;
    constexpr std::size_t max_entries = 24;
    double x = 16;
    legend_end_ = top;
    for (std::size_t i = 0; i < std::min(entries.size(), max_entries); ++i) {
      const std::string name = shortened(entries[i].second, 260, 6.9);
      const double width = 44 + 6.9 * static_cast<double>(name.size()) + 24;
      if (x > 16 && x + width > layout_.width) {
        x = 16;
        legend_end_ += 24;
      }
      text += fmt::format(
          "<path d=\"M{0:.1f} {1:.1f}h36\" {2} stroke-width=\"4\"/><text x=\"{3:.1f}\" y=\"{4:.1f}\">{5}</text>\n", x,
          legend_end_, entries[i].first, x + 44, legend_end_ + 4, in_xml(name));
      x += width;
    }
    legend_end_ += 14;
    return text;
  }

  const Topology& topology_;
  const DrawnUse& use_;
  TopologyLayout layout_;
  std::map<CordKey, Cord> cords_;
  std::vector<bool> is_on_side_;  ///< By node: of the cut.
  std::vector<bool> is_own_;      ///< By node: of the part that is drawn, not of one that is like it.
  std::map<std::string, std::string_view> colours_;
  std::string text_;
  double legend_end_ = 0;
};

}  // namespace

std::string topology_svg(const Topology& topology, const DrawnUse& use) { return SvgWriter(topology, use).write(); }

}  // namespace espalier
