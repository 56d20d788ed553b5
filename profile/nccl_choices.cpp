#include "profile/nccl_choices.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>

#include "topology/slow.h"

namespace espalier::profile {
namespace {

using planners::BoxWay;
using planners::GraphPattern;
using planners::NcclCommunicator;
using planners::NcclGraph;

constexpr std::array protocols = {sim::Protocol::ll, sim::Protocol::ll128, sim::Protocol::simple};
constexpr std::size_t ll = 0, ll128 = 1, simple = 2;

/// By protocol, in microseconds.
using ByProtocol = std::array<double, 3>;
/// On one machine, on two, on more; in GB/s.
using ByMachines = std::array<double, 3>;
using ByGeneration = std::array<ByMachines, 4>;

struct WayLatencies {
  ByProtocol base{}, fabric{}, pcie{}, network{};
};

/// The constants of a version.
struct Constants {
  WayLatencies tree{{6.8, 14, 8.4}, {0.6, 1.25, 4}, {1, 1.9, 4}, {5, 8.5, 14}};
  WayLatencies ring{{6.6, 14, 8.4}, {0.6, 1.9, 3.4}, {1, 2.5, 5.7}, {2.7, 4, 14}};
  WayLatencies nvls{{}, {0, 0, 25}, {}, {0, 0, 18}};
  WayLatencies nvls_tree{{}, {0, 0, 25}, {}, {0, 0, 20.9}};
  WayLatencies pat{{8, 8, 8}, {0, 0, 4}, {0, 0, 4}, {0, 0, 14}};
  /// What LL carries at most: on one machine by generation; over machines Intel's and AMD's processors (rows 0, 1).
  ByGeneration max_ll{{{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}}};
  /// Of a channel.
  ByGeneration ring_ll128{{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {40, 40, 40}}};
  ByGeneration tree_ll128{{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {55.6, 31.67, 20}}};
  ByGeneration tree_any{{{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}}};
  ByGeneration nvls_tree_any{{{26.5, 18.5, 10}, {24, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96, 80}}};
  std::array<double, 4> nvls_part{0, 0, 0.85, 0.74};
  bool counts_nvls_whole = false;  ///< Up to 2.27: NVLS at what the search found, less a sixth.
  bool corrects_nvls_tree = true;  ///< On Blackwell with x86 as trees are.
};

constexpr std::uint32_t v28 = 2028, v29 = 2029, v30 = 2030;

Constants constants_of(std::uint32_t version) {
  Constants of;
  if (version < v30) of.nvls_tree_any[3][2] = 43.8;
  if (version < v29) {
    of.ring_ll128[3] = {73.4, 34.6, 73.4};
    of.corrects_nvls_tree = false;
  }
  if (version < v28) {
    of.ring_ll128[3] = {73.4, 73.4, 73.4};
    of.tree_ll128[3] = {73.4, 73.4, 58};
    of.tree_any[3] = {77.4, 82.8, 72};
    of.nvls_tree.network[simple] = 14;
    of.counts_nvls_whole = true;
  }
  return of;
}

/// The part of a tree's bandwidth that the tuner counts on, from 64 B on, size by doubled size; past the end all of it.
using Corrections = std::array<double, 24>;
constexpr std::array<Corrections, 3> tree_corrections = {{
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9},
}};

double correction(std::size_t protocol, std::int64_t bytes, std::size_t sizes) {
  constexpr std::uint64_t first = 64;
  const auto steps = static_cast<std::uint64_t>(bytes) / first;
  if (steps == 0) return 1;
  const auto index = static_cast<std::size_t>(std::bit_width(steps)) - 1;
  return index < sizes ? tree_corrections[protocol][index] : 1;
}

double steps_of_doubling(std::size_t count) { return static_cast<double>(std::bit_width(count) - 1); }

std::size_t protocol_index(sim::Protocol protocol) {
  return static_cast<std::size_t>(std::ranges::find(protocols, protocol) - protocols.begin());
}

bool is_gathered(CollectiveKind kind) {
  return kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
}
bool is_rooted(CollectiveKind kind) { return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce; }

/// Works out the figures of all ways.
class Maker {
 public:
  Maker(const NcclCommunicator& of, CollectiveKind collective)
      : of_(of), collective_(collective), constants_(constants_of(of.era.version)) {}

