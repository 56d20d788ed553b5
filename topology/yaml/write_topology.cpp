#include "topology/yaml/write_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/format_units.h"
#include "topology/yaml/like_boxes.h"

namespace espalier {
namespace {

/// A text in JSON's quotes, which YAML reads the same way. A '$' is doubled, as the reader fills in parameters.
std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\') {
      result += '\\';
      result += letter;
    } else if (byte < 0x20 || byte == 0x7F) {
      result += fmt::format("\\u{:04x}", byte);
    } else {
      result += letter;
      if (letter == '$') result += '$';
    }
  }
  return result + "\"";
}

/// True for texts that YAML reads as themselves without quotes, inside braces too.
bool is_plain(std::string_view text) {
  const auto is_safe = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.' || c == '/';
  };
  if (text.empty() || !std::ranges::all_of(text, is_safe)) return false;
  const char first = text.front();
  if (first == '-' || first == '.') return false;
  return text != "null" && text != "Null" && text != "NULL";
}

/// One map after another as `{key: value, ...}`, in YAML's or JSON's spelling.
class MapWriter {
 public:
  explicit MapWriter(bool json) : json_(json) {}

  void text(std::string_view key, std::string_view value) {
    raw(key, !json_ && is_plain(value) ? std::string(value) : in_quotes(value));
  }
  /// A value with a unit: plain in YAML.
  void measure(std::string_view key, const std::string& value) { raw(key, json_ ? in_quotes(value) : value); }
  void raw(std::string_view key, std::string_view value) {
    body_ += body_.empty() ? "" : ", ";
    body_ += json_ ? fmt::format("\"{}\": {}", key, value) : fmt::format("{}: {}", key, value);
  }
  void pair(std::string_view key, std::string_view first, std::string_view second) {
    const auto spelled = [&](std::string_view id) { return !json_ && is_plain(id) ? std::string(id) : in_quotes(id); };
    raw(key, fmt::format("[{}, {}]", spelled(first), spelled(second)));
  }
  [[nodiscard]] std::string take() const { return "{" + body_ + "}"; }

 private:
  bool json_;
  std::string body_;
};

std::string node_map(const Node& node, bool json) {
  MapWriter map(json);
  map.text("id", node.id);
  map.text("kind", to_string(node.kind));
  const bool default_rank = node.kind == NodeKind::gpu || node.kind == NodeKind::cpu;
  if (node.is_rank != default_rank) map.raw("rank", node.is_rank ? "true" : "false");
  if (node.must_not_relay()) map.raw("relay", "false");
  if (node.bandwidth.bytes_per_second > 0) map.measure("bandwidth", format_bandwidth(node.bandwidth));
  if (node.reduce_bandwidth.bytes_per_second > 0) {
    map.measure("reduce_bandwidth", format_bandwidth(node.reduce_bandwidth));
  }
  if (node.multicast) map.raw("multicast", "true");
  if (node.reduction) map.raw("reduction", "true");
  if (node.rail) map.raw("rail", std::to_string(*node.rail));
  if (!node.host.empty()) map.text("host", node.host);
  if (!node.model.empty()) map.text("model", node.model);
  return map.take();
}

std::string efficiency(std::int32_t ppm) {
  std::string text = fmt::format("0.{:06}", ppm);
  text.erase(text.find_last_not_of('0') + 1);
  return text;
}

bool same_but_reversed(const Link& a, const Link& b) {
  return a.tail == b.head && a.head == b.tail && a.values() == b.values();
}

std::string link_map(const Link& link, std::string_view tail, std::string_view head, bool both, bool json) {
  MapWriter map(json);
  if (both) {
    map.pair("between", tail, head);
  } else {
    map.text("from", tail);
    map.text("to", head);
  }
  if (!link.link_class.empty()) map.text("class", link.link_class);
  map.measure("bandwidth", format_bandwidth(link.nominal));
  map.measure("latency", format_latency(link.latency));
  if (link.overhead.count > 0) map.measure("overhead", format_latency(link.overhead));
  if (link.efficiency_ppm != 1'000'000) map.raw("efficiency", efficiency(link.efficiency_ppm));
  if (link.reported.bytes_per_second > 0) map.measure("reported", format_bandwidth(link.reported));
  return map.take();
}

std::string provenance_map(const ProvenanceRow& row, bool json) {
  MapWriter map(json);
  map.text("class", row.link_class);
  map.text("key", row.key);
  map.text("value", row.value);
  map.text("origin", to_string(row.origin));
  map.text("source", row.source);
  return map.take();
}

