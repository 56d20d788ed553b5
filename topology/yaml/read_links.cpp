#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/suggest.h"
#include "topology/names/patterns.h"
#include "topology/yaml/read_codes.h"
#include "topology/yaml/read_keys.h"
#include "topology/yaml/read_limits.h"
#include "topology/yaml/reading.h"

namespace espalier {
namespace {

using NodeList = std::vector<std::uint32_t>;

/// How the ends of one entry under `links` are written.
enum class Wiring { between, one_direction, zip, all };

struct Ends {
  Wiring wiring = Wiring::between;
  NodeList left;
  NodeList right;  ///< Empty with `all` over one set: every pair inside `left`.
};

constexpr std::string_view ends_help =
    "write 'between: [a, b]', 'from: a' with 'to: b', 'zip: [a[0-7], b[0-7]]' or 'all: [a[0-7], b]'";

/// The nodes of one end: a name, a pattern, or a list of those. Nothing after errors.
std::optional<NodeList> read_end(Reading& reading, const Body& body, Value end, bool single) {
  if (end.is_list() && !single) {
    NodeList nodes;
    bool complete = true;
    for (std::size_t i = 0; i < end.size() && reading.step(end.mark()); ++i) {
      const auto some = read_end(reading, body, end.item(i), true);
      complete = complete && some.has_value();
      if (some) nodes.insert(nodes.end(), some->begin(), some->end());
      if (nodes.size() > reading.limits.nodes) {
        reading.findings.error(
            end.mark(), {read_codes::too_many_nodes, "the end of a link names too many nodes", "use smaller ranges"});
        return std::nullopt;
      }
    }
    if (!complete) return std::nullopt;
    return nodes;
  }
  const auto text = read_text(end, "the end of a link", *body.environment, reading.findings);
  if (!text || reading.is_over()) return std::nullopt;
  const auto pattern = NamePattern::parse(*text);
  if (!pattern) {
    reading.findings.error(end.mark(), pattern.error());
    return std::nullopt;
  }
  // In the next instance of a group the same name would be looked for, and the nearest ones compared, to no new end.
  if (reading.findings.has(end.mark(), read_codes::unknown_node)) return std::nullopt;
  auto nodes = reading.nodes.resolve(*pattern, *text, *body.scope, reading.budget);
  if (!nodes) {
    reading.findings.error(end.mark(), nodes.error());
    return std::nullopt;
  }
  return *std::move(nodes);
}

/// An end of `between`, `from` or `to`: exactly one node.
std::optional<NodeList> read_single_end(Reading& reading, const Body& body, Value end) {
  auto nodes = read_end(reading, body, end, true);
  if (!nodes || nodes->size() == 1) return nodes;
  reading.findings.error(
      end.mark(), {read_codes::several_nodes,
                   fmt::format("'{}' stands for {} nodes where one is meant", end.text().substr(0, 60), nodes->size()),
                   "use 'zip' to join two ranges in step, or 'all' to join each with each"});
  return std::nullopt;
}

/// The list of `between`, `zip` or `all`, checked to hold `low` to 2 items.
bool has_ends(Reading& reading, Value list, std::string_view key, std::size_t low) {
  if (list.is_list() && list.size() >= low && list.size() <= 2) return true;
  const std::string found =
      list.is_list() ? fmt::format("a list of {}", list.size()) : std::string(describe(list.kind()));
  reading.findings.error(
      list.mark(), {read_codes::wrong_type,
                    fmt::format("'{}' must be a list of {} ends, not {}", key, low == 1 ? "one or two" : "two", found),
                    fmt::format("write '{}: [a, b]'", key)});
  return false;
}

std::optional<Ends> read_pair(Reading& reading, const Body& body, Value list, Wiring wiring) {
  const std::string_view key = wiring == Wiring::between ? "between" : wiring == Wiring::zip ? "zip" : "all";
  if (!has_ends(reading, list, key, wiring == Wiring::all ? 1 : 2)) return std::nullopt;
  const auto read = [&](Value end) {
    return wiring == Wiring::between ? read_single_end(reading, body, end) : read_end(reading, body, end, false);
  };
  auto left = read(list.item(0));
  auto right = list.size() == 2 ? read(list.item(1)) : NodeList{};
  if (!left || !right) return std::nullopt;
  if (wiring == Wiring::zip && left->size() != right->size()) {
    reading.findings.error(
        list.mark(), {read_codes::zip_lengths, fmt::format("'zip' joins {} nodes with {}", left->size(), right->size()),
                      "make both ranges equally long, or use 'all' to join each with each"});
    return std::nullopt;
  }
  if (left->empty() || (list.size() == 2 && right->empty())) {
    reading.findings.error(list.mark(), {read_codes::wrong_type, fmt::format("an end of '{}' is an empty list", key),
                                         "name nodes or ranges of nodes"});
    return std::nullopt;
  }
  return Ends{wiring, *std::move(left), *std::move(right)};
}

std::optional<Ends> read_ends(Reading& reading, const Body& body, const Fields& fields) {
  struct Choice {
    std::string_view key;
    Wiring wiring;
  };
  constexpr std::array choices = {Choice{"between", Wiring::between}, Choice{"from", Wiring::one_direction},
                                  Choice{"zip", Wiring::zip}, Choice{"all", Wiring::all}};
  const Choice* chosen = nullptr;
  for (const Choice& choice : choices) {
    if (!fields.has(choice.key)) continue;
    if (chosen != nullptr) {
      fields.error(fields.mark_of(choice.key),
                   {read_codes::keys_conflict, fmt::format("a link has both '{}' and '{}'", chosen->key, choice.key),
                    std::string(ends_help)});
      return std::nullopt;
    }
    chosen = &choice;
  }
  const bool to_without_from = fields.has("to") && (chosen == nullptr || chosen->key != "from");
  if (chosen == nullptr || to_without_from) {
    fields.missing(to_without_from ? "from" : "between", ends_help);
    return std::nullopt;
  }
  if (chosen->wiring != Wiring::one_direction)
    return read_pair(reading, body, fields.find(chosen->key), chosen->wiring);
  if (!fields.has("to")) {
    fields.missing("to", ends_help);
    return std::nullopt;
  }
  auto tail = read_single_end(reading, body, fields.find("from"));
  auto head = read_single_end(reading, body, fields.find("to"));
  if (!tail || !head) return std::nullopt;
  return Ends{Wiring::one_direction, *std::move(tail), *std::move(head)};
}

/// Whether a class is defined by the file of the body, or by one that this file includes.
bool is_own_class(const LinkClass& values, const Body& body) {
  for (const IncludeChain* chain = values.chain; chain != nullptr; chain = chain->outer) {
    if (chain->file == body.chain->file) return true;
  }
  return false;
}

/// The class a link names, looked up outwards; an empty one when it is only a label: where the link has its own rate
/// and its file has no classes, whatever those that include it have. Nothing after errors, one for all links of a
/// class.
std::optional<LinkClass> find_class(Reading& reading, const Body& body, const Fields& fields, const std::string& name) {
  std::vector<std::string_view> known;
  bool has_classes = false;
  for (const Scope* place = body.scope; place != nullptr; place = place->outer) {
    if (const auto found = place->classes.find(name); found != place->classes.end()) return found->second;
    for (const auto& [class_name, values] : place->classes) {
      known.push_back(class_name);
      has_classes = has_classes || is_own_class(values, body);
    }
  }
  if (!has_classes && fields.has("bandwidth")) return LinkClass{};
  if (!reading.unknown_classes.emplace(body.chain->file, name).second) return std::nullopt;
  fields.error(fields.mark_of("class"),
               {read_codes::unknown_class, fmt::format("there is no link class '{}'", name.substr(0, 60)),
                known.empty() ? "define it under 'classes:'" : suggest(name, known)});
  return std::nullopt;
}

/// All of a link but its ends. Nothing after errors.
std::optional<Link> read_link(Reading& reading, const Body& body, const Fields& fields) {
  const LinkClass own = read_link_values(fields);
  const std::string name = fields.text("class").value_or("");
  const auto inherited = fields.has("class") ? find_class(reading, body, fields, name) : LinkClass{};
  if (!inherited) return std::nullopt;
  Link link;
  link.link_class = name;
  const auto rate = own.bandwidth ? own.bandwidth : inherited->bandwidth;
  if (!rate) {
    if (!own.is_broken && !inherited->is_broken) {
      fields.missing("bandwidth", "write 'bandwidth: 25 GB/s', or name a 'class' that has one");
    }
    return std::nullopt;
  }
  link.nominal = *rate;
  link.latency = own.latency.value_or(inherited->latency.value_or(Picoseconds{}));
  link.overhead = own.overhead.value_or(inherited->overhead.value_or(Picoseconds{}));
  link.efficiency_ppm = own.efficiency_ppm.value_or(inherited->efficiency_ppm.value_or(1'000'000));
  link.reported = own.reported.value_or(inherited->reported.value_or(Bandwidth{}));
  if (link.bandwidth().bytes_per_second <= 0) {
    fields.error(fields.mark_of("bandwidth"),
                 {read_codes::bad_bandwidth, "bandwidth times efficiency is below one byte per second",
                  "write a higher bandwidth"});
    return std::nullopt;
  }
  return link;
}

class LinkWriter {
 public:
  LinkWriter(Reading& reading, const Link& link, bool both, std::int64_t count, const Mark& mark)
      : reading_(reading), link_(link), both_(both), count_(count), mark_(mark) {}

