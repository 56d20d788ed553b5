#pragma once

// Tested by: tests/unit/engine/launch/join_options_test.cpp

#include <chrono>
#include <cstdint>
#include <string>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace espalier::engine::rendezvous {

/// A listening TCP socket and the port it got.
struct Listener {
  FileDescriptor fd;
  std::uint16_t port = 0;
  bool is_everywhere = false;  ///< On all addresses, as the name that was given leads to none that others reach.
};

/// Listens on `host`, IPv4 or IPv6; port 0 takes a free one.
/// A loopback address stays on loopback; a name that leads to no address of this machine (or, unlike "localhost", to
/// loopback, as Debian's /etc/hosts has it) listens on all addresses.
/// The socket is non-blocking, close-on-exec and has SO_REUSEADDR.
/// Waits up to `patience` for a port that is taken: when a process dies, the system closes its connections before it
/// frees the port, so a rank that notices the death may ask for the port too early.
/// Errors: unavailable when the name cannot be resolved or the port is taken.
Result<Listener> listen_on(const std::string& host, std::uint16_t port, std::chrono::milliseconds patience = {});

/// Listens on all addresses of this machine. Errors: unavailable.
Result<Listener> listen_on_all(std::uint16_t port);

/// Takes over a listening socket that a launcher left open in this process (LaunchInfo::listener_fd).
/// Errors: invalid_input when `fd` is no TCP socket that listens on `port`; it is then left as it is.
Result<Listener> adopt_listener(int fd, std::uint16_t port);

/// A connection that came to a listening socket.
struct Accepted {
  FileDescriptor fd;  ///< Non-blocking, close-on-exec; none when nobody could be accepted.
  std::string
      source;     ///< Who it comes from, as bytes: an IPv4 address, or the network of an IPv6 one (its first 64 bits).
  int error = 0;  ///< errno where there is none: EAGAIN when nobody waits, else for want of descriptors or memory.
};

/// Accepts the next connection; those that broke before are skipped.
Accepted accept_from(int listener);

}  // namespace espalier::engine::rendezvous
