#pragma once

// Tested by: tests/unit/engine/launch/join_options_test.cpp

#include <netdb.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

namespace espalier::engine::rendezvous {

/// The addresses of a name, in the resolver's order.
using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

/// Resolves a name or numeric address for TCP, IPv4 and IPv6.
/// Errors: unavailable when it has none; a link-local IPv6 address needs its "%interface".
Result<AddressList> resolve(const std::string& host, std::uint16_t port);

/// Whether it is an address of this machine's loopback, 127.0.0.0/8 or ::1.
bool is_loopback(const addrinfo& address);

/// "host:port", with an IPv6 address in brackets.
std::string endpoint_text(const std::string& host, std::uint16_t port);

}  // namespace espalier::engine::rendezvous