  [[nodiscard]] std::vector<NcclWay> make() const {
    const bool is_all_reduce = collective_ == CollectiveKind::all_reduce;
    if (!is_all_reduce && !is_gathered(collective_) && !is_rooted(collective_)) return {};
    std::vector<NcclWay> ways;
    const auto add = [&](Shape shape, std::size_t p, double latency, double bandwidth) {
      if (bandwidth > 0 && may_use(shape, p)) ways.push_back({shape, protocols[p], latency, bandwidth});
    };
    for (std::size_t p = 0; is_all_reduce && p < protocols.size(); ++p)
      add(Shape::tree, p, tree_latency(p), tree_bus(p) / 2);
    for (std::size_t p = 0; p < protocols.size(); ++p) add(Shape::ring, p, ring_latency(p), ring_bus(p) * ratio());
    if (!is_rooted(collective_) && of_.machines == 1 && has_nvls()) add(Shape::nvls, simple, 25, nvls());
    if (is_all_reduce && of_.machines > 1 && has_nvls()) {
      add(Shape::nvls_tree, simple, nvls_tree_latency(), nvls_tree());
    }
    if (is_gathered(collective_) && is_one_a_machine()) add(Shape::pat, simple, pat_latency(), tree_rate() * 0.75);
    return ways;
  }

 private:
  [[nodiscard]] double n() const { return static_cast<double>(of_.ranks); }
  [[nodiscard]] double local() const { return n() / static_cast<double>(of_.machines); }
  [[nodiscard]] bool is_one_a_machine() const { return of_.machines > 1 && of_.machines == of_.ranks; }
  [[nodiscard]] bool has_nvls() const {
    return of_.nvls_channels > 0 && of_.nvls.channels >= (constants_.counts_nvls_whole ? 1 : 2);
  }

  [[nodiscard]] std::size_t generation() const {
    const int capability = of_.era.capability;
    return capability >= 100 ? 3 : capability >= 90 ? 2 : capability >= 80 ? 1 : 0;
  }
  [[nodiscard]] std::size_t machines() const { return std::min<std::size_t>(of_.machines, 3) - 1; }
  [[nodiscard]] double per_channel(const ByGeneration& table) const { return table[generation()][machines()]; }

  [[nodiscard]] double max_ll() const {
    if (of_.machines == 1) return constants_.max_ll[generation()][0];
    const bool is_amd = of_.are_makers_mixed || of_.maker == planners::ProcessorMaker::amd;
    return constants_.max_ll[is_amd ? 1 : 0][machines()];
  }

  [[nodiscard]] double steps() const {
    if (collective_ == CollectiveKind::all_reduce) return 2 * (n() - 1);
    return is_rooted(collective_) ? n() : n() - 1;
  }
  [[nodiscard]] double ratio() const { return n() / steps(); }

  /// Of all channels; on two machines what they have inside counts.
  [[nodiscard]] double rate_of(const NcclGraph& graph) const {
    return graph.channels * static_cast<double>(of_.machines <= 2 ? graph.inside : graph.outside);
  }

  [[nodiscard]] double ring_bus(std::size_t p) const {
    const double bus = rate_of(of_.ring);
    if (p == ll) return std::min(max_ll(), bus * 0.5);
    if (p == ll128) return std::min(bus * 0.92, of_.ring.channels * per_channel(constants_.ring_ll128));
    return bus;
  }

  /// Trees that meet at one GPU lose some.
  [[nodiscard]] double met(double bus) const { return of_.tree_pattern == GraphPattern::tree ? bus * 0.85 : bus; }
  [[nodiscard]] double tree_rate() const { return rate_of(of_.tree); }

  [[nodiscard]] double tree_bus(std::size_t p) const {
    double bus = std::min(tree_rate() * 0.92, of_.tree.channels * per_channel(constants_.tree_any));
    if (p == ll) bus = std::min(bus / 3.8, max_ll());
    if (p == ll128) {
      const double part = of_.machines == 1 ? 7.0 / 9 : 120.0 / 128;
      bus = std::min(bus * part, of_.tree.channels * per_channel(constants_.tree_ll128));
    }
    return met(bus);
  }

  /// Of a channel, both directions of all_reduce together.
  [[nodiscard]] double nvls_inside() const {
    const double channels = of_.nvls.channels;
    return of_.nvls.inside * constants_.nvls_part[generation()] * (channels - 1) / channels;
  }

