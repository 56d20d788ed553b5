#include "bench/simgrid/peer.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <simgrid/s4u.hpp>
#include <utility>

namespace espalier::peer {
namespace {

namespace s4u = simgrid::s4u;

/// SimGrid counts whole bytes: a message of b bytes is one of 2^10 b on links 2^10 times as fast.
constexpr double parts_of_a_byte = 1024;

std::uint64_t parts(double bytes) { return static_cast<std::uint64_t>(bytes * parts_of_a_byte + 0.5); }

class World {
 public:
  World(const Platform& platform, Latency latency) : latency_(latency), engine_(count_, argv_) {
    s4u::Engine::set_config("network/model:CM02");
    s4u::Engine::set_config("network/crosstraffic:0");
    s4u::Engine::set_config("network/TCP-gamma:0");
    s4u::Engine::set_config("network/latency-factor:1");
    s4u::Engine::set_config("network/bandwidth-factor:1");
    s4u::Engine::set_config("network/weight-S:0");
    s4u::Engine::set_config("surf/precision:1e-13");
    s4u::Engine::set_config("contexts/stack-size:32");
    s4u::NetZone* const zone = s4u::create_full_zone("network");
    for (std::uint32_t i = 0; i < platform.hosts; ++i)
      hosts_.push_back(zone->create_host("h" + std::to_string(i), 1e9));
    std::vector<s4u::Link*> links;
    for (std::size_t i = 0; i < platform.bandwidths.size(); ++i) {
      links.push_back(zone->create_link("l" + std::to_string(i), platform.bandwidths[i] * parts_of_a_byte)
                          ->set_latency(latency == Latency::network ? platform.latencies[i] : 0)
                          ->seal());
    }
    for (const Route& route : platform.routes) {
      std::vector<s4u::LinkInRoute> way;
      double sum = 0;
      for (const std::uint32_t link : route.links) {
        way.emplace_back(links[link]);
        sum += platform.latencies[link];
      }
      zone->add_route(hosts_[route.src]->get_netpoint(), hosts_[route.dst]->get_netpoint(), nullptr, nullptr, way,
                      false);
      latencies_[{route.src, route.dst}] = sum;
    }
    zone->seal();
  }

  [[nodiscard]] s4u::Host* host(std::uint32_t index) const { return hosts_[index]; }
  /// What the program waits for by itself.
  [[nodiscard]] double wait_of(std::uint32_t src, std::uint32_t dst) const {
    return latency_ == Latency::sender ? latencies_.at({src, dst}) : 0;
  }
  double run() const {
    engine_.run();
    return s4u::Engine::get_clock();
  }

 private:
  char name_[8] = "peer";
  char quiet_[48] = "--log=root.thresh:error";
  char factory_[48] = "--cfg=contexts/factory:raw";
  char* arguments_[4] = {name_, quiet_, factory_, nullptr};
  int count_value_ = 3;
  int* count_ = &count_value_;
  char** argv_ = arguments_;
  Latency latency_;
  s4u::Engine engine_;
  std::vector<s4u::Host*> hosts_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> latencies_;
};

}  // namespace

std::vector<double> simulate_messages(const Platform& platform, const std::vector<Message>& messages, Latency latency) {
  const World world(platform, latency);
  std::vector<double> ends(messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    s4u::Actor::create("m" + std::to_string(i), world.host(messages[i].src), [&world, &messages, &ends, i] {
      const Message& message = messages[i];
      const double begin = message.start + world.wait_of(message.src, message.dst);
      if (begin > 0) s4u::this_actor::sleep_until(begin);
      s4u::Comm::sendto(world.host(message.src), world.host(message.dst), parts(message.bytes));
      ends[i] = s4u::Engine::get_clock();
    });
  }
  world.run();
  return ends;
}

namespace {

/// A host of a ring that leaves latencies to the network: the fastest program for SimGrid that we know, right where all
/// messages of a step are sent at once.
void send_and_get(const Rings& rings, std::size_t ring, std::uint32_t at, std::uint32_t next) {
  static int token;
  const auto name_of = [&](std::uint32_t place) { return std::to_string(ring) + "." + std::to_string(place); };
  s4u::Mailbox* const in = s4u::Mailbox::by_name(name_of(at));
  s4u::Mailbox* const out = s4u::Mailbox::by_name(name_of(next));
  for (std::uint32_t step = 0; step < rings.steps; ++step) {
    const s4u::CommPtr sent = out->put_async(&token, parts(rings.bytes(step, at)));
    in->get<int>();
    sent->wait();
  }
}

struct Place {
  s4u::SemaphorePtr there = s4u::Semaphore::create(0);
  std::vector<double> arrivals;  // by step, of what comes to this place
};

/// A host of a ring that pays latencies itself: from when a message is there to when its bytes may flow on.
void wait_and_send(const World& world, const Rings& rings, const std::vector<std::uint32_t>& line,
                   std::vector<Place>& places, std::uint32_t at, std::uint32_t next) {
  const double wait = world.wait_of(line[at], line[next]);
  for (std::uint32_t step = 0; step < rings.steps; ++step) {
    double begin = wait;
    if (step > 0) {
      places[at].there->acquire();
      begin += places[at].arrivals[step - 1];
    }
    if (begin > s4u::Engine::get_clock()) s4u::this_actor::sleep_until(begin);
    s4u::Comm::sendto(world.host(line[at]), world.host(line[next]), parts(rings.bytes(step, at)));
    places[next].arrivals.push_back(s4u::Engine::get_clock());
    places[next].there->release();
  }
}

}  // namespace

double simulate_rings(const Platform& platform, const Rings& rings, Latency latency) {
  const World world(platform, latency);
  std::vector<std::vector<Place>> places(rings.hosts.size());
  for (std::size_t ring = 0; ring < rings.hosts.size(); ++ring) {
    const std::vector<std::uint32_t>& line = rings.hosts[ring];
    places[ring].resize(line.size());
    for (std::uint32_t at = 0; at < line.size(); ++at) {
      const std::uint32_t next = at + 1 == line.size() ? 0 : at + 1;
      const std::string name = std::to_string(ring) + "." + std::to_string(at);
      s4u::Actor::create(name, world.host(line[at]), [&, ring, at, next] {
        if (latency == Latency::network) {
          send_and_get(rings, ring, at, next);
        } else {
          wait_and_send(world, rings, rings.hosts[ring], places[ring], at, next);
        }
      });
    }
  }
  return world.run();
}

}  // namespace espalier::peer
