#include "cli/measured/load_response.h"

#include <algorithm>

#include "schedule/loads.h"

namespace espalier::cli {
namespace {

/// What it takes now, where it took so long at another rate.
double at_rate(double seconds, Bandwidth before, Bandwidth now) {
  if (seconds == 0 || before == now) return seconds;
  return seconds * static_cast<double>(before.bytes_per_second) / static_cast<double>(now.bytes_per_second);
}

}  // namespace

LoadResponse::LoadResponse(const Schedule& schedule, const Topology& ran_on, const Topology& machine)
    : machine_(machine), of_link_(machine.link_count()), of_node_(machine.node_count()) {
  const Loads loads = compute_loads(schedule, ran_on);
  const double bytes_of_unit =
      to_double(schedule.collective.extent()) / static_cast<double>(schedule.units);  // Of a message of a byte.
  const auto seconds = [&](UnitSum units, Bandwidth rate) {
    return units == 0 ? 0.0 : static_cast<double>(units) * bytes_of_unit / static_cast<double>(rate.bytes_per_second);
  };
  for (std::size_t i = 0; i < of_link_.size(); ++i) {
    of_link_[i] = seconds(loads.link_units[i], ran_on.link(LinkId(i)).bandwidth());
  }
  for (std::size_t i = 0; i < of_node_.size(); ++i) {
    of_node_[i] = seconds(loads.node_units[i], ran_on.node(NodeId(i)).bandwidth);
  }
  before_ = fullest(machine);
}

double LoadResponse::fullest(const Topology& faulty) const {
  double most = 0;
  for (std::size_t i = 0; i < of_link_.size(); ++i) {
    const LinkId link(i);
    most = std::max(most, at_rate(of_link_[i], machine_.link(link).bandwidth(), faulty.link(link).bandwidth()));
  }
  for (std::size_t i = 0; i < of_node_.size(); ++i) {
    const NodeId node(i);
    most = std::max(most, at_rate(of_node_[i], machine_.node(node).bandwidth, faulty.node(node).bandwidth));
  }
  return most;
}

double LoadResponse::added_per_byte(const Topology& faulty) const { return fullest(faulty) - before_; }

}  // namespace espalier::cli
