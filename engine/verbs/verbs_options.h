#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace espalier::engine {

/// Which device of libibverbs a rank uses, and how its queue pairs are set.
struct VerbsOptions {
  std::vector<std::string> devices;  ///< Dealt to the ranks in turn; the first with an active port without any.
  std::uint8_t port = 0;             ///< 0: the first that is active.
  int gid_index = -1;                ///< -1: RoCE v2 with an IPv4 address if there is one.
  std::uint32_t mtu = 0;             ///< Bytes of a packet; 0: as many as both ports carry.
  std::uint8_t traffic_class = 0;
  std::uint8_t service_level = 0;
  std::uint8_t retries = 7;       ///< Of a packet that is not acknowledged.
  std::uint8_t timeout = 18;      ///< Until it is sent again: 4.096 us times two to this, so a second.
  std::uint32_t connections = 1;  ///< Queue pairs that a pair's transfers are dealt to.
};

}  // namespace espalier::engine
