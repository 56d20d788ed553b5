#include "diagnose/setting.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

namespace espalier::diagnose {
namespace {

constexpr std::string_view gpudirect_off = "GPUDirect off", nvls_off = "NVLS off", pxn_off = "PXN off";
constexpr std::string_view ring_alone = "rings alone", tree_alone = "trees alone", simple_alone = "Simple alone";

constexpr std::array settings = {
    Setting{gpudirect_off,
            "NCCL_DEBUG=INFO shows GDRDMA on each channel where it is on: look for nvidia-peermem, ACS and "
            "NCCL_NET_GDR_LEVEL"},
    Setting{nvls_off, "look for NCCL_NVLS_ENABLE=0, and whether the fabric manager runs (nvidia-smi -q, Fabric)"},
    Setting{pxn_off, "look for NCCL_PXN_DISABLE=1 in the environment and /etc/nccl.conf"},
    Setting{ring_alone, "look for NCCL_ALGO=Ring in the environment and /etc/nccl.conf, and for a tuner plug-in"},
    Setting{tree_alone, "look for NCCL_ALGO=Tree in the environment and /etc/nccl.conf, and for a tuner plug-in"},
    Setting{simple_alone, "look for NCCL_PROTO=Simple in the environment and /etc/nccl.conf, and for a tuner plug-in"}};

void halve(Link& link) {
  link.reported = link.seen_rate();
  link.nominal = {std::max<std::int64_t>(1, link.nominal.bytes_per_second / 2)};
}

/// The links from a PCIe switch up to the nearest processor, over PCIe switches; none where there is no way.
std::vector<LinkId> way_up(const Topology& machine, NodeId from) {
  std::vector<std::vector<LinkId>> ways = {{}};
  std::vector<NodeId> ends = {from};
  std::set<std::size_t> seen = {from.index()};
  for (std::size_t i = 0; i < ends.size(); ++i) {
    for (const LinkId id : machine.out_links(ends[i])) {
      const NodeId head = machine.link(id).head;
      const NodeKind kind = machine.node(head).kind;
      if ((kind != NodeKind::cpu && kind != NodeKind::pcie) || !seen.insert(head.index()).second) continue;
      std::vector<LinkId> way = ways[i];
      way.push_back(id);
      if (kind == NodeKind::cpu) return way;
      ways.push_back(std::move(way));
      ends.push_back(head);
    }
  }
  return {};
}

Result<Topology> without_gpudirect(const Topology& machine) {
  std::vector<Link> links(machine.links().begin(), machine.links().end());
  std::set<std::size_t> halved;
  bool is_changed = false;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const Link& link = machine.link(LinkId(i));
    const NodeKind tail = machine.node(link.tail).kind, head = machine.node(link.head).kind;
    const bool of_gpu = tail == NodeKind::gpu || head == NodeKind::gpu;
    const bool of_nic = tail == NodeKind::nic || head == NodeKind::nic;
    if (of_gpu && of_nic) halved.insert(i);
    const bool of_switch = tail == NodeKind::pcie || head == NodeKind::pcie;
    if (!of_nic || !of_switch) continue;
    NodeId& end = tail == NodeKind::pcie ? links[i].tail : links[i].head;
    const std::vector<LinkId> way = way_up(machine, end);
    if (way.empty()) continue;
    for (const LinkId up : way) {
      halved.insert(up.index());
      for (const LinkId down : machine.links_between(machine.link(up).head, machine.link(up).tail)) {
        halved.insert(down.index());
      }
    }
    end = machine.link(way.back()).head;
    is_changed = true;
  }
  if (!is_changed && halved.empty()) {
    return fail(ErrorCode::infeasible,
                fmt::format("{} has no way from a GPU to a NIC without its host", machine.name()));
  }
  for (const std::size_t i : halved) halve(links[i]);
  return Topology::make(machine.name(), {machine.nodes().begin(), machine.nodes().end()}, std::move(links));
}

Result<Topology> without_nvls(const Topology& machine) {
  std::vector<Node> nodes(machine.nodes().begin(), machine.nodes().end());
  bool is_changed = false;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const bool is_of_gpus = std::ranges::all_of(machine.out_links(NodeId(i)), [&](LinkId link) {
      return machine.node(machine.link(link).head).kind == NodeKind::gpu;
    });
    if (!is_of_gpus || (!nodes[i].multicast && !nodes[i].reduction)) continue;
    nodes[i].multicast = nodes[i].reduction = false;
    is_changed = true;
  }
  if (!is_changed) return fail(ErrorCode::infeasible, fmt::format("{} has no NVLS", machine.name()));
  return Topology::make(machine.name(), std::move(nodes), {machine.links().begin(), machine.links().end()});
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

std::span<const Setting> nccl_settings() { return settings; }

Result<Topology> with_setting(const Topology& machine, std::string_view name) {
  if (std::ranges::find(settings, name, &Setting::name) == settings.end()) {
    return fail(ErrorCode::invalid_input, fmt::format("'{}' is no setting", name));
  }
  if (name != gpudirect_off && name != nvls_off) return machine;
  auto changed = name == gpudirect_off ? without_gpudirect(machine) : without_nvls(machine);
  return changed ? std::move(*changed).as_altered(machine) : std::move(changed);
}

bool is_of_machine(const Fault& fault) {
  return fault.kind == Fault::Kind::setting && is_one_of(fault.part, {gpudirect_off, nvls_off});
}

Question with_settings(Question question, std::span<const Fault> faults) {
  if (question.algorithm != "nccl") return question;
  const std::string& collective = question.collective;
  for (const Fault& fault : faults) {
    if (fault.kind != Fault::Kind::setting) continue;
    const bool sends = is_one_of(collective, {"all_to_all", "gather", "scatter", "send_recv"});
    if (fault.part == pxn_off && sends) question.algorithm = "nccl/p2p";
    if (fault.part == ring_alone && !sends) question.algorithm = "nccl/ring";
    if (fault.part == tree_alone && collective == "all_reduce") question.algorithm = "nccl/tree";
    if (fault.part == simple_alone) question.protocol = "simple";
  }
  return question;
}

}  // namespace espalier::diagnose
