#include "topology/yaml/scopes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/suggest.h"
#include "topology/yaml/read_codes.h"
#include "topology/yaml/read_limits.h"

namespace espalier {
namespace {

Problem too_much_work() {
  return {read_codes::too_much_work, "the file asks for too many names to be looked up",
          "use fewer '[*]', or fewer groups"};
}

}  // namespace

bool Budget::spend(std::uint64_t steps) {
  used_ += steps;
  if (used_ > steps_) spent_ = true;
  return !spent_;
}

std::optional<Mark> NodeTable::add(Node node, const Mark& mark) {
  const auto [entry, is_new] = by_id_.emplace(node.id, static_cast<std::uint32_t>(nodes_.size()));
  if (!is_new) return marks_[entry->second];
  nodes_.push_back(std::move(node));
  marks_.push_back(mark);
  return std::nullopt;
}

std::optional<std::uint32_t> NodeTable::find(const Scope& scope, const std::string& name) const {
  const auto found = by_id_.find(scope.prefix + name);
  if (found == by_id_.end()) return std::nullopt;
  return found->second;
}

Problem NodeTable::unknown(std::string_view name, const Scope& scope) const {
  constexpr std::uint32_t max_compared = 10'000;
  constexpr std::size_t max_listed = 12;
  std::vector<std::string_view> known;
  std::vector<std::string_view> alike;  // the same but for the numbers
  const std::string shape = NamePattern::shape_of(name);
  for (const Scope* place = &scope; place != nullptr; place = place->outer) {
    const std::uint32_t end = std::min(place->end_node, place->first_node + max_compared);
    for (std::uint32_t i = place->first_node; i < end; ++i) {
      const std::string_view local = std::string_view(nodes_[i].id).substr(place->prefix.size());
      if (local.size() <= 64) known.push_back(local);
      if (shape.find('#') != std::string::npos && NamePattern::shape_of(local) == shape) alike.push_back(local);
    }
  }
  std::string help;
  if (nodes_.empty()) {
    help = "list the nodes under 'nodes:'";
  } else if (alike.size() > 1) {
    help = fmt::format("there are {} such nodes, '{}' to '{}'", alike.size(), alike.front(), alike.back());
  } else {
    help = suggest(name, known);
    const bool is_long_list = !help.starts_with("did you mean") && known.size() > max_listed;
    if (is_long_list) help = fmt::format("name one of the {} nodes, such as '{}'", nodes_.size(), known.front());
  }
  return {read_codes::unknown_node, fmt::format("there is no node '{}'", name.substr(0, 80)), std::move(help)};
}

void NodeTable::index_shapes(const Scope& scope) const {
  if (!scope.by_shape.empty()) return;
  for (std::uint32_t i = scope.first_node; i < scope.end_node; ++i) {
    const std::string_view local = std::string_view(nodes_[i].id).substr(scope.prefix.size());
    scope.by_shape[NamePattern::shape_of(local)].push_back(i);
  }
}

tl::expected<std::vector<std::uint32_t>, Problem> NodeTable::resolve_star(const NamePattern& pattern,
                                                                          std::string_view written, const Scope& scope,
                                                                          Budget& budget) const {
  const std::string shape = pattern.shape();
  std::vector<std::uint32_t> matches;
  for (const Scope* place = &scope; place != nullptr && matches.empty(); place = place->outer) {
    if (place->by_shape.empty() && !budget.spend(place->end_node - place->first_node)) {
      return tl::unexpected(too_much_work());
    }
    index_shapes(*place);
    const auto candidates = place->by_shape.find(shape);
    if (candidates == place->by_shape.end()) continue;
    if (!budget.spend(candidates->second.size())) return tl::unexpected(too_much_work());
    for (const std::uint32_t i : candidates->second) {
      if (pattern.matches(std::string_view(nodes_[i].id).substr(place->prefix.size()))) matches.push_back(i);
    }
  }
  if (matches.empty()) return tl::unexpected(unknown(written, scope));
  return matches;
}

tl::expected<std::vector<std::uint32_t>, Problem> NodeTable::resolve(const NamePattern& pattern,
                                                                     std::string_view written, const Scope& scope,
                                                                     Budget& budget) const {
  if (pattern.has_star()) return resolve_star(pattern, written, scope, budget);
  if (!budget.spend(pattern.size())) return tl::unexpected(too_much_work());
  const std::vector<std::string> names = pattern.names();
  const Scope* place = &scope;
  while (place != nullptr && !find(*place, names.front())) place = place->outer;
  if (place == nullptr) return tl::unexpected(unknown(names.front(), scope));
  std::vector<std::uint32_t> found;
  found.reserve(names.size());
  for (const std::string& name : names) {
    const auto node = find(*place, name);
    if (!node) return tl::unexpected(unknown(name, *place));
    found.push_back(*node);
  }
  return found;
}

}  // namespace espalier
