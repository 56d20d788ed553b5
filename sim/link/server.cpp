#include "sim/link/server.h"

namespace espalier::sim {

std::vector<Server> make_servers(const Network& network, const RateProfiles& profiles) {
  std::vector<Server> servers(network.resources().size());
  for (std::size_t i = 0; i < servers.size(); ++i) {
    servers[i].latency = network.resources()[i].latency;
    servers[i].bytes_per_second = network.resources()[i].bytes_per_second;
    servers[i].each = network.resources()[i].each;
    if (i < profiles.of_link.size()) servers[i].profile = profiles.of_link[i];
  }
  return servers;
}

}  // namespace espalier::sim
