#pragma once

#include <netinet/in.h>

#include <string>

#include "base/result.h"
#include "lab/network.h"

namespace espalier::lab {

/// A connected pair of sockets, each inside the namespace of its rank.
struct Stream {
  int from = -1;
  int to = -1;
  Stream() = default;
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&& other) noexcept;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();
};

/// Connects the ends of a route as ranks would.
Result<Stream> connect_route(const LabNetwork& network, const RouteAddresses& route);

/// Sends for `seconds` and gives the bytes per second that arrived, leaving out the first part, which a full bucket of
/// tokens lets through faster.
double measure_rate(const Stream& stream, double seconds);

/// Sends this many bytes and waits until all are there.
void send_bytes(const Stream& stream, std::int64_t bytes);

}  // namespace espalier::lab
