#include <fmt/format.h>

#include <algorithm>

#include "base/suggest.h"
#include "topology/yaml/read_codes.h"
#include "topology/yaml/read_keys.h"
#include "topology/yaml/read_limits.h"
#include "topology/yaml/reading.h"

namespace espalier {
namespace {

void read_version(Reading& reading, const Fields& fields) {
  if (!fields.has("espalier")) {
    fields.missing("espalier", "begin the file with 'espalier: 1'");
    return;
  }
  const auto version = fields.text("espalier");
  if (!version || *version == "1") return;
  reading.findings.error(
      fields.mark_of("espalier"),
      {read_codes::wrong_version, fmt::format("version '{}' of the format is not known", version->substr(0, 60)),
       "write 'espalier: 1'"});
}

/// The file's own parameters: defaults, replaced by what was passed.
void read_parameters(Reading& reading, Value map, Environment& environment, const PassedParameters& passed,
                     const Mark& passed_at) {
  const auto given = [&](std::string_view name) -> const std::string* {
    for (const auto& [passed_name, text] : passed) {
      if (passed_name == name) return &text;
    }
    return nullptr;
  };
  if (map && !map.is_map()) {
    reading.findings.error(
        map.mark(), {read_codes::wrong_type, fmt::format("'parameters' must be a map, not {}", describe(map.kind())),
                     "write names and defaults, such as {boxes: 4}"});
    return;
  }
  std::vector<std::string_view> names;
  for (std::size_t i = 0; map && i < map.size() && reading.step(map.mark()); ++i) {
    const std::string_view name = map.key(i).text();
    names.push_back(name);
    if (!is_parameter_name(name) || name == "index") {
      reading.findings.error(map.key(i).mark(),
                             {read_codes::bad_id, fmt::format("'{}' cannot be a parameter's name", name.substr(0, 60)),
                              "use letters, digits and '_', a letter first; '$index' has a meaning of its own"});
      continue;
    }
    const auto fallback =
        read_text(map.value(i), fmt::format("the parameter '{}'", name.substr(0, 60)), environment, reading.findings);
    const std::string* const text = given(name);
    if (text != nullptr || fallback) environment.set(std::string(name), text != nullptr ? *text : *fallback);
  }
  for (const auto& [name, text] : passed) {
    if (environment.has_own(name) || std::ranges::find(names, name) != names.end()) continue;
    reading.findings.error(passed_at,
                           {read_codes::unknown_parameter, fmt::format("the file has no parameter '{}'", name),
                            names.empty() ? "it has no 'parameters:' at all" : suggest(name, names)});
  }
}

bool is_in(const IncludeChain* chain, const SourceFiles::File& file) {
  for (; chain != nullptr; chain = chain->outer) {
    if (chain->file == &file || chain->file->path == file.path) return true;
  }
  return false;
}

void read_include(Reading& reading, const Body& body, Value entry) {
  std::optional<std::string> name;
  PassedParameters passed;
  if (entry.is_map()) {
    const Fields fields(entry, "an include", read_keys::include, *body.environment, reading.findings);
    name = fields.text("file");
    if (!fields.has("file")) fields.missing("file", "write 'file: NAME.yaml'");
    const Value given = fields.find("parameters");
    for (std::size_t i = 0; given && i < given.size() && given.is_map(); ++i) {
      auto text = read_text(given.value(i), "a parameter", *body.environment, reading.findings);
      if (text) passed.emplace_back(given.key(i).text(), *std::move(text));
    }
  } else {
    name = read_text(entry, "an include", *body.environment, reading.findings);
  }
  if (!name) return;
  const SourceFiles::File* const file = reading.files.include(*body.chain->file, *name, entry.mark());
  if (file == nullptr || !file->document) return;
  if (is_in(body.chain, *file)) {
    reading.findings.error(
        entry.mark(), {read_codes::include_cycle, fmt::format("'{}' includes itself in the end", name->substr(0, 200)),
                       "remove one of the includes"});
    return;
  }
  if (body.chain->length >= read_limits::include_depth) {
    reading.findings.error(entry.mark(),
                           {read_codes::include_too_deep,
                            fmt::format("files include each other more than {} deep", read_limits::include_depth),
                            "include them from fewer levels"});
    return;
  }
  read_file_body(reading, *file, *body.scope, body.chain, passed, entry.mark());
}

}  // namespace

bool Reading::step(const Mark& mark) {
  if (is_over()) return false;
  if (budget.spend(1)) return true;
  findings.error(mark,
                 {read_codes::too_much_work, "the file asks for too many steps to be expanded", "use smaller counts"});
  return false;
}

Value Reading::list_of(const Body& body, std::string_view key) {
  const Value list = body.map.find(key);
  if (!list || list.is_list()) return list;
  if (list.kind() != Value::Kind::null) {
    findings.error(list.mark(),
                   {read_codes::wrong_type, fmt::format("'{}' must be a list, not {}", key, describe(list.kind())),
                    "begin each entry with '- '"});
  }
  return {};
}

void read_includes(Reading& reading, const Body& body) {
  const Value include = body.map.find("include");
  if (!include) return;
  if (!include.is_list()) {
    read_include(reading, body, include);
    return;
  }
  for (std::size_t i = 0; i < include.size() && reading.step(include.mark()); ++i) {
    read_include(reading, body, include.item(i));
  }
}

void read_classes(Reading& reading, const Body& body) {
  const Value classes = body.map.find("classes");
  if (!classes) return;
  if (!classes.is_map()) {
    reading.findings.error(classes.mark(), {read_codes::wrong_type,
                                            fmt::format("'classes' must be a map, not {}", describe(classes.kind())),
                                            "write '  NAME: {bandwidth: ..., latency: ...}'"});
    return;
  }
  for (std::size_t i = 0; i < classes.size() && reading.step(classes.mark()); ++i) {
    const Fields fields(classes.value(i), "a link class", read_keys::link_class, *body.environment, reading.findings);
    LinkClass values = read_link_values(fields);
    values.chain = body.chain;
    const auto [entry, is_new] = body.scope->classes.emplace(classes.key(i).text(), std::move(values));
    if (is_new) continue;
    reading.findings.error(classes.key(i).mark(),
                           {read_codes::duplicate_id,
                            fmt::format("the link class '{}' is defined twice, once in an included file", entry->first),
                            "rename one of the two"});
  }
}

void read_body(Reading& reading, const Body& body) {
  read_includes(reading, body);
  read_classes(reading, body);
  read_nodes(reading, body);
  read_groups(reading, body);
  if (body.map.find("links")) reading.bodies_with_links.push_back(body);
}

void read_file_body(Reading& reading, const SourceFiles::File& file, Scope& scope, const IncludeChain* outer,
                    const PassedParameters& passed, const Mark& passed_at) {
  Environment& environment = reading.environments.emplace_back();
  const IncludeChain& chain =
      reading.chains.emplace_back(IncludeChain{&file, outer, outer == nullptr ? 1 : outer->length + 1});
  const Value root = file.document->root();
  if (is_of_another_form(root, "espalier", reading.findings)) return;
  const Fields fields(root, "a topology", read_keys::file, environment, reading.findings);
  if (!fields.is_map()) return;
  read_version(reading, fields);
  read_parameters(reading, root.find("parameters"), environment, passed, passed_at);
  read_body(reading, {root, &scope, &environment, &chain});
}

}  // namespace espalier
