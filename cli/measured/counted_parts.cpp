#include "cli/measured/counted_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "topology/cables.h"
#include "topology/link_kind.h"
#include "topology/without.h"

namespace espalier::cli {
namespace {

/// A worn cable counts errors, but so do some that are well; one that is down or slow carries less for certain.
constexpr double with_errors = 30, when_slower = 100;

/// The nodes of a kind of a host, in the machine's order; of all where no host is named.
std::vector<NodeId> nodes_of(const Topology& machine, NodeKind kind, const std::string& host) {
  std::vector<NodeId> nodes;
  for (std::size_t i = 0; i < machine.node_count(); ++i) {
    const Node& node = machine.node(NodeId(i));
    if (node.kind == kind && (host.empty() || node.host == host)) nodes.emplace_back(i);
  }
  return nodes;
}

std::set<std::string> hosts_of(const Topology& machine) {
  std::set<std::string> hosts;
  for (const Node& node : machine.nodes()) {
    if (!node.host.empty()) hosts.insert(node.host);
  }
  return hosts;
}

/// The cables of a kind that meet a node.
std::vector<std::string> cables_at(const Topology& machine, NodeId node, LinkKind kind) {
  std::vector<std::string> names;
  for (const Cable& cable : find_cables(machine)) {
    const Link& link = machine.link(cable.there);
    const bool meets = link.tail == node || link.head == node;
    if (meets && kind_of(machine, cable.there) == kind) names.push_back(cable_name(machine, cable));
  }
  return names;
}

/// The number that a name ends in; of "HCA-1", which counts from 1, one less.
std::optional<std::size_t> number_of(const std::string& device) {
  const std::size_t digits = device.find_last_not_of("0123456789") + 1;
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(device.data() + digits, device.data() + device.size(), number);
  if (error != std::errc()) return std::nullopt;
  if (!device.starts_with("HCA-")) return number;
  return number > 0 ? std::optional(number - 1) : std::nullopt;
}

/// The node that a device's name means: of that name, or "HOST mlx5_N", "HOST/mlx5_N".
NodeId node_named(const Topology& machine, const std::string& device) {
  if (const NodeId node = machine.find_node(device); !node.is_none()) return node;
  const std::size_t end = device.find_first_of(" /");
  if (end == std::string::npos) return {};
  const auto nics = nodes_of(machine, NodeKind::nic, device.substr(0, end));
  const auto number = number_of(device.substr(end + 1));
  return number && *number < nics.size() ? nics[*number] : NodeId();
}

}  // namespace

OrStop<CountedParts> find_counted_parts(const Topology& machine, std::span<const compare::PortTrouble> troubles,
                                        const std::string& at, const std::string& file) {
  CountedParts all;
  std::vector<CountedPart>& found = all.parts;
  const auto add = [&](const std::string& part, const compare::PortTrouble& trouble) {
    const double likelier = trouble.is_slower ? when_slower : with_errors;
    const auto known = std::ranges::find(found, part, &CountedPart::part);
    if (known == found.end()) {
      found.push_back({part, trouble.says, likelier});
    } else if (likelier > known->likelier) {
      *known = {part, trouble.says, likelier};
    }
  };
  const auto leave_out = [&](const std::string& device) {
    if (std::ranges::find(all.unknown, device) == all.unknown.end()) all.unknown.push_back(device);
  };
  const std::set<std::string> hosts = hosts_of(machine);
  const auto of_host = [&](const std::string& what, const std::string& example) {
    return usage({ErrorCode::invalid_input, fmt::format("{} does not say {}", file, what),
                  fmt::format("write {}@{}", file, example)});
  };
  for (const compare::PortTrouble& trouble : troubles) {
    NodeId node;
    if (trouble.gpu) {
      if (hosts.size() > 1 && !hosts.contains(at)) return of_host("of which host its GPUs are", *hosts.begin());
      const auto gpus = nodes_of(machine, NodeKind::gpu, hosts.size() > 1 ? at : "");
      if (*trouble.gpu >= gpus.size()) {
        leave_out(fmt::format("GPU {}", *trouble.gpu));
        continue;
      }
      for (const std::string& cable : cables_at(machine, gpus[*trouble.gpu], LinkKind::fabric)) add(cable, trouble);
      continue;
    }
    if (!trouble.device.empty()) {
      node = node_named(machine, trouble.device);
      if (node.is_none()) {
        leave_out(trouble.device);
        continue;
      }
    } else {
      const auto parts = find_parts(machine, at);
      if (at.empty() || !parts) return of_host("of which part its port is", "NIC");
      node = machine.find_node(at);
    }
    add(node.is_none() ? at : machine.node(node).id, trouble);
    if (node.is_none() || machine.node(node).kind != NodeKind::nic) continue;
    for (const std::string& cable : cables_at(machine, node, LinkKind::network)) add(cable, trouble);
  }
  return all;
}

void set_apart(std::vector<diagnose::FaultClass>& classes, std::span<const CountedPart> counted) {
  for (const CountedPart& part : counted) {
    const auto has_it = [&](const diagnose::FaultClass& each) {
      return std::ranges::find(each.parts, part.part) != each.parts.end();
    };
    const auto of = std::ranges::find_if(classes, has_it);
    if (of == classes.end()) continue;
    diagnose::FaultClass own = *of;
    own.likelier = part.likelier;
    own.counters = part.says;
    own.parts = {part.part};
    std::erase(of->parts, part.part);
    if (of->parts.empty()) {
      *of = std::move(own);
    } else {
      classes.push_back(std::move(own));
    }
  }
}

}  // namespace espalier::cli
