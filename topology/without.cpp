#include "topology/without.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/suggest.h"
#include "topology/cables.h"
#include "topology/names/name_list.h"
#include "topology/names/patterns.h"
#include "topology/reachable.h"

namespace espalier {
namespace {

/// "gpu0-gpu3#1" as "gpu0-gpu3" and 1.
struct Numbered {
  std::string_view name;
  std::optional<std::size_t> number;
};

Result<Numbered> split_number(std::string_view text) {
  const std::size_t mark = text.rfind('#');
  if (mark == std::string_view::npos) return Numbered{text, std::nullopt};
  const std::string_view digits = text.substr(mark + 1);
  std::size_t number = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (status != std::errc() || end != digits.data() + digits.size()) {
    return fail(ErrorCode::invalid_input, fmt::format("'{}' does not end in a number", text),
                "write #0 for the first of several links");
  }
  return Numbered{text.substr(0, mark), number};
}

bool has_class(const Topology& topology, std::string_view name) {
  return !name.empty() && std::ranges::find(topology.links(), name, &Link::link_class) != topology.links().end();
}

/// Classes of links stand for themselves, never for the end of a link (`is_end`).
tl::unexpected<Error> unknown_node(const Topology& topology, std::string_view name, bool is_end = false) {
  std::vector<std::string_view> ids;
  std::vector<std::string> texts;
  for (const Node& node : topology.nodes()) {
    ids.push_back(node.id);
    texts.push_back(node.id);
  }
  if (is_end && has_class(topology, name)) {
    return fail(ErrorCode::invalid_input,
                fmt::format("'{}' is not a node of {} but a class of its links", name, topology.name()),
                fmt::format("write {} alone for all of them, or the two nodes that a link joins", name));
  }
  for (const Link& link : topology.links()) {
    if (!is_end && !link.link_class.empty()) ids.push_back(link.link_class);
  }
  const auto near = find_nearest(name, ids);
  return fail(ErrorCode::invalid_input, fmt::format("'{}' is not a node of {}", name, topology.name()),
              near ? fmt::format("did you mean '{}'?", *near) : "nodes are " + summarize_names(texts));
}

std::string neighbours_text(const Topology& topology, NodeId node) {
  std::vector<std::string> names;
  for (const LinkId link : topology.out_links(node)) names.push_back(topology.node(topology.link(link).head).id);
  for (const LinkId link : topology.in_links(node)) names.push_back(topology.node(topology.link(link).tail).id);
  std::ranges::sort(names, {}, [&](const std::string& name) { return topology.find_node(name); });
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return fmt::format("{} is joined to {}", topology.node(node).id, summarize_names(names));
}

struct LinkEnds {
  NodeId tail;
  NodeId head;
};

/// Both ends of "a>b" or "a-b". Ids may hold dashes, so every dash is tried; a split whose nodes are joined wins.
Result<LinkEnds> find_ends(const Topology& topology, std::string_view name, char mark) {
  std::vector<LinkEnds> found;
  std::string_view unknown = name.find(mark) == 0 ? name : name.substr(0, name.find(mark));
  for (std::size_t at = name.find(mark); at != std::string_view::npos; at = name.find(mark, at + 1)) {
    const std::string_view first = name.substr(0, at), second = name.substr(at + 1);
    const LinkEnds ends{topology.find_node(first), topology.find_node(second)};
    if (!ends.tail.is_none() && !ends.head.is_none()) {
      found.push_back(ends);
    } else if (!ends.tail.is_none()) {
      unknown = second;
    } else if (!ends.head.is_none()) {
      unknown = first;
    }
  }
  if (found.empty()) return unknown_node(topology, unknown, true);
  std::vector<LinkEnds> joined;
  std::ranges::copy_if(found, std::back_inserter(joined), [&](const LinkEnds& ends) {
    return !topology.links_between(ends.tail, ends.head).empty() ||
           !topology.links_between(ends.head, ends.tail).empty();
  });
  if (joined.size() > 1) {
    return fail(ErrorCode::invalid_input, fmt::format("'{}' can be read in {} ways", name, joined.size()),
                "write the links of the cable as a>b and b>a");
  }
  if (!joined.empty()) return joined.front();
  const LinkEnds& ends = found.front();
  return fail(ErrorCode::invalid_input,
              fmt::format("no link joins {} and {}", topology.node(ends.tail).id, topology.node(ends.head).id),
              neighbours_text(topology, ends.tail));
}

tl::unexpected<Error> no_such_number(const Numbered& numbered, std::size_t count, const char* noun) {
  return fail(ErrorCode::invalid_input,
              fmt::format("there is no {}#{}, only {} {}{}", numbered.name, *numbered.number, count, noun,
                          count == 1 ? "" : "s"),
              count == 1 ? fmt::format("write {}", numbered.name)
                         : fmt::format("they are {0}#0 to {0}#{1}", numbered.name, count - 1));
}

Result<Parts> find_directed(const Topology& topology, std::string_view text) {
  const auto numbered = split_number(text);
  if (!numbered) return tl::unexpected(numbered.error());
  const auto ends = find_ends(topology, numbered->name, '>');
  if (!ends) return tl::unexpected(ends.error());
  std::vector<LinkId> links = topology.links_between(ends->tail, ends->head);
  if (links.empty()) {
    return fail(ErrorCode::invalid_input,
                fmt::format("no link leads from {} to {}", topology.node(ends->tail).id, topology.node(ends->head).id),
                fmt::format("there is {}>{}", topology.node(ends->head).id, topology.node(ends->tail).id));
  }
  if (!numbered->number) return Parts{{}, std::move(links)};
  if (*numbered->number >= links.size()) return no_such_number(*numbered, links.size(), "link");
  return Parts{{}, {links[*numbered->number]}};
}

Result<Parts> find_cable(const Topology& topology, std::string_view text) {
  const auto numbered = split_number(text);
  if (!numbered) return tl::unexpected(numbered.error());
  const auto ends = find_ends(topology, numbered->name, '-');
  if (!ends) return tl::unexpected(ends.error());
  const std::vector<LinkId> there = topology.links_between(ends->tail, ends->head);
  const std::vector<LinkId> back = topology.links_between(ends->head, ends->tail);
  const std::size_t cables = std::min(there.size(), back.size());
  if (!numbered->number) {
    Parts parts{{}, there};
    parts.links.insert(parts.links.end(), back.begin(), back.end());
    return parts;
  }
  if (cables == 0) {
    return fail(ErrorCode::invalid_input, fmt::format("no cable joins {} in both directions", numbered->name),
                fmt::format("write {}", topology.link_name(there.empty() ? back.front() : there.front())));
  }
  if (*numbered->number >= cables) return no_such_number(*numbered, cables, "cable");
  return Parts{{}, {there[*numbered->number], back[*numbered->number]}};
}

/// The ranks of each of two sets that a predicate on nodes makes.
struct Sides {
  std::vector<std::string> inside;
  std::vector<std::string> outside;
};

Sides split_ranks(const Topology& topology, const std::vector<bool>& is_inside) {
  Sides sides;
  for (std::size_t i = 0; i < topology.rank_count(); ++i) {
    const bool inside = is_inside[topology.node_of(Rank(i)).index()];
    (inside ? sides.inside : sides.outside).push_back(topology.rank_name(Rank(i)));
  }
  return sides;
}

/// Which ranks cannot reach which, in as few words as there are: those outside the largest set that stays together.
std::string cut_off_text(const Topology& topology, const Unreachable& pair) {
  std::vector<bool> is_done(topology.node_count(), false), largest;
  std::size_t most = 0;
  bool only_both_ways = true;
  for (std::size_t i = 0; i < topology.rank_count(); ++i) {
    const NodeId node = topology.node_of(Rank(i));
    if (is_done[node.index()]) continue;
    std::vector<bool> forwards = reached_from(topology, node, true);
    const std::vector<bool> backwards = reached_from(topology, node, false);
    only_both_ways = only_both_ways && forwards == backwards;
    for (std::size_t at = 0; at < forwards.size(); ++at) {
      forwards[at] = forwards[at] && backwards[at];
      if (forwards[at]) is_done[at] = true;
    }
    const std::size_t count = split_ranks(topology, forwards).inside.size();
    if (count <= most) continue;
    most = count;
    largest = std::move(forwards);
  }
  if (only_both_ways) {
    const Sides sides = split_ranks(topology, largest);
    return fmt::format("{} and {} cannot reach each other", summarize_names(sides.outside),
                       summarize_names(sides.inside));
  }
  const Sides sides = split_ranks(topology, reached_from(topology, topology.node_of(pair.from), true));
  return fmt::format("{} cannot reach {}", summarize_names(sides.inside), summarize_names(sides.outside));
}

Result<Parts> find_named(const Topology& topology, std::string_view name) {
  if (const NodeId node = topology.find_node(name); !node.is_none()) return Parts{{node}, {}};
  Parts host;
  for (std::size_t i = 0; i < topology.node_count(); ++i) {
    if (!name.empty() && topology.node(NodeId(i)).host == name) host.nodes.emplace_back(i);
  }
  if (!host.nodes.empty()) return host;
  Parts of_class;
  for (std::size_t i = 0; i < topology.link_count(); ++i) {
    if (!name.empty() && topology.link(LinkId(i)).link_class == name) of_class.links.emplace_back(i);
  }
  if (!of_class.links.empty()) return of_class;
  if (name.find('>') != std::string_view::npos) return find_directed(topology, name);
  if (name.find('-') != std::string_view::npos) return find_cable(topology, name);
  return unknown_node(topology, name);
}

/// What a name with ranges, "box[0-3].nic0" or "gpu0-nvswitch[*]", may stand for: nodes, hosts, else cables and links.
std::vector<std::string> candidates_of(const Topology& topology, const NamePattern& pattern) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (pattern.matches(name) && std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  for (const Node& node : topology.nodes()) add(node.id);
  if (!names.empty()) return names;
  for (const Node& node : topology.nodes()) add(node.host);
  if (!names.empty()) return names;
  for (const Link& link : topology.links()) {
    const std::string &tail = topology.node(link.tail).id, &head = topology.node(link.head).id;
    add(fmt::format("{}>{}", tail, head));
    add(fmt::format("{}-{}", tail, head));
  }
  return names;
}

Result<std::vector<std::string>> names_of(const Topology& topology, std::string_view name) {
  const auto pattern = NamePattern::parse(name);
  if (!pattern) return fail(ErrorCode::invalid_input, pattern.error().message, pattern.error().help);
  const std::size_t most = topology.node_count() + topology.link_count();
  if (!pattern->has_star() && pattern->size() > most) {
    return fail(ErrorCode::invalid_input,
                fmt::format("'{}' stands for {} names, more than {} has", name, pattern->size(), topology.name()),
                "name those that are there");
  }
  auto names = pattern->has_star() ? candidates_of(topology, *pattern) : pattern->names();
  if (names.empty()) return unknown_node(topology, name);
  return names;
}

}  // namespace

Result<Parts> find_parts(const Topology& topology, std::string_view name) {
  if (name.find('[') == std::string_view::npos) return find_named(topology, name);
  const auto names = names_of(topology, name);
  if (!names) return tl::unexpected(names.error());
  Parts all;
  for (const std::string& each : *names) {
    const auto parts = find_named(topology, each);
    if (!parts) return parts;
    all.nodes.insert(all.nodes.end(), parts->nodes.begin(), parts->nodes.end());
    all.links.insert(all.links.end(), parts->links.begin(), parts->links.end());
  }
  return all;
}

Parts what_is_left(const Topology& topology, const Parts& parts) {
  std::vector<bool> node_fails(topology.node_count(), false), link_fails(topology.link_count(), false);
  for (const NodeId node : parts.nodes) node_fails[node.index()] = true;
  for (const LinkId link : parts.links) link_fails[link.index()] = true;
  Parts left;
  for (std::size_t i = 0; i < topology.node_count(); ++i) {
    if (!node_fails[i]) left.nodes.emplace_back(i);
  }
  for (std::size_t i = 0; i < topology.link_count(); ++i) {
    const Link& link = topology.link(LinkId(i));
    if (!link_fails[i] && !node_fails[link.tail.index()] && !node_fails[link.head.index()]) left.links.emplace_back(i);
  }
  return left;
}

Result<Topology> without(const Topology& topology, const Parts& parts, std::string_view what) {
  const Parts left = what_is_left(topology, parts);
  std::vector<Node> nodes;
  std::vector<NodeId> new_id(topology.node_count());
  bool has_ranks = false;
  for (const NodeId id : left.nodes) {
    new_id[id.index()] = NodeId(nodes.size());
    nodes.push_back(topology.node(id));
    has_ranks = has_ranks || nodes.back().is_rank;
  }
  if (!has_ranks) return fail(ErrorCode::infeasible, fmt::format("without {} no rank is left", what));
  std::vector<Link> links;
  for (const LinkId id : left.links) {
    links.push_back(topology.link(id));
    links.back().tail = new_id[links.back().tail.index()];
    links.back().head = new_id[links.back().head.index()];
  }
  auto rest = Topology::make(fmt::format("{} without {}", topology.name(), what), std::move(nodes), std::move(links));
  if (!rest) return rest;
  if (const auto unreachable = find_unreachable(*rest)) {
    return fail(
        ErrorCode::infeasible, fmt::format("without {}, {}", what, cut_off_text(*rest, *unreachable)),
        "a collective needs every rank to reach every other; take away the ranks as well to go on without them");
  }
  return std::move(*rest).as_altered(topology);
}

Result<Topology> without(const Topology& topology, std::span<const std::string> names) {
  if (names.empty()) return topology;
  Parts all;
  for (const std::string& name : names) {
    const auto parts = find_parts(topology, name);
    if (!parts) return tl::unexpected(parts.error());
    all.nodes.insert(all.nodes.end(), parts->nodes.begin(), parts->nodes.end());
    all.links.insert(all.links.end(), parts->links.begin(), parts->links.end());
  }
  return without(topology, all, fmt::format("{}", fmt::join(names, ", ")));
}

}  // namespace espalier
