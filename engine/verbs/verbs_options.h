#pragma once

// Tested by: tests/unit/engine/verbs/verbs_device_test.cpp

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/verbs/route_rails.h"

namespace espalier::engine {

/// A device of libibverbs and one of its ports.
struct VerbsPortName {
  std::string device;
  std::uint8_t port = 0;  ///< 0: not said.
};
/// Reads NAME or NAME:PORT, as in "mlx4_0:2". Errors: invalid_input.
Result<VerbsPortName> parse_verbs_port(std::string_view text);

/// Which devices of libibverbs a rank uses, and how its queue pairs are set.
struct VerbsOptions {
  /// The rails of a rank, NAME or NAME:PORT, dealt to the ranks in turn; without any, `nics` says them.
  std::vector<std::vector<std::string>> devices;
  /// The NICs of each rank's host, by rank (nics_by_rank), for match_rails; without any, a rank has one rail: the first
  /// device with an active port.
  std::vector<std::vector<std::string>> nics;
  RailChoice choose_rails;  ///< By which rails a route goes; where it does not say, slices are dealt to them.
  std::uint8_t port = 0;    ///< Of devices that are named without one; 0: the first that is active.
  int gid_index = -1;       ///< -1: RoCE v2 with an IPv4 address if there is one.
  std::uint32_t mtu = 0;    ///< Bytes of a packet; 0: as many as both ports carry.
  std::uint8_t traffic_class = 0;
  std::uint8_t service_level = 0;
  std::uint8_t retries = 7;   ///< Of a packet that is not acknowledged.
  std::uint8_t timeout = 18;  ///< Until it is sent again: 4.096 us times two to this, so a second.
  /// Receive work that the queue pairs of a device share, enough for 256 of them at a time; a sender that finds none
  /// left tries again. 0, or a device without shared receive queues: each has its own.
  std::uint32_t shared_receives = 4096;
  std::uint32_t connections = 1;  ///< Queue pairs that a pair's transfers are dealt to, on each pair of rails.
};

/// Rails by a topology: its NICs are a rank's devices, and its routes choose between them.
inline void set_rails(VerbsOptions& options, const Topology& topology) {
  options.choose_rails = rails_by_routes(topology);
  options.nics = nics_by_rank(topology);
}

}  // namespace espalier::engine