/// Calls `write` with the text of each entry under `links`, with a node's name as `name_of` has it. Only neighbours are
/// paired: `between` expands to two links with consecutive ids, so any other pairing would renumber them.
template <class NameOf, class Write>
void for_each_link(std::span<const Link> links, const NameOf& name_of, bool json, const Write& write) {
  for (std::size_t i = 0; i < links.size(); ++i) {
    const bool both = i + 1 < links.size() && same_but_reversed(links[i], links[i + 1]);
    write(link_map(links[i], name_of(links[i].tail), name_of(links[i].head), both, json));
    if (both) ++i;
  }
}

std::string written_text(std::string_view value) {
  return is_plain(value) ? std::string(value) : in_quotes(std::string(value));
}

std::string head_lines(const Topology& topology, std::string_view profile, std::string_view gpu) {
  std::string text = fmt::format("espalier: 1\nname: {}\n", written_text(topology.name()));
  if (!profile.empty()) text += fmt::format("profile: {}\n", written_text(profile));
  if (!gpu.empty()) text += fmt::format("gpu: {}\n", written_text(gpu));
  return text;
}

/// As a group of so many instances: the first one's nodes and links, named as inside of it.
std::string group_text(const Topology& topology, const LikeBoxes& boxes) {
  std::string text =
      fmt::format("groups:\n  - id: {}\n    count: {}\n    host: true\n    nodes:\n", boxes.name, boxes.count);
  const std::size_t prefix = boxes.prefix(0).size();
  for (std::size_t i = boxes.first_node; i < boxes.first_node + boxes.nodes; ++i) {
    Node node = topology.nodes()[i];
    node.id.erase(0, prefix);
    node.host.clear();
    text += "      - " + node_map(node, false) + "\n";
  }
  if (boxes.links > 0) text += "    links:\n";
  const auto name_of = [&](NodeId id) {
    const std::string_view name = topology.node(id).id;
    return id.index() < boxes.first_node ? name : name.substr(prefix);
  };
  for_each_link(topology.links().first(boxes.links), name_of, false,
                [&](const std::string& map) { text += "      - " + map + "\n"; });
  return text;
}

}  // namespace

std::string write_topology_compact(const Topology& topology, std::string_view profile, std::string_view gpu) {
  const auto boxes = find_like_boxes(topology);
  if (!boxes) return write_topology(topology, {}, profile, gpu);
  std::string text = head_lines(topology, profile, gpu);
  if (boxes->first_node > 0) text += "nodes:\n";
  for (const Node& node : topology.nodes().first(boxes->first_node)) text += "  - " + node_map(node, false) + "\n";
  text += group_text(topology, *boxes);
  const auto outside = topology.links().subspan(boxes->count * boxes->links);
  if (!outside.empty()) text += "links:\n";
  for_each_link(
      outside, [&](NodeId id) -> std::string_view { return topology.node(id).id; }, false,
      [&](const std::string& map) { text += "  - " + map + "\n"; });
  return text;
}

std::string write_topology(const Topology& topology, std::span<const ProvenanceRow> provenance,
                           std::string_view profile, std::string_view gpu) {
  std::string text = head_lines(topology, profile, gpu);
  text += "nodes:\n";
  for (const Node& node : topology.nodes()) text += "  - " + node_map(node, false) + "\n";
  if (topology.link_count() > 0) text += "links:\n";
  for_each_link(
      topology.links(), [&](NodeId id) -> std::string_view { return topology.node(id).id; }, false,
      [&](const std::string& map) { text += "  - " + map + "\n"; });
  if (!provenance.empty()) text += "provenance:\n";
  for (const ProvenanceRow& row : provenance) text += "  - " + provenance_map(row, false) + "\n";
  return text;
}

std::string write_topology_json(const Topology& topology, std::span<const ProvenanceRow> provenance,
                                std::string_view profile, std::string_view gpu) {
  std::string text = fmt::format(R"({{"espalier": 1, "name": {}, )", in_quotes(topology.name()));
  if (!profile.empty()) text += fmt::format(R"("profile": {}, )", in_quotes(std::string(profile)));
  if (!gpu.empty()) text += fmt::format(R"("gpu": {}, )", in_quotes(std::string(gpu)));
  text += R"("nodes": [)";
  std::string_view separator;
  for (const Node& node : topology.nodes()) {
    text += separator;
    text += node_map(node, true);
    separator = ", ";
  }
  text += R"(], "links": [)";
  separator = {};
  for_each_link(
      topology.links(), [&](NodeId id) -> std::string_view { return topology.node(id).id; }, true,
      [&](const std::string& map) {
        text += separator;
        text += map;
        separator = ", ";
      });
  if (provenance.empty()) return text + "]}";
  text += R"(], "provenance": [)";
  separator = {};
  for (const ProvenanceRow& row : provenance) {
    text += separator;
    text += provenance_map(row, true);
    separator = ", ";
  }
  return text + "]}";
}

}  // namespace espalier
