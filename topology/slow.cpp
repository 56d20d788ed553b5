#include "topology/slow.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/parse_units.h"
#include "topology/link_kind.h"
#include "topology/without.h"

namespace espalier {
namespace {

constexpr std::int32_t whole_ppm = 1'000'000;

/// "gpu0-gpu1=25%" taken apart.
struct Slowing {
  std::string name;
  Parts parts;
  std::int32_t part_ppm = whole_ppm;
};

Result<Slowing> read_slowing(const Topology& topology, const std::string& text) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos) {
    return fail(ErrorCode::invalid_input, fmt::format("'{}' is not LINK=PART", text),
                "write gpu0-gpu1=0.25 for a quarter of its rate");
  }
  Slowing slowing;
  slowing.name = text.substr(0, equals);
  const auto part = parse_part(std::string_view(text).substr(equals + 1));
  if (!part) {
    return fail(part.error().code, fmt::format("'{}': {}", text, part.error().message),
                "a part is above 0 and at most 1, such as 0.25 or 25%");
  }
  if (*part == 0) {
    return fail(ErrorCode::invalid_input, fmt::format("'{}' leaves nothing of it", text),
                fmt::format("--without {} takes it away", slowing.name));
  }
  slowing.part_ppm = *part;
  auto parts = find_parts(topology, slowing.name);
  if (!parts) return tl::unexpected(parts.error());
  slowing.parts = *std::move(parts);
  return slowing;
}

Bandwidth part_of(Bandwidth rate, std::int32_t part_ppm) {
  return {static_cast<std::int64_t>(static_cast<__int128>(rate.bytes_per_second) * part_ppm / whole_ppm)};
}

/// What software reads of a link that is left a part of its rate.
Bandwidth seen_at(const Link& link, std::int32_t part_ppm) {
  const NvLinks links = nvlinks_of(link);
  if (links.count > 1) {
    const std::int64_t left = (links.count * part_ppm + whole_ppm - 1) / whole_ppm;
    return {left * links.each.bytes_per_second};
  }
  const bool is_cable_of_unknown = links.count == 0 && link.link_class.find("nvlink") != std::string::npos;
  return is_cable_of_unknown ? part_of(link.seen_rate(), part_ppm) : link.seen_rate();
}

}  // namespace

Result<Topology> slow_down(const Topology& topology, std::span<const std::string> texts) {
  if (texts.empty()) return topology;
  std::vector<std::int32_t> of_link(topology.link_count(), whole_ppm), of_node(topology.node_count(), whole_ppm);
  std::string what;
  for (const std::string& text : texts) {
    const auto slowing = read_slowing(topology, text);
    if (!slowing) return tl::unexpected(slowing.error());
    for (const LinkId link : slowing->parts.links) of_link[link.index()] = slowing->part_ppm;
    for (const NodeId node : slowing->parts.nodes) {
      of_node[node.index()] = slowing->part_ppm;
      for (const LinkId link : topology.out_links(node)) of_link[link.index()] = slowing->part_ppm;
      for (const LinkId link : topology.in_links(node)) of_link[link.index()] = slowing->part_ppm;
    }
    what += fmt::format("{}{} at {:.6g} %", what.empty() ? "" : ", ", slowing->name, slowing->part_ppm / 1e4);
  }
  std::vector<Node> nodes(topology.nodes().begin(), topology.nodes().end());
  std::vector<Link> links(topology.links().begin(), topology.links().end());
  bool is_seen = false;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const bool is_limited = nodes[i].bandwidth.bytes_per_second > 0;
    nodes[i].bandwidth = part_of(nodes[i].bandwidth, of_node[i]);
    is_seen = is_seen || (is_limited && of_node[i] < whole_ppm);
    if (is_limited && nodes[i].bandwidth.bytes_per_second == 0) {
      return fail(ErrorCode::invalid_input, fmt::format("less than a byte per second is left of {}", nodes[i].id));
    }
  }
  for (std::size_t i = 0; i < links.size(); ++i) {
    if (of_link[i] < whole_ppm) {
      const Bandwidth before = links[i].seen_rate(), seen = seen_at(links[i], of_link[i]);
      links[i].nominal = part_of(links[i].nominal, of_link[i]);
      links[i].reported = seen > links[i].nominal ? seen : Bandwidth{};
      is_seen = is_seen || seen < before;
    }
    if (links[i].bandwidth().bytes_per_second > 0) continue;
    return fail(ErrorCode::invalid_input,
                fmt::format("less than a byte per second is left of {}", topology.link_name(LinkId(i))));
  }
  auto slowed = Topology::make(fmt::format("{} with {}", topology.name(), what), std::move(nodes), std::move(links));
  if (!slowed) return slowed;
  return is_seen ? std::move(*slowed).as_altered(topology) : std::move(*slowed).as_altered_unseen(topology);
}

std::string seen_text(const Topology& topology) {
  std::string text;
  for (const Node& node : topology.nodes()) {
    text += fmt::format("{} {} {} {} {}\n", node.id, node.is_rank, node.bandwidth.bytes_per_second, node.multicast,
                        node.reduction);
  }
  for (const Link& link : topology.links()) {
    text += fmt::format("{} {} {} {}\n", link.tail.index(), link.head.index(), link.link_class,
                        link.seen_rate().bytes_per_second);
  }
  return text;
}

bool has_reported(const Topology& topology) {
  return std::ranges::any_of(topology.links(), [](const Link& link) { return link.reported.bytes_per_second > 0; });
}

Topology as_reported(const Topology& topology) {
  std::vector<Link> links(topology.links().begin(), topology.links().end());
  for (Link& link : links) {
    link.nominal = link.seen_rate();
    link.reported = {};
  }
  auto made = Topology::make(topology.name(), {topology.nodes().begin(), topology.nodes().end()}, std::move(links));
  ESPALIER_CHECK(made.has_value(), "a topology stays one at higher rates");
  return topology.is_seen_altered() ? std::move(*made).as_altered(topology) : *std::move(made);
}

}  // namespace espalier
