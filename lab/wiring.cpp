#include "lab/wiring.h"

#include <fmt/format.h>

namespace espalier::lab {
namespace {

constexpr const char* control_device = "m";

/// A locally administered hardware address.
std::string hardware_address(std::size_t cable) {
  constexpr std::size_t byte = 0xFF;
  return fmt::format("02:65:{:02x}:{:02x}:{:02x}:{:02x}", (cable >> 24U) & byte, (cable >> 16U) & byte,
                     (cable >> 8U) & byte, cable & byte);
}

std::string pair_line(const std::string& one_space, const std::string& one_device, const std::string& other_space,
                      const std::string& other_device, std::size_t number, std::int64_t packet) {
  const std::string address = hardware_address(number);
  return fmt::format("link add name {} mtu {} address {} netns {} type veth peer name {} mtu {} address {} netns {}\n",
                     one_device, packet, address, one_space, other_device, packet, address, other_space);
}

std::string up_line(const std::string& device) { return fmt::format("link set dev {} arp off up\n", device); }

std::string hub_device(std::size_t rank) { return fmt::format("{}{}", control_device, rank); }

}  // namespace

Wiring::Wiring(const Topology& topology, JobName job)
    : topology_(&topology), job_(job), cables_(find_cables(topology)), cable_of_(topology.link_count()) {
  for (std::size_t cable = 0; cable < cables_.size(); ++cable) {
    cable_of_[cables_[cable].there.index()] = cable;
    if (!cables_[cable].back.is_none()) cable_of_[cables_[cable].back.index()] = cable;
  }
}

std::string Wiring::name_space(NodeId node) const { return fmt::format("{}-n{}", job_.prefix(), node.value()); }

std::string Wiring::hub() const { return job_.prefix() + "-hub"; }

std::vector<std::string> Wiring::name_spaces() const {
  std::vector<std::string> names;
  for (std::size_t node = 0; node < topology_->node_count(); ++node) names.push_back(name_space(NodeId(node)));
  names.push_back(hub());
  return names;
}

std::string Wiring::device(LinkId link) const { return fmt::format("c{}", cable_of_[link.index()]); }

std::string Wiring::creation_lines(const Framing& framing) const {
  std::string lines;
  for (const std::string& name : name_spaces()) lines += fmt::format("netns add {}\n", name);
  for (const Cable& cable : cables_) {
    const Link& link = topology_->link(cable.there);
    const std::string name = device(cable.there);
    lines += pair_line(name_space(link.tail), name, name_space(link.head), name, cable_of_[cable.there.index()],
                       framing.packet);
  }
  for (std::size_t rank = 0; rank < topology_->rank_count(); ++rank) {
    lines += pair_line(name_space(topology_->node_of(Rank(rank))), control_device, hub(), hub_device(rank),
                       cables_.size() + rank, framing.packet);
  }
  return lines;
}

std::string Wiring::node_lines(NodeId node, const AddressPlan& addresses) const {
  std::string lines = "link set dev lo up\n";
  for (const LinkId link : topology_->out_links(node)) lines += up_line(device(link));
  for (const LinkId link : topology_->in_links(node)) {
    // A link without a way back has its device here, too.
    const Cable& cable = cables_[cable_of_[link.index()]];
    if (cable.back.is_none()) lines += up_line(device(link));
  }
  const Rank rank = topology_->rank_of(node);
  if (rank.is_none()) return lines;
  lines += up_line(control_device);
  lines += fmt::format("addr add {}/32 dev {}\n", addresses.control_address(rank), control_device);
  lines += fmt::format("route add 172.16.0.0/12 via {} dev {} onlink\n", gateway, control_device);
  // All of the range is local: a socket binds to any address of it, without one being added for each route.
  lines += fmt::format("route add local {} dev lo\n", addresses.range_of(rank));
  return lines;
}

std::string Wiring::hub_lines(const AddressPlan& addresses) const {
  std::string lines = fmt::format("link set dev lo up\naddr add {}/32 dev lo\n", AddressPlan::hub_address());
  for (std::size_t rank = 0; rank < topology_->rank_count(); ++rank) {
    lines += up_line(hub_device(rank));
    lines += fmt::format("route add {}/32 via {} dev {} onlink\n", addresses.control_address(Rank(rank)), gateway,
                         hub_device(rank));
  }
  return lines;
}

std::string Wiring::shaping_lines(NodeId node, const Framing& framing) const {
  std::string lines;
  for (const LinkId id : topology_->out_links(node)) {
    const Link& link = topology_->link(id);
    lines += lab::shaping_lines(device(id), shape_link(link.bandwidth(), link.latency, framing));
  }
  return lines;
}

}  // namespace espalier::lab
