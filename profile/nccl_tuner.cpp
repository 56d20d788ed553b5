#include "profile/nccl_tuner.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <span>

#include "profile/costed_network.h"

namespace espalier::profile {
namespace {

constexpr double micro = 1e-6, giga = 1e9;
constexpr double never = std::numeric_limits<double>::infinity();

/// By protocol: LL, LL128, Simple; in microseconds.
using ByProtocol = std::array<double, 3>;
/// On one machine, on two, on more; in GB/s.
using ByMachines = std::array<double, 3>;
using ByGeneration = std::array<ByMachines, 4>;

constexpr std::size_t index_of(sim::Protocol protocol) {
  return protocol == sim::Protocol::ll ? 0 : protocol == sim::Protocol::ll128 ? 1 : 2;
}

struct Latencies {
  ByProtocol base{}, fabric{}, pcie{}, network{};
};
constexpr Latencies of_tree{{6.8, 14, 8.4}, {0.6, 1.25, 4}, {1, 1.9, 4}, {5, 8.5, 14}};
constexpr Latencies of_ring{{6.6, 14, 8.4}, {0.6, 1.9, 3.4}, {1, 2.5, 5.7}, {2.7, 4, 14}};
constexpr Latencies of_nvls{{}, {0, 0, 25}, {}, {0, 0, 18}};
constexpr Latencies of_nvls_tree{{}, {0, 0, 25}, {}, {0, 0, 20.9}};
constexpr Latencies of_collnet_direct{{}, {0, 0, 3.7}, {0, 0, 3.7}, {0, 0, 31}};
constexpr Latencies of_collnet_chain{{}, {0, 0, 2.8}, {0, 0, 2.8}, {0, 0, 30}};
constexpr Latencies of_pat{{8, 8, 8}, {0, 0, 4}, {0, 0, 4}, {0, 0, 14}};

const Latencies& latencies_of(Shape shape) {
  switch (shape) {
    case Shape::tree: return of_tree;
    case Shape::nvls: return of_nvls;
    case Shape::nvls_tree: return of_nvls_tree;
    case Shape::collnet_direct: return of_collnet_direct;
    case Shape::collnet_chain: return of_collnet_chain;
    case Shape::pat: return of_pat;
    case Shape::ring:
    case Shape::pxn:
    case Shape::p2p: break;
  }
  return of_ring;
}

/// What LL carries at most: on one machine by generation; over machines the column of AMD hosts.
constexpr ByGeneration max_ll{{{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}}};
constexpr ByGeneration ring_ll128_per_channel{{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {40, 40, 40}}};
constexpr ByGeneration tree_ll128_per_channel{{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {55.6, 31.67, 20}}};
constexpr ByGeneration tree_per_channel{{{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}}};
constexpr ByGeneration nvls_tree_per_channel{{{26.5, 18.5, 10}, {24, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96, 80}}};
constexpr std::array<double, 4> nvls_efficiency{0, 0, 0.85, 0.74};

/// The rates of a channel that the search for NVLS tries, downwards.
constexpr std::array hopper_speeds{60., 50., 40., 30., 24., 20., 15., 12., 11., 6., 3.};
constexpr std::array blackwell_speeds{90., 80., 70., 60., 50., 45., 40., 30., 24., 20., 19., 18.};

/// The part of a tree's bandwidth that the tuner counts on, from 64 B on, size by doubled size; past the end all of it.
using Corrections = std::array<double, 24>;
constexpr Corrections tree_ll = {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1};
constexpr Corrections tree_ll128 = {1,  1,  1,  1,  1,  .9, .8, .8, .8, .7, .6, .6,
                                    .6, .6, .6, .6, .8, .9, .9, .9, .9, 1,  1,  1};
constexpr Corrections tree_simple = {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
                                     .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9};

double tree_correction(sim::Protocol protocol, Bytes size) {
  constexpr std::uint64_t first_size = 64;
  const auto bytes = static_cast<std::uint64_t>(size.count);
  if (bytes < first_size) return 1;
  const auto index = static_cast<std::size_t>(std::bit_width(bytes / first_size)) - 1;
  const Corrections& table = protocol == sim::Protocol::ll      ? tree_ll
                             : protocol == sim::Protocol::ll128 ? tree_ll128
                                                                : tree_simple;
  return index < table.size() ? table[index] : 1;
}

/// The ring's latency over its plateau, on several machines with Simple from 64 B per rank and channel on.
double plateau(Generation generation) { return generation == Generation::volta ? 1.9 : 1.4; }

double log2_floor(std::size_t count) { return static_cast<double>(std::bit_width(count) - 1); }

/// The tuner's figures for one view.
class Tuner {
 public:
  Tuner(const TunerView& view, Shape shape, sim::Protocol protocol)
      : view_(view), shape_(shape), protocol_(index_of(protocol)), latencies_(latencies_of(shape)) {}

