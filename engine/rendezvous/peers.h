#pragma once

// Tested by: tests/unit/engine/rendezvous/control_plane_test.cpp

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/rendezvous/control_plane.h"

namespace espalier::engine::rendezvous {

/// What a rank exports about itself, for the choice of transports and for error messages.
struct PeerInfo {
  std::uint32_t rank = 0;
  std::string host_name;
  std::string boot_id;                  ///< Of the running kernel: equal on ranks of one machine, and only there.
  std::uint64_t network_namespace = 0;  ///< Inode; 0 when unknown. Abstract Unix sockets reach within one.
  std::uint64_t process_namespace = 0;  ///< Inode; 0 when unknown. Process ids mean the same within one.
  std::uint64_t time_namespace = 0;     ///< Inode; 0 when unknown.
  std::uint32_t user = 0;               ///< Effective user id.
  std::int64_t process = 0;             ///< Process id.
  std::string cores;                    ///< That it may use: a bit each, as sched_getaffinity gives them.
  /// Its addresses: first the one that the rendezvous goes over, then the other interfaces' that are up.
  /// Loopback only if the rendezvous goes over it; link-local IPv6 carries its "%interface".
  std::vector<std::string> addresses;
  friend bool operator==(const PeerInfo&, const PeerInfo&) = default;
};

/// The PeerInfo of this process.
PeerInfo describe_self(const ControlPlane& plane);

/// Whether both run on one kernel, in one network and process namespace, as one user: memory can be shared.
bool share_memory(const PeerInfo& one, const PeerInfo& other);

/// Whether both read one CLOCK_MONOTONIC: their offset is exactly zero, and need not be measured.
bool share_clock(const PeerInfo& one, const PeerInfo& other);

/// How many cores the ranks on this one's machine may use together; at least one.
std::uint32_t count_cores(std::span<const PeerInfo> peers, const PeerInfo& self);

/// Whether both see the same interfaces and addresses, loopback too.
bool share_network(const PeerInfo& one, const PeerInfo& other);

/// Whether all do.
bool share_network(std::span<const PeerInfo> peers);

/// Where `to` may be reached from `from`, the likeliest first: from elsewhere, loopback comes last.
std::vector<std::string> addresses_towards(const PeerInfo& from, const PeerInfo& to);

/// Exchanges the PeerInfo of all ranks; element r is rank r's. Rank 0's begins with the address that
/// this rank has reached it at. Collective over the whole world.
/// Errors: as ControlPlane::exchange; invalid_input when a rank's record cannot be read.
Result<std::vector<PeerInfo>> exchange_peers(ControlPlane& plane, std::chrono::milliseconds timeout);

/// The bytes of a PeerInfo, and back. Errors: invalid_input for any other bytes.
std::string encode_peer(const PeerInfo& peer);
Result<PeerInfo> decode_peer(std::string_view bytes);

}  // namespace espalier::engine::rendezvous
