#include "experts/machine_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "base/counted.h"

namespace espalier::experts {
namespace {

constexpr std::size_t no_box = static_cast<std::size_t>(-1);

/// The box of every node: what is joined without a NIC. NICs have the box that a link of theirs leads to.
std::vector<std::size_t> boxes_of(const Topology& topology) {
  std::vector<std::size_t> box(topology.node_count(), no_box);
  std::vector<NodeId> open;
  std::size_t count = 0;
  for (std::size_t first = 0; first < topology.node_count(); ++first) {
    if (box[first] != no_box || topology.nodes()[first].kind == NodeKind::nic) continue;
    box[first] = count;
    open.push_back(NodeId(first));
    while (!open.empty()) {
      const NodeId node = open.back();
      open.pop_back();
      for (const LinkId id : topology.out_links(node)) {
        const NodeId next = topology.link(id).head;
        if (box[next.index()] != no_box || topology.node(next).kind == NodeKind::nic) continue;
        box[next.index()] = count;
        open.push_back(next);
      }
    }
    ++count;
  }
  return box;
}

/// Bytes per second that NICs of a box send out of it.
double rate_out(const Topology& topology, const std::vector<std::size_t>& box, std::size_t of) {
  double rate = 0;
  for (std::size_t node = 0; node < topology.node_count(); ++node) {
    if (topology.nodes()[node].kind != NodeKind::nic) continue;
    double in = 0, out = 0;
    for (const LinkId id : topology.in_links(NodeId(node))) {
      const Link& link = topology.link(id);
      if (box[link.tail.index()] == of) in += static_cast<double>(link.bandwidth().bytes_per_second);
    }
    for (const LinkId id : topology.out_links(NodeId(node))) {
      const Link& link = topology.link(id);
      if (box[link.head.index()] != of) out += static_cast<double>(link.bandwidth().bytes_per_second);
    }
    rate += std::min(in, out);
  }
  return rate;
}

/// Adds the links of a rank into its box: to GPUs and switches alone, or also over PCIe and CPUs.
void add_links(const Topology& topology, NodeId rank, MachineRates& rates, bool are_fast) {
  for (const LinkId id : topology.out_links(rank)) {
    const Link& link = topology.link(id);
    const NodeKind kind = topology.node(link.head).kind;
    if (kind == NodeKind::nic || (are_fast && (kind == NodeKind::pcie || kind == NodeKind::cpu))) continue;
    rates.link_rate += static_cast<double>(link.bandwidth().bytes_per_second);
    if (rates.link_latency == 0) rates.link_latency = 2 * link.latency.seconds();
  }
}

}  // namespace

Result<MachineRates> find_rates(const Topology& topology, std::size_t ranks) {
  if (ranks > topology.rank_count()) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{} has {}, not {}", topology.name(), counted(topology.rank_count(), "rank"), ranks),
                "take a machine of more boxes, such as dgx-h200-cluster -p boxes=8");
  }
  MachineRates rates;
  rates.ranks = ranks == 0 ? topology.rank_count() : ranks;
  const std::vector<std::size_t> box = boxes_of(topology);
  std::vector<std::size_t> members(topology.node_count(), 0);
  for (std::size_t rank = 0; rank < rates.ranks; ++rank) {
    ++members[box[topology.node_of(Rank(rank)).index()]];
  }
  std::erase(members, 0U);
  rates.boxes = members.size();
  if (std::ranges::adjacent_find(members, std::not_equal_to{}) != members.end()) {
    return fail(ErrorCode::unsupported,
                fmt::format("{} do not fill boxes of {} alike", counted(rates.ranks, "rank"), topology.name()),
                "take whole boxes (--first, --ranks)");
  }
  const NodeId first = topology.node_of(Rank(0));
  add_links(topology, first, rates, true);
  if (rates.link_rate == 0) add_links(topology, first, rates, false);
  if (rates.ranks_per_box() > 1 && rates.link_rate == 0) {
    return fail(ErrorCode::unsupported, fmt::format("{} has no link within its box", topology.rank_name(Rank(0))), {});
  }
  if (rates.boxes > 1) {
    const std::size_t own = box[first.index()];
    std::size_t sharers = 0;  // GPUs that take no part have their share of NICs
    for (std::size_t node = 0; node < topology.node_count(); ++node) {
      if (box[node] == own && (topology.nodes()[node].is_rank || topology.nodes()[node].kind == NodeKind::gpu))
        ++sharers;
    }
    rates.nic_rate = rate_out(topology, box, own) / static_cast<double>(sharers);
    if (rates.nic_rate == 0) {
      return fail(ErrorCode::unsupported, fmt::format("{} has boxes without NICs between them", topology.name()), {});
    }
  }
  return rates;
}

}  // namespace espalier::experts
