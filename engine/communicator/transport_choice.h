#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace espalier {

/// How the ranks may reach each other. `automatic` takes shared memory within a machine and TCP between machines;
/// `verbs`, RDMA, is only for who asks for it.
enum class TransportChoice : std::uint8_t { automatic, shm, tcp, verbs };

std::string_view to_string(TransportChoice choice);
/// Errors: invalid_input, with the nearest name; unsupported for verbs in a build without libibverbs.
Result<TransportChoice> parse_transport(std::string_view name);
/// Whether ranks of one machine reach each other's memory with this choice.
constexpr bool takes_shared_memory(TransportChoice choice) {
  return choice == TransportChoice::automatic || choice == TransportChoice::shm;
}

/// What a pair of ranks uses, and why.
struct PeerTransport {
  std::uint32_t peer = 0;
  std::string transport;  ///< Its name.
  std::string reason;
};

}  // namespace espalier