  void join(std::uint32_t left, std::uint32_t right) {
    if (left == right) {
      reading_.findings.error(
          mark_, {read_codes::self_link, fmt::format("the node '{}' is linked to itself", reading_.nodes[left].id),
                  "join two nodes; 'all: [range]' joins every pair inside one range"});
      return;
    }
    for (std::int64_t i = 0; i < count_; ++i) {
      add(left, right);
      if (both_) add(right, left);
    }
  }

 private:
  void add(std::uint32_t tail, std::uint32_t head) {
    Link& link = reading_.links.emplace_back(link_);
    link.tail = NodeId(tail);
    link.head = NodeId(head);
  }

  Reading& reading_;
  const Link& link_;
  bool both_;
  std::int64_t count_;
  Mark mark_;
};

std::uint64_t pair_count(const Ends& ends) {
  const std::uint64_t left = ends.left.size();
  if (ends.wiring != Wiring::all) return left;
  return ends.right.empty() ? left * (left - 1) / 2 : left * ends.right.size();
}

void join_all(const Ends& ends, LinkWriter& writer) {
  if (ends.wiring != Wiring::all) {
    for (std::size_t i = 0; i < ends.left.size(); ++i) writer.join(ends.left[i], ends.right[i]);
    return;
  }
  for (std::size_t i = 0; i < ends.left.size(); ++i) {
    if (ends.right.empty()) {
      for (std::size_t j = i + 1; j < ends.left.size(); ++j) writer.join(ends.left[i], ends.left[j]);
    } else {
      for (const std::uint32_t right : ends.right) writer.join(ends.left[i], right);
    }
  }
}

void read_link_entry(Reading& reading, const Body& body, Value entry) {
  const Fields fields(entry, "a link", read_keys::link, *body.environment, reading.findings);
  if (!fields.is_map()) return;
  const auto ends = read_ends(reading, body, fields);
  const auto link = read_link(reading, body, fields);
  const auto count = fields.has("count") ? fields.integer("count", 1, read_limits::link_count) : 1;
  bool both = fields.has("from") ? false : !fields.boolean("one_way").value_or(false);
  if (fields.has("from") && fields.has("one_way")) {
    fields.error(fields.mark_of("one_way"),
                 {read_codes::keys_conflict, "'from' and 'to' are one way already", "remove 'one_way'"});
    return;
  }
  if (!ends || !link || !count) return;
  const auto added =
      static_cast<unsigned __int128>(pair_count(*ends)) * static_cast<std::uint64_t>(*count) * (both ? 2 : 1);
  if (added + reading.links.size() > reading.limits.links) {
    fields.error(fields.mark(),
                 {read_codes::too_many_links,
                  fmt::format("there are more than {} links, each direction counted", reading.limits.links),
                  "use smaller ranges and counts"});
    reading.budget.end();
    return;
  }
  LinkWriter writer(reading, *link, both, *count, fields.mark());
  join_all(*ends, writer);
}

}  // namespace

LinkClass read_link_values(const Fields& fields) {
  LinkClass values{fields.bandwidth("bandwidth"), fields.latency("latency"), fields.latency("overhead"),
                   fields.millionths("efficiency"), fields.bandwidth("reported")};
  values.is_broken = fields.has("bandwidth") && !values.bandwidth;
  return values;
}

void read_links(Reading& reading, const Body& body) {
  const Value links = reading.list_of(body, "links");
  for (std::size_t i = 0; links && i < links.size() && reading.step(links.mark()); ++i) {
    read_link_entry(reading, body, links.item(i));
  }
}

}  // namespace espalier