  [[nodiscard]] double nvls() const {
    const bool is_all_reduce = collective_ == CollectiveKind::all_reduce;
    const double part = (local() - 1) / local();
    double channel = 0;
    if (constants_.counts_nvls_whole) {
      const double inside = of_.nvls.inside, both = of_.nvls.outside;
      channel = is_all_reduce ? std::min(inside, both) : std::min(inside * part, both * 0.9);
      return of_.nvls.channels * channel * (is_all_reduce ? 5.0 / 6 : 1);
    }
    channel = std::min(nvls_inside() * (is_all_reduce ? 2 : part), static_cast<double>(of_.nvls.outside));
    return of_.nvls.channels * channel * (is_all_reduce ? ratio() : 1);
  }

  [[nodiscard]] double nvls_tree() const {
    if (constants_.counts_nvls_whole) {
      const double outside = of_.machines <= 2 ? of_.nvls.outside : of_.nvls.outside / 2;
      return of_.nvls.channels * std::min(static_cast<double>(of_.nvls.inside), outside) * 5 / 6;
    }
    const double outside = static_cast<double>(of_.nvls.outside) * (of_.machines <= 2 ? 2 : 1);
    const double channel = std::min({nvls_inside() * 2, outside, per_channel(constants_.nvls_tree_any)});
    return of_.nvls.channels * channel * ratio();
  }

  [[nodiscard]] double inside(const WayLatencies& of, const NcclGraph& graph, std::size_t p) const {
    return graph.way_inside == BoxWay::nvl ? of.fabric[p] : of.pcie[p];
  }
  /// With one rank a machine latencies are fully exposed: the tree's.
  [[nodiscard]] double over(const WayLatencies& of, std::size_t p) const {
    return is_one_a_machine() ? constants_.tree.network[p] : of.network[p];
  }

  [[nodiscard]] double tree_latency(std::size_t p) const {
    const double chain = static_cast<double>(of_.ranks / of_.machines) - 1;
    return constants_.tree.base[p] + 2 * (chain * inside(constants_.tree, of_.tree, p) +
                                          steps_of_doubling(of_.machines) * over(constants_.tree, p));
  }

  [[nodiscard]] double ring_latency(std::size_t p) const {
    const bool is_alone = of_.machines == 1;
    if (is_rooted(collective_)) {
      const auto hop = [&](const WayLatencies& of) { return is_alone ? inside(of, of_.ring, p) : of.network[p]; };
      if (of_.ring.same_channels != 0) return constants_.ring.base[p] + hop(constants_.ring);
      return constants_.ring.base[p] + steps() * hop(p == simple ? constants_.tree : constants_.ring);
    }
    const bool is_amd = !of_.are_makers_mixed && of_.maker == planners::ProcessorMaker::amd;
    const double post = is_alone ? 0 : (is_amd ? 2.0 : 1.0) * (p == simple ? 3 : 1);
    const double hop = std::max(inside(constants_.ring, of_.ring, p), post);
    const auto crossings = static_cast<double>(of_.machines - 1);
    const double crossing = collective_ == CollectiveKind::all_reduce ? 2 * crossings : crossings;
    return constants_.ring.base[p] + (steps() - crossing) * hop + crossing * over(constants_.ring, p);
  }

  [[nodiscard]] double nvls_tree_latency() const {
    const WayLatencies& of = constants_.nvls_tree;
    return inside(of, of_.nvls, simple) + 2 * steps_of_doubling(of_.machines) * over(of, simple);
  }

  [[nodiscard]] double pat_latency() const {
    return 8 + steps_of_doubling(of_.machines) * (over(constants_.pat, simple) / 3.5) + n() * 2.8;
  }

  /// LL128 needs its flags to arrive with the data: NVLink inside, NICs near enough.
  [[nodiscard]] bool may_use(Shape shape, std::size_t p) const {
    if (p != ll128) return true;
    const NcclGraph& graph = shape == Shape::tree ? of_.tree : of_.ring;
    const BoxWay most = of_.era.capability >= 90 ? BoxWay::pxn : BoxWay::pxb;
    return graph.way_outside <= most && graph.way_inside <= BoxWay::nvb;
  }

  const NcclCommunicator& of_;
  CollectiveKind collective_;
  Constants constants_;
};

}  // namespace

planners::NcclEra era_of(const TunerModel& tuner) {
  constexpr std::array capabilities = {70, 80, 90, 100};
  const double nvlink = static_cast<double>(tuner.counted_ppm[static_cast<std::size_t>(LinkKind::fabric)]) / whole_ppm;
  return {tuner.version, capabilities[static_cast<std::size_t>(tuner.generation)], nvlink};
}

