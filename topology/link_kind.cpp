#include "topology/link_kind.h"

#include <map>
#include <string>

#include "base/check.h"

namespace espalier {

std::string_view to_string(LinkKind kind) {
  switch (kind) {
    case LinkKind::fabric: return "fabric";
    case LinkKind::pcie: return "pcie";
    case LinkKind::network: return "network";
  }
  ESPALIER_CHECK(false, "a kind of link");
}

bool is_idle(const Topology& topology, LinkId link) {
  return is_idle_gpu(topology.node(topology.link(link).tail)) || is_idle_gpu(topology.node(topology.link(link).head));
}

LinkKind kind_of(const Topology& topology, LinkId id) {
  const Link& link = topology.link(id);
  const Node &tail = topology.node(link.tail), &head = topology.node(link.head);
  const auto is_nic = [](const Node& node) { return node.kind == NodeKind::nic; };
  const auto is_switch = [](const Node& node) { return node.kind == NodeKind::switch_node; };
  const auto on_bus = [](const Node& node) { return node.kind == NodeKind::pcie || node.kind == NodeKind::cpu; };
  const auto is_called = [&](const char* name) { return link.link_class.find(name) != std::string::npos; };
  if (is_nic(tail) && is_nic(head)) return LinkKind::network;
  if (is_nic(tail) || is_nic(head)) {
    return is_switch(is_nic(tail) ? head : tail) ? LinkKind::network : LinkKind::pcie;
  }
  if (is_called("nvlink") || is_called("xgmi")) return LinkKind::fabric;
  if (on_bus(tail) || on_bus(head) || is_called("pcie")) return LinkKind::pcie;
  if (tail.host == head.host && (!tail.host.empty() || (!is_switch(tail) || !is_switch(head)))) return LinkKind::fabric;
  return LinkKind::network;
}

NvLinks nvlinks_of(const Link& link) {
  static const std::map<std::string, std::int64_t> rates = {{"nvlink1", 20'000'000'000},
                                                            {"nvlink2", 25'000'000'000},
                                                            {"nvlink3", 25'000'000'000},
                                                            {"nvlink4", 25'000'000'000},
                                                            {"nvlink5", 50'000'000'000}};
  const auto rate = rates.find(link.link_class);
  if (rate == rates.end() || link.nominal.bytes_per_second % rate->second != 0) return {};
  return {link.nominal.bytes_per_second / rate->second, {rate->second}};
}

}  // namespace espalier
