#include "planners/chunking.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "planners/place_table.h"
#include "schedule/loads.h"
#include "schedule/relays.h"
#include "schedule/slice_moves.h"

namespace espalier::planners {
namespace {

/// What one route adds to a chain that goes over it.
struct RouteCost {
  double seconds_per_byte = 0;  ///< Of the slowest link.
  double latency = 0;           ///< Seconds over all links and the first one's overhead.
  double overhead_bytes = 0;
  double hops = 0;
};

RouteCost cost_of(const Route& route, const Topology& topology) {
  RouteCost cost;
  for (const LinkId id : route.links) {
    const Link& link = topology.link(id);
    const auto rate = static_cast<double>(link.bandwidth().bytes_per_second);
    cost.seconds_per_byte = std::max(cost.seconds_per_byte, 1 / rate);
    cost.latency += link.latency.seconds() + link.overhead.seconds();
    cost.overhead_bytes = std::max(cost.overhead_bytes, link.overhead.seconds() * rate);
  }
  cost.hops = static_cast<double>(route.links.size());
  return cost;
}

/// The longest chain that ends with each slice at each rank.
class Chains {
 public:
  Chains(std::size_t ends, std::size_t slices) : longest_(ends, slices) {}

  /// Extends the chains of a run of slices from src to dst by `step`, and returns the longest of them.
  double extend(Rank src, Rank dst, const Transfer& transfer, double step) {
    const std::size_t first = transfer.first_slice.index();
    float longest = 0;
    const std::size_t read = transfer.reads_input != 0 ? 0 : transfer.slice_count;  // An input is there from the start.
    for (std::size_t i = 0; i < read; ++i) longest = std::max(longest, longest_.at(src, first + i));
    const auto extended = static_cast<float>(longest + step);
    for (std::size_t i = 0; i < transfer.slice_count; ++i) {
      float& there = longest_.at(dst, first + i);
      there = std::max(there, extended);
    }
    return extended;
  }

 private:
  PlaceTable<float> longest_;
};

/// Chains of fill and of latency where slices move a few times each: what a slice's longest chain to an end is follows
/// from the transfers that brought it there.
class FewMoves {
 public:
  struct Longest {
    float fill = 0;
    float latency = 0;
  };

  explicit FewMoves(const Schedule& schedule)
      : schedule_(schedule), moves_(schedule), longest_(schedule.transfers.size()) {}

  [[nodiscard]] bool are_few() const {
    constexpr std::size_t most = 64;
    for (std::size_t slice = 0; slice < schedule_.slices.size(); ++slice) {
      if (moves_.of(slice).size() > most) return false;
    }
    return true;
  }

  /// The chains that end with this transfer. Requires: those before it were asked for.
  Longest extend(TransferId id, const RouteCost& cost) {
    const Transfer& transfer = schedule_.transfers[id.index()];
    const Rank src = schedule_.src(transfer);
    Longest before;
    const std::size_t first = transfer.first_slice.index();
    const std::size_t read = transfer.reads_input != 0 ? 0 : transfer.slice_count;  // An input is there from the start.
    for (std::size_t slice = first; slice < first + read; ++slice) {
      for (const TransferId earlier : moves_.of(slice)) {
        if (earlier >= id) break;
        if (schedule_.dst(schedule_.transfers[earlier.index()]) != src) continue;
        before.fill = std::max(before.fill, longest_[earlier.index()].fill);
        before.latency = std::max(before.latency, longest_[earlier.index()].latency);
      }
    }
    return longest_[id.index()] = {static_cast<float>(before.fill + cost.seconds_per_byte),
                                   static_cast<float>(before.latency + cost.latency)};
  }

