#pragma once

// Tested by: tests/unit/engine/launch/detect_launch_test.cpp

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace espalier::engine::launch {

/// A host and, where it was named, a port.
struct Endpoint {
  std::string host;
  std::optional<std::uint16_t> port;
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

/// Reads HOST:PORT, [IPV6]:PORT, HOST, [IPV6] or a bare IPv6 address. Errors: invalid_input for anything else.
Result<Endpoint> parse_endpoint(std::string_view text);

/// The first host of a Slurm node list: "node[03-05,7],gpu1" gives "node03". Empty for an empty list.
std::string first_host(std::string_view node_list);

}  // namespace espalier::engine::launch
