#include <fmt/format.h>

#include <array>

#include "base/suggest.h"
#include "topology/names/node_id.h"
#include "topology/names/patterns.h"
#include "topology/yaml/read_codes.h"
#include "topology/yaml/read_keys.h"
#include "topology/yaml/read_limits.h"
#include "topology/yaml/reading.h"

namespace espalier {
namespace {

constexpr std::array kinds = {NodeKind::gpu, NodeKind::cpu, NodeKind::nic, NodeKind::switch_node, NodeKind::pcie};

std::optional<NodeKind> read_kind(const Fields& fields) {
  if (!fields.has("kind")) {
    fields.missing("kind", "write 'kind: gpu', or cpu, nic, switch, pcie");
    return std::nullopt;
  }
  const auto written = fields.text("kind");
  if (!written) return std::nullopt;
  std::vector<std::string_view> names;
  for (const NodeKind kind : kinds) {
    names.push_back(to_string(kind));
    if (*written == names.back()) return kind;
  }
  fields.error(fields.mark_of("kind"),
               {read_codes::unknown_kind, fmt::format("'{}' is not a kind of node", written->substr(0, 60)),
                suggest(*written, names)});
  return std::nullopt;
}

/// All of a node but its id. What is wrong is reported and left at its default.
Node read_node(const Fields& fields, const Scope& scope) {
  Node node;
  const auto kind = read_kind(fields);
  node.kind = kind.value_or(NodeKind::gpu);
  const bool may_be_rank = node.kind == NodeKind::gpu || node.kind == NodeKind::cpu;
  node.is_rank = fields.boolean("rank").value_or(may_be_rank);
  if (node.is_rank && !may_be_rank) {
    node.is_rank = false;
    fields.error(fields.mark_of("rank"),
                 {read_codes::cannot_be_rank, fmt::format("a {} cannot be a rank", to_string(node.kind)),
                  "only gpu and cpu nodes hold data; remove 'rank: true'"});
  }
  node.relay = fields.boolean("relay").value_or(true);
  if (!node.relay && kind && !node.is_rank) {
    node.relay = true;
    fields.error(fields.mark_of("relay"), {read_codes::not_a_rank, "'relay: false' stands on a node that is no rank",
                                           "remove it, or leave out the links that nothing may pass"});
  }
  node.bandwidth = fields.bandwidth("bandwidth").value_or(Bandwidth{});
  node.reduce_bandwidth = fields.bandwidth("reduce_bandwidth").value_or(Bandwidth{});
  node.multicast = fields.boolean("multicast").value_or(false);
  node.reduction = fields.boolean("reduction").value_or(false);
  for (const std::string_view key : {"multicast", "reduction"}) {
    const bool set = key == "multicast" ? node.multicast : node.reduction;
    if (!set || !kind || node.kind == NodeKind::switch_node) continue;
    fields.error(fields.mark_of(key),
                 {read_codes::not_a_switch, fmt::format("a {} cannot have '{}'", to_string(node.kind), key),
                  "only switches copy or reduce in the network"});
  }
  if (const auto rail = fields.integer("rail", 0, INT32_MAX)) node.rail = static_cast<std::int32_t>(*rail);
  node.host = fields.text("host").value_or(scope.host);
  node.model = fields.text("model").value_or("");
  if (!node.model.empty() && kind && node.kind != NodeKind::cpu && node.kind != NodeKind::nic) {
    fields.error(fields.mark_of("model"),
                 {read_codes::has_no_model, fmt::format("a {} cannot have 'model'", to_string(node.kind)),
                  "it says what processor a cpu is, or which card a nic is; the machine's 'profile' knows its GPUs"});
    node.model.clear();
  }
  return node;
}

/// True when a value uses a parameter, so that it may differ from one node of a range to the next.
bool uses_parameters(Value map) {
  for (std::size_t i = 0; i < map.size(); ++i) {
    if (map.key(i).text() != "id" && map.value(i).text().find('$') != std::string_view::npos) return true;
  }
  return false;
}

void read_node_entry(Reading& reading, const Body& body, Value entry) {
  const Fields fields(entry, "a node", read_keys::node, *body.environment, reading.findings);
  if (!fields.is_map()) return;
  const std::uint64_t room = reading.limits.nodes - reading.nodes.size();
  const std::vector<std::string> names = read_names(reading, fields, "a node", *body.environment, room);
  const bool differs = uses_parameters(entry);
  Node node;
  if (!differs || names.empty()) node = read_node(fields, *body.scope);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (differs) {
      Environment numbered(body.environment);
      numbered.set("index", std::to_string(i));
      node = read_node(Fields(entry, "a node", read_keys::node, numbered, reading.findings), *body.scope);
    }
    node.id = body.scope->prefix + names[i];
    const Mark mark = fields.mark_of("id");
    if (const std::string_view why = why_bad_node_id(node.id); !why.empty()) {
      fields.error(mark, {read_codes::bad_id, fmt::format("the node id '{}' {}", node.id.substr(0, 60), why),
                          "use letters, digits, '.', '-' and '_'"});
      return;
    }
    if (const auto first = reading.nodes.add(node, mark)) {
      fields.error(
          mark, {read_codes::duplicate_id,
                 fmt::format("there are two nodes '{}'; the first is on line {}{}", node.id, first->line,
                             first->source == mark.source ? "" : " of " + reading.findings.source_name(first->source)),
                 "give each node an id of its own"});
      return;
    }
  }
}

}  // namespace

std::vector<std::string> read_names(Reading& reading, const Fields& fields, std::string_view what,
                                    const Environment& environment, std::uint64_t most) {
  if (!fields.has("id")) {
    fields.missing("id", "write 'id: NAME'");
    return {};
  }
  const auto id = read_text(fields.find("id"), "'id'", environment, reading.findings);
  if (!id) return {};
  const auto pattern = NamePattern::parse(*id);
  const Mark mark = fields.mark_of("id");
  if (!pattern) {
    fields.error(mark, pattern.error());
    return {};
  }
  if (pattern->has_star()) {
    fields.error(mark, {read_codes::bad_range, fmt::format("the id of {} cannot hold '[*]'", what),
                        "write the numbers, such as 'gpu[0-7]', or a 'count'"});
    return {};
  }
  std::uint64_t size = pattern->size();
  const auto count = fields.integer("count", 1, static_cast<std::int64_t>(read_limits::range));
  if (fields.has("count") && !count) return {};
  if (count && id->find('[') != std::string::npos) {
    fields.error(fields.mark_of("count"),
                 {read_codes::keys_conflict, "'count' stands beside an 'id' with a range", "write one of the two"});
    return {};
  }
  if (count) size = static_cast<std::uint64_t>(*count);
  if (size > most) {
    fields.error(mark, {read_codes::too_many_nodes,
                        fmt::format("there are more than {} nodes or instances of groups", reading.limits.nodes),
                        "use smaller counts and ranges"});
    reading.budget.end();
    return {};
  }
  reading.budget.spend(size);
  if (!count) return pattern->names();
  std::vector<std::string> names;
  for (std::uint64_t i = 0; i < size; ++i) names.push_back(*id + std::to_string(i));
  return names;
}

void read_nodes(Reading& reading, const Body& body) {
  const Value nodes = reading.list_of(body, "nodes");
  for (std::size_t i = 0; nodes && i < nodes.size() && reading.step(nodes.mark()); ++i) {
    read_node_entry(reading, body, nodes.item(i));
  }
}

}  // namespace espalier