 private:
  const Schedule& schedule_;
  SliceMoves moves_;
  std::vector<Longest> longest_;  // by transfer
};

std::int64_t run_length(const Schedule& schedule, const Transfer& transfer) {
  const Slice& first = schedule.slices[transfer.first_slice.index()];
  const Slice& last = schedule.slices[transfer.first_slice.index() + transfer.slice_count - 1];
  return last.offset + last.length - first.offset;
}

/// After how many of its places a ring repeats; all of them where it does not. Knuth, Morris and Pratt's failure
/// function: border[i] is the longest proper border of the first i.
std::size_t period_of(const std::vector<double>& hops) {
  std::vector<std::size_t> border(hops.size() + 1, 0);
  std::size_t length = 0;
  for (std::size_t i = 1; i < hops.size(); ++i) {
    while (length > 0 && hops[i] != hops[length]) length = border[length];
    if (hops[i] == hops[length]) ++length;
    border[i + 1] = length;
  }
  const std::size_t period = hops.size() - border.back();
  return hops.size() % period == 0 ? period : hops.size();
}

/// The chain of so many steps from a place on.
double chain_from(const std::vector<double>& hops, std::size_t place, std::uint64_t steps) {
  float chain = 0;
  for (std::uint64_t step = 0; step < steps; ++step) {
    chain = static_cast<float>(chain + hops[place]);
    place = place + 1 == hops.size() ? 0 : place + 1;
  }
  return chain;
}

/// The longest chain of a ring whose hops cost this: a shard's, of those that begin at each place.
double longest_round(const std::vector<double>& hops, std::uint64_t steps) {
  constexpr std::uint64_t max_steps = 64'000'000;  // One after the other; past them, sums of windows.
  const std::size_t starts = period_of(hops);
  double longest = 0;
  if (steps <= max_steps / starts) {
    for (std::size_t start = 0; start < starts; ++start) longest = std::max(longest, chain_from(hops, start, steps));
    return longest;
  }
  double round = 0;
  for (const double hop : hops) round += hop;
  const std::uint64_t rounds = steps / hops.size(), rest = steps % hops.size();
  double window = 0;
  for (std::size_t i = 0; i < rest; ++i) window += hops[i];
  for (std::size_t start = 0; start < hops.size(); ++start) {
    longest = std::max(longest, window);
    window += hops[(start + rest) % hops.size()] - hops[start];
  }
  return static_cast<double>(rounds) * round + longest;
}

}  // namespace

ChunkModel::ChunkModel(const Schedule& schedule, const Topology& topology)
    : load_time_(to_double(compute_loads(schedule, topology).time_per_byte)),
      rank_count_(schedule.collective.rank_count) {
  std::vector<RouteCost> costs;
  for (std::size_t i = 0; i < schedule.route_count(); ++i) {
    costs.push_back(cost_of(schedule.route(RouteId(i)), topology));
  }
  const auto note = [&](const RouteCost& cost, double filled, double latest) {
    chain_fill_ = std::max(chain_fill_, filled);
    has_chains_ = has_chains_ || latest > static_cast<float>(cost.latency);
    chain_latency_ = std::max(chain_latency_, latest);
  };
  std::optional<FewMoves> few;
  if (PlaceTable<float>::is_sparse(end_count(schedule), schedule.slices.size())) few.emplace(schedule);
  if (few && few->are_few()) {
    for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
      const RouteCost& cost = costs[schedule.transfers[i].route.index()];
      const FewMoves::Longest longest = few->extend(TransferId(i), cost);
      note(cost, longest.fill, longest.latency);
    }
  } else {
    Chains fill(end_count(schedule), schedule.slices.size());
    Chains latency(end_count(schedule), schedule.slices.size());
    for (const Transfer& transfer : schedule.transfers) {
      const RouteCost& cost = costs[transfer.route.index()];
      const Rank src = schedule.src(transfer);
      const Rank dst = schedule.dst(transfer);
      const double filled = fill.extend(src, dst, transfer, cost.seconds_per_byte);
      note(cost, filled, latency.extend(src, dst, transfer, cost.latency));
    }
  }
  const double bytes_per_unit = to_double(schedule.collective.extent()) / static_cast<double>(schedule.units);
  for (const Transfer& transfer : schedule.transfers) {
    const RouteCost& cost = costs[transfer.route.index()];
    const auto units = static_cast<double>(run_length(schedule, transfer));
    overhead_bytes_ = std::max(overhead_bytes_, cost.overhead_bytes);
    largest_transfer_ = std::max(largest_transfer_, units * bytes_per_unit);
    hops_ += cost.hops;
  }
}

