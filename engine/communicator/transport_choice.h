#pragma once

// Tested by: tests/unit/engine/communicator/communicator_test.cpp

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace espalier {

/// How the ranks may reach each other. `automatic` takes shared memory within a machine and TCP between machines;
/// `shm_verbs` takes RDMA between machines; `verbs` takes RDMA within machines, too.
enum class TransportChoice : std::uint8_t { automatic, shm, tcp, verbs, shm_verbs };

std::string_view to_string(TransportChoice choice);
/// All of them, as users name them.
std::span<const std::string_view> transport_choices();
/// Errors: invalid_input, with the nearest name; unsupported for RDMA in a build without libibverbs.
Result<TransportChoice> parse_transport(std::string_view name);
/// Whether ranks of one machine reach each other's memory with this choice.
constexpr bool takes_shared_memory(TransportChoice choice) {
  return choice != TransportChoice::tcp && choice != TransportChoice::verbs;
}
/// Whether ranks of different machines reach each other by TCP or RDMA with this choice.
constexpr bool takes_tcp(TransportChoice choice) {
  return choice == TransportChoice::automatic || choice == TransportChoice::tcp;
}
constexpr bool takes_verbs(TransportChoice choice) {
  return choice == TransportChoice::verbs || choice == TransportChoice::shm_verbs;
}

/// What a pair of ranks uses, and why.
struct PeerTransport {
  std::uint32_t peer = 0;
  std::string transport;  ///< Its name.
  std::string reason;
  bool carries_out_calls = false;  ///< Kernels of both carry out whole calls.
};

}  // namespace espalier
