#include "diagnose/fault_classes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "planners/damage/alike.h"
#include "planners/damage/failures.h"
#include "topology/cables.h"
#include "topology/names/name_list.h"
#include "topology/without.h"

namespace espalier::diagnose {
namespace {

/// What each test says a part is like: parts of one signature are alike in all of them.
using Signature = std::vector<std::uint32_t>;

constexpr std::uint32_t unused = 0xffffffff;  ///< Of cables that a test's network does not have.

/// Classes in the order of their first parts.
class Classes {
 public:
  void add(const std::string& group, const Signature& signature, std::string part, const std::string& what,
           bool may_be_gone) {
    const auto [place, is_new] = index_.emplace(std::pair(group, signature), classes_.size());
    if (is_new) classes_.push_back({{}, what, may_be_gone});
    classes_[place->second].parts.push_back(std::move(part));
  }
  std::vector<FaultClass> take() && { return std::move(classes_); }

 private:
  std::map<std::pair<std::string, Signature>, std::size_t> index_;
  std::vector<FaultClass> classes_;
};

void add_hosts(Classes& classes, const Topology& machine, const std::vector<Signature>& of_node) {
  std::map<std::string, std::vector<Signature>> hosts;
  for (std::size_t i = 0; i < machine.node_count(); ++i) {
    if (const std::string& host = machine.node(NodeId(i)).host; !host.empty()) hosts[host].push_back(of_node[i]);
  }
  if (hosts.size() < 2) return;
  for (auto& [host, nodes] : hosts) {
    if (nodes.size() < 2) continue;  // Its one node stands for it.
    std::ranges::sort(nodes);
    Signature all;
    for (const Signature& node : nodes) all.insert(all.end(), node.begin(), node.end());
    classes.add("host", all, host, "host", false);
  }
}

/// The NICs of one number in every host: what has its own switch or setting in a cluster with rails.
void add_rails(Classes& classes, const Topology& machine, const std::vector<Signature>& of_node) {
  std::map<std::string, std::vector<std::size_t>> nics;
  for (std::size_t i = 0; i < machine.node_count(); ++i) {
    const Node& node = machine.node(NodeId(i));
    if (node.kind == NodeKind::nic && !node.host.empty()) nics[node.host].push_back(i);
  }
  const std::size_t rails = nics.empty() ? 0 : nics.begin()->second.size();
  const auto has_as_many = [&](const auto& host) { return host.second.size() == rails; };
  if (nics.size() < 2 || rails < 2 || !std::ranges::all_of(nics, has_as_many)) return;
  for (std::size_t rail = 0; rail < rails; ++rail) {
    std::vector<std::string> names;
    Signature all;
    for (const auto& [host, of_host] : nics) {
      const std::size_t nic = of_host[rail];
      names.push_back(machine.node(NodeId(nic)).id);
      all.insert(all.end(), of_node[nic].begin(), of_node[nic].end());
    }
    const std::string name = summarize_names(names);
    const auto parts = find_parts(machine, name);
    if (parts && parts->nodes.size() == names.size()) classes.add("rail", all, name, "rail", false);
  }
}

/// Every class of several links, each a class of its own.
void add_link_classes(Classes& classes, const Topology& machine) {
  std::map<std::string, std::size_t> count;
  for (const Link& link : machine.links()) {
    if (!link.link_class.empty()) ++count[link.link_class];
  }
  std::uint32_t number = 0;
  for (const auto& [name, links] : count) {
    constexpr std::size_t links_of_cable = 2;
    if (links <= links_of_cable || !machine.find_node(name).is_none()) continue;
    classes.add("links", {number++}, name, fmt::format("all {} links", name), false);
  }
}

}  // namespace

std::vector<FaultClass> find_fault_classes(std::span<const Topology> tested) {
  const Topology& machine = tested.front();
  const std::vector<Cable> cables = find_cables(machine);
  std::vector<Signature> of_node(machine.node_count()), of_cable(cables.size());
  for (const Topology& test : tested) {
    // By name: a group's network may have fewer links than the machine's.
    const std::vector<Cable> of_test = find_cables(test);
    const planners::Alike alike = planners::find_alike(test, of_test);
    std::map<std::string, std::uint32_t> by_name;
    for (std::size_t i = 0; i < of_test.size(); ++i) by_name.emplace(cable_name(test, of_test[i]), alike.of_cable[i]);
    for (std::size_t i = 0; i < of_node.size(); ++i) of_node[i].push_back(alike.of_node[i]);
    for (std::size_t i = 0; i < of_cable.size(); ++i) {
      const auto found = by_name.find(cable_name(machine, cables[i]));
      of_cable[i].push_back(found == by_name.end() ? unused : found->second);
    }
  }
  Classes classes;
  for (std::size_t i = 0; i < cables.size(); ++i) {
    classes.add("cable", of_cable[i], cable_name(machine, cables[i]), planners::cable_kind_text(machine, cables[i]),
                true);
  }
  for (std::size_t i = 0; i < machine.node_count(); ++i) {
    const Node& node = machine.node(NodeId(i));
    const bool is_needed =
        std::ranges::any_of(tested, [&](const Topology& test) { return test.node(NodeId(i)).is_rank; });
    classes.add("node", of_node[i], node.id, std::string(to_string(node.kind)), !is_needed);
  }
  add_hosts(classes, machine, of_node);
  add_rails(classes, machine, of_node);
  add_link_classes(classes, machine);
  return std::move(classes).take();
}

}  // namespace espalier::diagnose