ChunkModel ChunkModel::of_rings(std::span<const RingWalk> walks, const Topology& topology) {
  const Schedule outline = make_outline(walks, topology);
  const std::uint64_t steps = walks.front().steps();
  ChunkModel model;
  model.load_time_ = to_double(compute_loads(outline, topology).time_per_byte * steps);
  model.rank_count_ = outline.collective.rank_count;
  const double bytes_per_unit =
      static_cast<double>(outline.collective.extent_factor()) / static_cast<double>(outline.units);
  std::size_t first = 0;
  for (const RingWalk& walk : walks) {
    std::vector<double> fill, latency;
    for (std::size_t place = 0; place < walk.order.size(); ++place) {
      const Transfer& transfer = outline.transfers[first + place];
      const RouteCost cost = cost_of(outline.route(transfer.route), topology);
      const auto units = static_cast<double>(run_length(outline, transfer));
      fill.push_back(cost.seconds_per_byte);
      latency.push_back(cost.latency);
      model.overhead_bytes_ = std::max(model.overhead_bytes_, cost.overhead_bytes);
      model.largest_transfer_ = std::max(model.largest_transfer_, units * bytes_per_unit);
      model.hops_ += cost.hops;
    }
    model.chain_fill_ = std::max(model.chain_fill_, longest_round(fill, steps));
    model.chain_latency_ = std::max(model.chain_latency_, longest_round(latency, steps));
    first += walk.order.size();
  }
  model.hops_ *= static_cast<double>(steps);
  return model;
}

Bytes ChunkModel::choose(Bytes size) const {
  const auto bytes = static_cast<double>(size.count);
  constexpr double fill_share = 0.005;
  double chunk = chain_fill_ > 0 ? fill_share * load_time_ * bytes / chain_fill_ : 0;
  if (overhead_bytes_ > 0 && chain_fill_ > 0) {
    // Least of load x (1 + overhead bytes / c) + c x fill.
    chunk = std::max(chunk, std::sqrt(load_time_ * bytes * overhead_bytes_ / chain_fill_));
  }
  const double largest = std::max(largest_transfer_ * bytes, 1.0);
  std::int64_t power = smallest_chunk.count;
  while (static_cast<double>(power) * 2 <= chunk && static_cast<double>(power) < largest) power *= 2;
  return std::max(Bytes{power}, smallest_within(size, max_chunk_hops));
}

Bytes ChunkModel::smallest_within(Bytes size, double most) const {
  const double largest = largest_transfer_ * static_cast<double>(size.count);
  Bytes chunk = smallest_chunk;
  while (static_cast<double>(chunk.count) < largest && chunk_hops(size, chunk) > most) chunk.count *= 2;
  return chunk;
}

std::uint32_t ChunkModel::rounds_ahead(Bytes size, Bytes chunk) const {
  constexpr double few = 4;
  const double load = load_time(size);
  const double rounds =
      std::ceil(largest_transfer_ * static_cast<double>(size.count) / static_cast<double>(chunk.count));
  if (!has_chains_ || load <= 0) return 0;
  const double ahead = few + std::ceil(chain_latency_ * rounds / load);
  return ahead < std::min(rounds, max_rounds_ahead) ? static_cast<std::uint32_t>(ahead) : 0;
}

double ChunkModel::min_time(Bytes size) const { return std::max(chain_latency_, load_time(size)); }

}  // namespace espalier::planners
