#include "topology/import/nics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/disjoint_sets.h"
#include "base/format_units.h"
#include "base/suggest.h"
#include "topology/import/formats/slurm_tree.h"
#include "topology/import/lines.h"

namespace espalier {
namespace {

std::vector<std::size_t> nics_of(const Draft& machine) {
  std::vector<std::size_t> nics;
  for (std::size_t i = 0; i < machine.nodes.size(); ++i) {
    if (machine.nodes[i].kind == NodeKind::nic) nics.push_back(i);
  }
  return nics;
}

std::vector<std::string> names_of(const Draft& machine, const std::vector<std::size_t>& nodes) {
  std::vector<std::string> names;
  for (const std::size_t node : nodes) names.push_back(machine.nodes[node].id);
  return names;
}

/// NICs below no CPU, or parts of it, that have a GPU below them as well.
std::vector<std::size_t> far_nics(const Draft& machine, const std::vector<std::size_t>& nics) {
  DisjointSets sets(machine.nodes.size());
  for (const DraftLink& link : machine.links) {
    if (link.medium == Medium::pcie || link.medium == Medium::c2c) {
      sets.join(static_cast<std::uint32_t>(link.tail), static_cast<std::uint32_t>(link.head));
    }
  }
  std::set<std::uint32_t> with_gpus;
  for (std::size_t i = 0; i < machine.nodes.size(); ++i) {
    if (machine.nodes[i].kind == NodeKind::gpu) with_gpus.insert(sets.find(static_cast<std::uint32_t>(i)));
  }
  std::vector<std::size_t> far;
  for (const std::size_t nic : nics) {
    if (!with_gpus.contains(sets.find(static_cast<std::uint32_t>(nic)))) far.push_back(nic);
  }
  return with_gpus.empty() ? std::vector<std::size_t>() : far;
}

std::vector<std::size_t> slow_nics(const Draft& machine, const std::vector<std::size_t>& nics) {
  Bandwidth fastest{};
  for (const std::size_t nic : nics) {
    if (const auto& port = machine.nodes[nic].port) fastest = std::max(fastest, port->value);
  }
  std::vector<std::size_t> slow;
  for (const std::size_t nic : nics) {
    if (const auto& port = machine.nodes[nic].port; port && port->value < fastest) slow.push_back(nic);
  }
  return slow;
}

void warn_of(Draft& machine, const std::vector<std::size_t>& nics, const std::vector<std::size_t>& odd,
             const std::string& what) {
  if (odd.empty()) return;
  std::vector<std::size_t> others;
  for (const std::size_t nic : nics) {
    if (std::ranges::find(odd, nic) == odd.end()) others.push_back(nic);
  }
  const std::string rest = others.empty() ? "NAMES" : fmt::format("{}", fmt::join(names_of(machine, others), ","));
  machine.warn(import_codes::other_network, 0, listed(names_of(machine, odd)) + what + ": perhaps of another network",
               "joined to the fabric as all NICs are; --nics " + rest + " takes these alone");
}

}  // namespace

Result<void> keep_nics(Draft& machine, const std::string& list) {
  if (list.empty()) return {};
  const auto named = read_hostlist(list);
  if (!named) {
    return fail(ErrorCode::invalid_input, "--nics: " + cited(list) + " is no list of names",
                "write mlx5_[1-8] or mlx5_0,mlx5_1");
  }
  const auto nics = nics_of(machine);
  const auto known = names_of(machine, nics);
  for (const std::string& name : *named) {
    if (std::ranges::find(known, name) != known.end()) continue;
    return fail(ErrorCode::invalid_input, fmt::format("--nics: {} has no NIC {}", machine.file, cited(name)),
                known.empty() ? "it has none" : "it has " + fmt::format("{}", fmt::join(known, ", ")));
  }
  std::vector<std::size_t> place(machine.nodes.size());
  std::vector<bool> is_gone(machine.nodes.size(), false);
  std::vector<DraftNode> nodes;
  for (std::size_t i = 0; i < machine.nodes.size(); ++i) {
    is_gone[i] =
        machine.nodes[i].kind == NodeKind::nic && std::ranges::find(*named, machine.nodes[i].id) == named->end();
    place[i] = nodes.size();
    if (!is_gone[i]) nodes.push_back(std::move(machine.nodes[i]));
  }
  machine.nodes = std::move(nodes);
  std::erase_if(machine.links, [&](const DraftLink& link) { return is_gone[link.tail] || is_gone[link.head]; });
  for (DraftLink& link : machine.links) {
    link.tail = place[link.tail];
    link.head = place[link.head];
  }
  return {};
}

void warn_of_other_networks(Draft& machine) {
  const auto nics = nics_of(machine);
  const auto far = far_nics(machine, nics);
  warn_of(machine, nics, far, far.size() == 1 ? " is SYS to all GPUs" : " are SYS to all GPUs");
  const auto slow = slow_nics(machine, nics);
  warn_of(machine, nics, slow, slow.size() == 1 ? " is slower than other NICs" : " are slower than other NICs");
}

}  // namespace espalier
