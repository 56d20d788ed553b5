#include "schedule/json/plan_routes.h"

#include <fmt/format.h>

#include "schedule/relays.h"

namespace espalier {

bool PlanRoutes::read(std::size_t offset, std::string_view text, Rank src, Rank dst, RouteId& route) {
  const auto [found, is_new] = known_.try_emplace(Key{text, src, dst});
  if (is_new) {
    const std::size_t back = cursor_.json.next_offset();
    cursor_.json.seek(offset);
    if (!resolve(offset)) return false;
    cursor_.json.seek(back);
    found->second = schedule_.add_route(src, dst, links_);
  }
  route = found->second;
  return true;
}

bool PlanRoutes::direct(std::size_t offset, Rank src, Rank dst, RouteId& route) {
  const std::vector<LinkId> links =
      topology_.links_between(node_of_end(schedule_, topology_, src), node_of_end(schedule_, topology_, dst));
  if (links.size() == 1) {
    route = schedule_.add_route(src, dst, links);
    return true;
  }
  return cursor_.json.fail(
      offset,
      fmt::format("it has no route, and {} links go from '{}' to '{}'",
                  links.empty() ? "no" : std::to_string(links.size()), shown(end_name(schedule_, topology_, src)),
                  shown(end_name(schedule_, topology_, dst))),
      "give a route, as a list of node or link names");
}

bool PlanRoutes::resolve(std::size_t offset) {
  links_.clear();
  at_ = NodeId();
  at_node_name_ = false;
  if (!cursor_.json.begin_array()) return false;
  std::string_view name;
  while (cursor_.json.next_element()) {
    const std::size_t begin = cursor_.json.next_offset();
    if (!cursor_.json.read_string(name) || !add_name(begin, name)) return false;
  }
  if (cursor_.json.failed()) return false;
  if (links_.empty()) {
    return cursor_.json.fail(offset, "its route has no links", "name the nodes from the source to the destination");
  }
  return true;
}

bool PlanRoutes::add_name(std::size_t offset, std::string_view name) {
  const NodeId node = topology_.find_node(name);
  if (!node.is_none()) {
    const bool first_or_known = at_.is_none() || (at_ == node && !at_node_name_);
    if (!first_or_known && !add_hop(offset, at_, node)) return false;
    at_ = node;
    at_node_name_ = true;
    return true;
  }
  const LinkId link = topology_.find_link(name);
  if (link.is_none()) {
    return cursor_.json.fail(
        offset, fmt::format("'{}' is neither a node nor a link of '{}'", shown(name), shown(topology_.name())),
        "name a node, a link as 'a>b', or one of several links as 'a>b#0'");
  }
  links_.push_back(link);
  at_ = topology_.link(link).head;
  at_node_name_ = false;
  return true;
}

bool PlanRoutes::add_hop(std::size_t offset, NodeId from, NodeId to) {
  const std::vector<LinkId> links = topology_.links_between(from, to);
  if (links.size() == 1) {
    links_.push_back(links.front());
    return true;
  }
  const std::string ends =
      fmt::format("from '{}' to '{}'", shown(topology_.node(from).id), shown(topology_.node(to).id));
  if (links.empty()) {
    return cursor_.json.fail(offset, fmt::format("no link goes {}", ends), "name every node that the message passes");
  }
  return cursor_.json.fail(
      offset, fmt::format("{} links go {}", links.size(), ends),
      fmt::format("name the one that is meant, as '{}'", shown(topology_.link_name(links.front()))));
}

}  // namespace espalier
