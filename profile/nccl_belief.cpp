#include "profile/nccl_belief.h"

#include <array>
#include <bit>

#include "profile/setting.h"

namespace espalier::profile {
namespace {

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

}  // namespace

double believed_seconds(const Way& way, Shape shape, sim::Protocol protocol, const planners::ChunkModel& chunks,
                        Bytes size, std::size_t machines, std::size_t ranks) {
  double latency = chunks.latency();
  double load = chunks.load_time(size) * whole_ppm / way.payload_ppm;
  if (shape == Shape::tree) load /= tree_correction(protocol, size);
  constexpr double simple_over_machines = 1.4;
  if (shape == Shape::ring && protocol == sim::Protocol::simple && machines > 1) latency *= simple_over_machines;
  return way.base.seconds() + ranks_time(way, ranks).seconds() + latency + load;
}

}  // namespace espalier::profile
