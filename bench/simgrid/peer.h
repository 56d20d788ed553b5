#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// SimGrid's fluid network model (s4u, CM02 without cross-traffic, TCP windows and correction factors), running the
/// jobs that Espalier's models run. SimGrid allows one engine in a process: each of these may be called once in a
/// process.
namespace espalier::peer {

struct Route {
  std::uint32_t src = 0;  ///< Hosts, by number.
  std::uint32_t dst = 0;
  std::vector<std::uint32_t> links;
};

struct Platform {
  std::uint32_t hosts = 0;
  std::vector<double> bandwidths;  ///< By link, in bytes per second.
  std::vector<double> latencies;   ///< By link, in seconds.
  std::vector<Route> routes;       ///< At most one for a pair of hosts.
};

/// Who pays a message's latency.
enum class Latency : std::uint8_t {
  network,  ///< SimGrid: before every message, also where it waited for the one before it on its way.
            ///< It then also shares links in inverse proportion to the latencies of the routes.
  sender,   ///< The program, as docs/fair.md defines it: messages of one lane follow each other without a gap.
};

struct Message {
  double start = 0;  ///< When its sender has it; its bytes flow one latency later.
  std::uint32_t src = 0;
  std::uint32_t dst = 0;
  double bytes = 0;
};

/// When each message has arrived, in seconds.
std::vector<double> simulate_messages(const Platform& platform, const std::vector<Message>& messages, Latency latency);

/// Rings of hosts, all at once. In step s every host sends to the next of its ring what came in step s - 1, and what it
/// has at the beginning in step 0. Gives the time when all is there, in seconds.
struct Rings {
  std::vector<std::vector<std::uint32_t>> hosts;  ///< By ring; all routes between neighbours are in the platform.
  std::uint32_t steps = 0;
  /// Bytes of a message, by (step, position of the sender in its ring).
  std::function<double(std::uint32_t, std::uint32_t)> bytes;
};
double simulate_rings(const Platform& platform, const Rings& rings, Latency latency);

}  // namespace espalier::peer