  [[nodiscard]] bool is_available() const {
    const bool is_simple = protocol_ == index_of(sim::Protocol::simple);
    const bool sends = shape_ == Shape::p2p || shape_ == Shape::pxn;
    if (shape_ != Shape::ring && shape_ != Shape::tree && !sends && !is_simple) return false;
    if (protocol_ == index_of(sim::Protocol::ll128) && view_.inside != LinkKind::fabric) return false;
    return true;
  }

  /// Bytes of S a second.
  [[nodiscard]] double rate(double load, sim::Protocol protocol, Bytes size) const {
    const double n = static_cast<double>(view_.ranks);
    switch (shape_) {
      case Shape::ring: return ring_bus(steps() / n / load) * n / steps();
      case Shape::tree: return tree_bus(2 / load) / 2 * tree_correction(protocol, size);
      case Shape::nvls: return nvls_rate(n);
      case Shape::nvls_tree: return nvls_tree_rate(n);
      case Shape::pat: return 0.75 / load;
      case Shape::collnet_direct:
      case Shape::collnet_chain:
      case Shape::pxn:
      case Shape::p2p: return 1 / load;
    }
    return 1 / load;
  }

  [[nodiscard]] double latency() const {
    const double inside = at_view(latencies_), over = network_hop();
    const auto machines = static_cast<double>(view_.machines);
    const double local = std::max(1.0, static_cast<double>(view_.ranks) / machines);
    double hops = 0;
    switch (shape_) {
      case Shape::ring: hops = ring_hops(inside, over); break;
      case Shape::tree: hops = 2 * ((local - 1) * inside + log2_floor(view_.machines) * over); break;
      case Shape::nvls: hops = inside + (view_.machines > 1 ? over : 0); break;
      case Shape::nvls_tree: hops = inside + 2 * log2_floor(view_.machines) * over; break;
      case Shape::collnet_direct: hops = 2 * (std::min(1.0, local - 1) * inside + 0.4 * (local - 1)) + over; break;
      case Shape::collnet_chain: hops = 2 * (local - 1) * inside + over; break;
      case Shape::pat: hops = log2_floor(view_.machines) * over / 3.5 + 2.8 * static_cast<double>(view_.ranks); break;
      case Shape::pxn: hops = inside + over; break;
      case Shape::p2p: hops = view_.machines > 1 ? over : inside; break;
    }
    return (latencies_.base[protocol_] + hops) * micro;
  }

 private:
  [[nodiscard]] double steps() const {
    const auto n = static_cast<double>(view_.ranks);
    if (view_.collective == CollectiveKind::all_reduce) return 2 * (n - 1);
    return has_root(view_.collective) ? n : n - 1;
  }

  [[nodiscard]] double by_machines(const ByGeneration& table) const {
    return table[static_cast<std::size_t>(view_.generation)][std::min<std::size_t>(view_.machines, 3) - 1];
  }

  /// What LL carries at most: over machines the tuner looks at the hosts' processors, here AMD's.
  [[nodiscard]] double max_of_ll() const {
    const auto generation = view_.machines > 1 ? Generation::ampere : view_.generation;
    return max_ll[static_cast<std::size_t>(generation)][std::min<std::size_t>(view_.machines, 3) - 1] * giga;
  }

  [[nodiscard]] double ring_bus(double bus) const {
    if (protocol_ == 0) return std::min(max_of_ll(), bus / 2);
    if (protocol_ == 1) return std::min(bus * 0.92, view_.channels * by_machines(ring_ll128_per_channel) * giga);
    return bus;
  }

  [[nodiscard]] double tree_bus(double bus) const {
    double carried = std::min(bus * 0.92, view_.channels * by_machines(tree_per_channel) * giga);
    if (protocol_ == 0) carried = std::min(carried / 3.8, max_of_ll());
    if (protocol_ == 1) {
      carried = std::min(carried * (view_.machines == 1 ? 7.0 / 9 : 120.0 / 128),
                         view_.channels * by_machines(tree_ll128_per_channel) * giga);
    }
    return carried;
  }

  [[nodiscard]] std::span<const double> nvls_speeds() const {
    if (view_.generation == Generation::hopper) return hopper_speeds;
    return blackwell_speeds;
  }

  /// GB/s of a channel that NVLS inside a machine of so many ranks, each with a channel, is found at; 0 where no speed
  /// fits. The switch sends each rank its own part beside what it gets of all others.
  [[nodiscard]] double nvls_speed(double local) const {
    // Of more ranks than a switch has heads channels share what there is, at any rate.
    constexpr double max_heads = 32;
    if (local > max_heads) return view_.fabric / giga / local;
    const double most = view_.fabric / giga / (local + 1);
    const auto found = std::ranges::find_if(nvls_speeds(), [&](double speed) { return speed <= most; });
    return found == nvls_speeds().end() ? 0 : *found;
  }

