#pragma once

// Tested by: tests/unit/lab/wiring_test.cpp

#include <string>
#include <vector>

#include "base/result.h"
#include "lab/addresses.h"
#include "lab/namespaces/job_name.h"
#include "lab/shaping.h"
#include "topology/cables.h"
#include "topology/topology.h"

namespace espalier::lab {

/// The texts that make a lab, for ip(8) and tc(8), and nothing else: what is done with them is network.cpp's business.
///
/// Every node has a namespace. Every cable is a pair of devices "cK" (K its number), one at each end, with the same
/// name and the same made-up hardware address; as they resolve no addresses (arp off), a packet needs no neighbour's
/// answer to cross. A cable's directions are shaped at the ends they leave from; a link without a way back gets one
/// that is not shaped and carries acknowledgements only. A hub namespace, joined to each rank by an unshaped pair "m",
/// passes control traffic on.
class Wiring {
 public:
  Wiring(const Topology& topology, JobName job);

  [[nodiscard]] std::string name_space(NodeId node) const;
  [[nodiscard]] std::string hub() const;
  [[nodiscard]] std::vector<std::string> name_spaces() const;
  /// The device that carries a link, at both of its ends.
  [[nodiscard]] std::string device(LinkId link) const;

  /// `ip -batch`: all namespaces and all pairs of devices.
  [[nodiscard]] std::string creation_lines(const Framing& framing) const;
  /// `ip -n NODE -batch`: devices up, addresses, control routes.
  [[nodiscard]] std::string node_lines(NodeId node, const AddressPlan& addresses) const;
  [[nodiscard]] std::string hub_lines(const AddressPlan& addresses) const;
  /// `tc -n NODE -batch`: the shapes of all links that leave a node.
  [[nodiscard]] std::string shaping_lines(NodeId node, const Framing& framing) const;

 private:
  const Topology* topology_;
  JobName job_;
  std::vector<Cable> cables_;
  std::vector<std::size_t> cable_of_;  ///< By link.
};

/// Where the gateway of every static route is: nowhere, for no device resolves addresses.
inline constexpr const char* gateway = "169.254.0.1";

}  // namespace espalier::lab
