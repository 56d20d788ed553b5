#include <fmt/format.h>

#include "topology/names/node_id.h"
#include "topology/yaml/read_codes.h"
#include "topology/yaml/read_keys.h"
#include "topology/yaml/read_limits.h"
#include "topology/yaml/reading.h"

namespace espalier {
namespace {

/// "box" of "box[0-7]": the parameter that tells an instance its own number.
std::string_view base_name(std::string_view id) { return id.substr(0, id.find('[')); }

void read_instance(Reading& reading, const Body& body, Value entry, const std::string& name, std::string_view base,
                   std::size_t number, bool is_host) {
  Scope& scope = reading.scopes.emplace_back();
  scope.outer = body.scope;
  scope.prefix = body.scope->prefix + name + ".";
  scope.depth = body.scope->depth + 1;
  scope.host = is_host ? body.scope->prefix + name : body.scope->host;
  scope.first_node = static_cast<std::uint32_t>(reading.nodes.size());
  Environment& environment = reading.environments.emplace_back(body.environment);
  if (is_parameter_name(base)) environment.set(std::string(base), std::to_string(number));
  read_body(reading, {entry, &scope, &environment, body.chain});
  scope.end_node = static_cast<std::uint32_t>(reading.nodes.size());
}

void read_group(Reading& reading, const Body& body, Value entry) {
  const Fields fields(entry, "a group", read_keys::group, *body.environment, reading.findings);
  if (!fields.is_map()) return;
  if (body.scope->depth >= read_limits::group_depth) {
    fields.error(fields.mark(),
                 {read_codes::too_deep,
                  fmt::format("groups stand inside each other more than {} deep", read_limits::group_depth),
                  "use fewer levels of groups"});
    return;
  }
  const std::uint64_t instances = reading.scopes.size() - 1;  // the first scope is the file
  const std::uint64_t room = reading.limits.nodes - std::min(instances, reading.limits.nodes);
  const std::vector<std::string> names = read_names(reading, fields, "a group", *body.environment, room);
  const bool is_host = fields.boolean("host").value_or(false);
  const std::string id = fields.text("id").value_or("");
  for (std::size_t i = 0; i < names.size() && reading.step(fields.mark()); ++i) {
    if (const std::string_view why = why_bad_node_id(body.scope->prefix + names[i]); !why.empty()) {
      fields.error(fields.mark_of("id"),
                   {read_codes::bad_id, fmt::format("the group id '{}' {}", names[i].substr(0, 60), why),
                    "use letters, digits, '-' and '_'"});
      return;
    }
    read_instance(reading, body, entry, names[i], base_name(id), i, is_host);
  }
}

}  // namespace

void read_groups(Reading& reading, const Body& body) {
  const Value groups = reading.list_of(body, "groups");
  for (std::size_t i = 0; groups && i < groups.size() && reading.step(groups.mark()); ++i) {
    read_group(reading, body, groups.item(i));
  }
}

}  // namespace espalier