  /// What both directions of a channel of this speed carry at most: the next speed from twice as much on.
  [[nodiscard]] double nvls_both_ways(double speed) const {
    double most = nvls_speeds().front();
    if (speed < nvls_speeds().back()) return 2 * speed;
    for (const double tried : nvls_speeds()) {
      if (tried >= 2 * speed) most = tried;
    }
    return most;
  }

  [[nodiscard]] double nvls_inside(double local) const {
    return nvls_speed(local) * nvls_efficiency[static_cast<std::size_t>(view_.generation)] * (local - 1) / local;
  }

  [[nodiscard]] double nvls_rate(double n) const {
    if (n < 2) return 0;
    const double inside = nvls_inside(n), most = nvls_both_ways(nvls_speed(n));
    if (view_.collective != CollectiveKind::all_reduce) return std::min(inside * (n - 1) / n, most) * n * giga;
    return std::min(2 * inside, most) * n * giga * n / steps();
  }

  [[nodiscard]] double nvls_tree_rate(double n) const {
    const double local = n / static_cast<double>(view_.machines);
    if (local < 2) return 0;
    const double over = view_.network / giga / local * (view_.machines == 2 ? 2 : 1);
    const double channel = std::min({2 * nvls_inside(local), over, by_machines(nvls_tree_per_channel)});
    return channel * local * giga * n / steps();
  }

  [[nodiscard]] double at_view(const Latencies& of) const {
    return (view_.inside == LinkKind::fabric ? of.fabric : of.pcie)[protocol_];
  }

  [[nodiscard]] double network_hop() const {
    // With one rank a machine latencies are fully exposed: the tree's.
    const Latencies& of = view_.machines == view_.ranks ? of_tree : latencies_;
    const bool flushes = protocol_ == index_of(sim::Protocol::simple);
    return of.network[protocol_] + view_.network_latency / micro * (flushes ? 2 : 1);
  }

  [[nodiscard]] double ring_hops(double inside, double over) const {
    if (has_root(view_.collective)) return view_.machines > 1 ? latencies_.network[protocol_] : inside;
    const bool is_simple = protocol_ == index_of(sim::Protocol::simple);
    const double post = view_.machines == 1 ? 0 : is_simple ? 3 : 1;  // microseconds, of Intel hosts
    const auto crossings = static_cast<double>(view_.machines - 1);
    const double crossing = view_.collective == CollectiveKind::all_reduce ? 2 * crossings : crossings;
    return (steps() - crossing) * std::max(inside, post) + crossing * over;
  }

  const TunerView& view_;
  Shape shape_;
  std::size_t protocol_;
  const Latencies& latencies_;
};

/// Sends inside a machine go by LL up to so many bytes each. Source: src/enqueue.cc, NCCL_P2P_LL_THRESHOLD.
bool sends_by_ll(const TunerView& view, Bytes size) {
  constexpr std::size_t most = 16384;
  return view.machines == 1 && static_cast<std::size_t>(size.count) <= most * view.ranks;
}

bool has_plateau(Shape shape, sim::Protocol protocol, std::size_t machines) {
  return shape == Shape::ring && protocol == sim::Protocol::simple && machines > 1;
}

}  // namespace

double tuner_seconds(const TunerView& view, Shape shape, sim::Protocol protocol, double load, Bytes size) {
  if (shape == Shape::p2p && protocol == sim::Protocol::ll && !sends_by_ll(view, size)) return never;
  const Tuner tuner(view, shape, protocol);
  if (!tuner.is_available()) return never;
  const double rate = tuner.rate(load, protocol, size);
  if (!(rate > 0)) return never;
  double latency = tuner.latency();
  constexpr double first_of_plateau = 64;
  const double of_rank = static_cast<double>(size.count) / view.channels / static_cast<double>(view.ranks);
  if (has_plateau(shape, protocol, view.machines) && view.collective == CollectiveKind::all_reduce &&
      of_rank >= first_of_plateau) {
    latency *= plateau(view.generation);
  }
  return latency + static_cast<double>(size.count) / rate;
}

double believed_seconds(const ProtocolCosts& way, Shape shape, sim::Protocol protocol,
                        const planners::ChunkModel& chunks, Bytes size, std::size_t machines, std::size_t ranks) {
  double latency = chunks.latency();
  double load = chunks.load_time(size) * whole_ppm / way.payload_ppm;
  if (shape == Shape::tree) load /= tree_correction(protocol, size);
  if (has_plateau(shape, protocol, machines)) latency *= plateau(Generation::ampere);
  return way.base.seconds() + ranks_time(way, ranks).seconds() + latency + load;
}

}  // namespace espalier::profile