std::optional<planners::NcclCommunicator> communicator_of(const Topology& topology, const TunerModel& tuner) {
  return planners::make_communicator(topology, era_of(tuner));
}

std::optional<planners::NcclCommunicator> KnownCommunicators::find(const Topology& topology, const TunerModel& tuner) {
  const std::string seen = seen_text(topology);
  {
    const std::scoped_lock lock(mutex_);
    if (const auto known = known_.find(seen); known != known_.end()) return known->second;
  }
  auto found = communicator_of(topology, tuner);
  const std::scoped_lock lock(mutex_);
  return known_.emplace(seen, std::move(found)).first->second;
}

NcclChoices::NcclChoices(const NcclCommunicator& communicator, CollectiveKind collective)
    : of_(communicator), collective_(collective), ways_(Maker(of_, collective).make()) {}

const NcclWay* NcclChoices::find(Shape shape, sim::Protocol protocol) const {
  const auto found =
      std::ranges::find_if(ways_, [&](const NcclWay& way) { return way.shape == shape && way.protocol == protocol; });
  return found == ways_.end() ? nullptr : &*found;
}

namespace {

/// The bytes that NCCL counts: whole elements, of each rank where every rank has a part.
std::int64_t counted_bytes(CollectiveKind collective, std::size_t ranks, Bytes size, std::int64_t element_size) {
  const std::int64_t unit = is_gathered(collective) ? element_size * static_cast<std::int64_t>(ranks) : element_size;
  return size.count / unit * unit;
}

}  // namespace

double NcclChoices::seconds(const NcclWay& way, Bytes size, std::int64_t element_size) const {
  const std::int64_t bytes = counted_bytes(collective_, of_.ranks, size, element_size);
  const std::size_t p = protocol_index(way.protocol);
  double bandwidth = way.bandwidth, latency = way.latency;
  constexpr std::size_t of_trees = 23, of_nvls_trees = 24;
  if (way.shape == Shape::tree) bandwidth *= correction(p, bytes, of_trees);
  if (way.shape == Shape::nvls_tree && of_.era.capability >= 100 && of_.era.version >= v29 &&
      of_.maker != planners::ProcessorMaker::other) {
    bandwidth *= correction(p, bytes, of_nvls_trees);
  }
  const bool is_long = way.shape == Shape::ring && p == simple && of_.machines > 1;
  constexpr std::int64_t first_of_plateau = 64;
  const auto parts = static_cast<std::int64_t>(of_.channels * of_.ranks);
  if (is_long && collective_ == CollectiveKind::all_reduce && bytes / parts >= first_of_plateau) {
    latency *= of_.era.capability < 80 ? 1.9 : 1.4;
  }
  constexpr double micro = 1e-6, bytes_a_microsecond = 1000;
  return (latency + static_cast<double>(bytes) / (bytes_a_microsecond * bandwidth)) * micro;
}

std::uint32_t NcclChoices::channels(const NcclWay& way, Bytes size, std::int64_t element_size) const {
  if (way.shape == Shape::nvls || way.shape == Shape::nvls_tree) return of_.nvls_channels;
  if (way.shape == Shape::pat) return of_.channels;
  const std::size_t p = protocol_index(way.protocol);
  constexpr std::int64_t threads = 512, of_ll128 = 640, few_threads = 256;
  std::int64_t least = p == simple ? threads * 64 : (p == ll ? threads : of_ll128) * 8;
  constexpr double slow = 12;  // GB/s
  const double all_rings = static_cast<double>(of_.ring.inside) * of_.ring.channels;
  if (p == simple && way.shape == Shape::ring && all_rings <= slow) least = few_threads * 64;
  if (p == ll && way.shape == Shape::ring) least *= static_cast<std::int64_t>(of_.ranks);
  const std::int64_t bytes = counted_bytes(collective_, of_.ranks, size, element_size);
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(bytes / least, 1, std::max<std::uint32_t>(of_.channels, 1)));
}

std::vector<NcclChoice> NcclChoices::rank(Bytes size, std::int64_t element_size) const {
  std::vector<NcclChoice> choices;
  for (const NcclWay& way : ways_) {
    choices.push_back({way, seconds(way, size, element_size), channels(way, size, element_size)});
  }
  std::ranges::stable_sort(choices, {}, &NcclChoice::seconds);
  return choices;
}

}  // namespace espalier::profile
