#include "sim/contention_free/walk_ring.h"

#include <algorithm>
#include <string>
#include <utility>

#include "schedule/chunking.h"
#include "sim/compiled/compiled_schedule.h"
#include "sim/core/workload.h"
#include "sim/link/link_service.h"

namespace espalier::sim {
namespace {

tl::unexpected<Error> not_walkable(const std::string& why) {
  return fail(ErrorCode::unsupported, "this ring cannot be walked: " + why,
              "simulate the stored schedule, on fewer ranks");
}

class RingSimulation {
 public:
  /// The `ring`-th of `rings`, whose transfers the outline has behind those of the rings before it.
  RingSimulation(const RingWalk& walk, std::size_t ring, std::size_t rings, const CompiledSchedule& compiled,
                 const Chunking& chunking, const Network& network, const Options& options)
      : walk_(walk),
        first_((ring - walk.piece) * walk.order.size() + walk.piece),
        transfers_per_step_(rings * walk.order.size()),
        compiled_(compiled),
        network_(network),
        options_(options),
        service_(network, options.conditions),
        size_(walk.order.size()) {
    is_stored_form_ = walk.pieces == 1;  // Pieces of parallel links may differ in their jitter.
    cut_shards(chunking);
  }

  /// False when a chunk would queue on its way.
  bool run() {
    places_ = find_period();
    const std::size_t chunks = max_chunks_;
    left_.assign(places_, options_.launch.count);
    asked_.assign(places_, options_.launch.count);
    arrived_.assign(places_ * chunks, options_.launch.count);
    before_.assign(places_ * chunks, options_.launch.count);
    const std::uint64_t steps = walk_.steps();
    for (std::uint64_t step = 0; step < steps; ++step) {
      const bool adds = step < walk_.first_copying_step();
      for (std::size_t place = 0; place < places_; ++place) {
        if (!carry(step, place, adds)) return false;
      }
      arrived_.swap(before_);
    }
    return true;
  }

  /// Adds what this ring did to what others did.
  void add_to(RingReport& result) const {
    const std::size_t copies = size_ / places_;
    result.places += places_;
    result.is_stored_form = result.is_stored_form && is_stored_form_;
    result.report.elapsed = {std::max(elapsed_, result.report.elapsed.count)};
    result.report.events += events_ * copies;
    for (std::size_t place = 0; place < size_; ++place) {
      const Path& path = path_of(place);
      const Path& worked_out = path_of(place % places_);
      for (std::uint32_t i = 0; i < path.end - path.begin; ++i) {
        const std::uint32_t resource = compiled_.steps()[path.begin + i];
        const Server& server = service_.server(compiled_.steps()[worked_out.begin + i]);
        if (resource < network_.link_count()) result.report.links[resource] = {server.bytes, {server.busy}};
      }
    }
  }

 private:
  [[nodiscard]] const Path& path_of(std::size_t place) const {
    return compiled_.path(compiled_.schedule().transfers[first_ + place]);
  }

  /// Lengths of the chunks of each place's shard; equal shards share theirs.
  void cut_shards(const Chunking& chunking) {
    for (std::size_t place = 0; place < size_; ++place) {
      const Pieces pieces = chunking.pieces(compiled_.schedule().transfers[first_ + place]);
      std::vector<std::int64_t> lengths;
      for (std::uint32_t c = 0; c < pieces.count; ++c) lengths.push_back(chunking.bytes(pieces, c));
      const auto known = std::ranges::find(cuts_, lengths);
      cut_of_shard_.push_back(static_cast<std::uint32_t>(known - cuts_.begin()));
      if (known != cuts_.end()) continue;
      max_chunks_ = std::max(max_chunks_, lengths.size());
      cuts_.push_back(std::move(lengths));
    }
  }

  [[nodiscard]] bool same_hop(std::size_t a, std::size_t b) const {
    const Path& first = path_of(a);
    const Path& second = path_of(b);
    if (first.overhead != second.overhead || first.reduce_end - first.begin != second.reduce_end - second.begin ||
        first.end - first.begin != second.end - second.begin ||
        first.first_link - first.begin != second.first_link - second.begin) {
      return false;
    }
    for (std::uint32_t i = 0; i < first.reduce_end - first.begin; ++i) {
      const Resource& one = network_.resources()[compiled_.steps()[first.begin + i]];
      const Resource& other = network_.resources()[compiled_.steps()[second.begin + i]];
      if (one.bytes_per_second != other.bytes_per_second || one.latency != other.latency || one.each != other.each) {
        return false;
      }
    }
    return true;
  }

  /// The least number of places after which everything repeats; all of them when nothing does.
  [[nodiscard]] std::size_t find_period() const {
    if (cuts_.size() != 1 || !service_.is_uniform()) return size_;
    // The failure function of Knuth, Morris and Pratt: border[i] is the longest proper border of the first i hops.
    std::vector<std::size_t> border(size_ + 1, 0);
    std::size_t length = 0;
    for (std::size_t i = 1; i < size_; ++i) {
      while (length > 0 && !same_hop(i, length)) length = border[length];
      if (same_hop(i, length)) ++length;
      border[i + 1] = length;
    }
    const std::size_t period = size_ - border[size_];
    return size_ % period == 0 ? period : size_;
  }

  /// Sends a place's shard of a step; false when a chunk would queue on its way.
  bool carry(std::uint64_t step, std::size_t place, bool adds) {
    const Path& path = path_of(place);
    const std::size_t shard = walk_.shard(step, place);
    const std::vector<std::int64_t>& cut = cuts_[cut_of_shard_[shard]];
    const std::int64_t* came = &before_[(place == 0 ? places_ - 1 : place - 1) * max_chunks_];
    std::int64_t* arrives = &arrived_[place * max_chunks_];
    const std::uint32_t end = adds ? path.reduce_end : path.end;
    const auto order = static_cast<std::uint32_t>(step * transfers_per_step_ + first_ + shard * walk_.pieces);
    std::int64_t departed = options_.launch.count;
    for (std::size_t c = 0; c < cut.size(); ++c) {
      // A chunk without bytes waits for its lane only, which here is that of all shards.
      if (cut[c] == 0) is_stored_form_ = false;
      const std::int64_t before = cut[c] == 0 ? left_[place] : step > 0 ? came[c] : departed;
      std::int64_t asked = ask_first(place, std::max(before, departed) + path.overhead);
      std::int64_t last_byte = asked;
      const ChunkInService chunk{cut[c], on_the_wire(cut[c], payload_ppm()), order, static_cast<std::uint32_t>(c)};
      for (std::uint32_t i = path.begin; i < end; ++i) {
        const std::uint32_t resource = compiled_.steps()[i];
        const std::int64_t free_at = service_.server(resource).free_at;
        if (i == path.begin) asked = std::max(asked, free_at);
        if (i == path.end) asked = last_byte;
        if (free_at > asked) return false;
        const auto passage = service_.serve(resource, chunk, i - path.begin, i == path.end, asked, last_byte);
        if (passage.done == never) return false;
        if (i == path.first_link) left_[place] = departed = passage.left;
        last_byte = passage.last_byte;
        asked = passage.head;
      }
      arrives[c] = last_byte;
      elapsed_ = std::max(elapsed_, last_byte);
    }
    events_ += cut.size() * (end - path.begin);
    return true;
  }

  /// When a chunk asks for its first resource. One that would ask before the shard ahead of it, as it may where
  /// messages cost time, asks when that does.
  std::int64_t ask_first(std::size_t place, std::int64_t time) {
    if (time < asked_[place]) is_stored_form_ = false;
    return asked_[place] = std::max(asked_[place], time);
  }

  [[nodiscard]] std::uint32_t payload_ppm() const { return static_cast<std::uint32_t>(options_.payload_ppm); }

  const RingWalk& walk_;
  std::size_t first_;
  std::size_t transfers_per_step_;
  const CompiledSchedule& compiled_;
  const Network& network_;
  const Options& options_;
  LinkService service_;
  std::size_t size_;
  std::vector<std::uint32_t> cut_of_shard_;
  std::vector<std::vector<std::int64_t>> cuts_;  // lengths of chunks
  std::size_t max_chunks_ = 1;
  std::size_t places_ = 0;
  std::vector<std::int64_t> left_;   // by place: when its latest chunk left
  std::vector<std::int64_t> asked_;  // by place: when its latest chunk asked
  bool is_stored_form_ = true;
  std::vector<std::int64_t> before_;   // by place and chunk: arrivals of the step before
  std::vector<std::int64_t> arrived_;  // and of this one
  std::int64_t elapsed_ = 0;
  std::uint64_t events_ = 0;
};

/// What all steps amount to, proven to fit.
Result<void> check_walk(const CompiledSchedule& compiled, const Network& network, const Chunking& chunking,
                        const Options& options, std::uint64_t ring_steps) {
  auto work = check_workload(compiled, network, chunking, options.payload_ppm, max_chunk_steps);
  if (!work) return tl::unexpected(work.error());
  if (work->steps > max_walked_steps / std::max<std::uint64_t>(ring_steps, 1)) {
    return fail(
        ErrorCode::too_large,
        "walking the ring would take more than " + std::to_string(max_walked_steps) + " steps of chunks over links",
        "use larger chunks");
  }
  work->steps *= ring_steps;
  work->time *= static_cast<std::int64_t>(ring_steps);
  return WorkLimit(options.conditions).add(*work);
}

Result<void> check_walks(std::span<const RingWalk> walks, const Topology& topology, const Options& options) {
  if (walks.empty()) return fail(ErrorCode::invalid_input, "no ring to walk", "give at least one");
  if (options.size.count < 0 || options.element_size < 1 || options.size.count % options.element_size != 0) {
    return fail(ErrorCode::invalid_input, "a message is not a whole number of elements",
                "use a multiple of their size");
  }
  for (const RingWalk& walk : walks) {
    if (auto checked = check_ring_walk(walk, topology); !checked) return checked;
    if (walk.weight < 1) return fail(ErrorCode::invalid_input, "a ring's weight is not positive", "use 1 or more");
    if (walk.collective != walks.front().collective) {
      return fail(ErrorCode::invalid_input, "rings of different collectives", "give rings that carry one buffer");
    }
  }
  return {};
}

}  // namespace

Result<RingReport> simulate_rings(std::span<const RingWalk> walks, const Topology& topology, const Options& options,
                                  const CopyEngines& engines) {
  if (auto checked = check_walks(walks, topology, options); !checked) return tl::unexpected(checked.error());
  if (auto checked = check_options(options, topology); !checked) return tl::unexpected(checked.error());
  if (auto checked = check_engines(engines); !checked) return tl::unexpected(checked.error());
  if (options.model != ModelKind::link) return not_walkable("only the model link walks rings");
  if (options.record_timeline || options.record_critical_path) {
    return not_walkable("nothing is kept that a timeline or critical path could be made of");
  }
  const Network network(topology, engines);
  const Schedule outline = make_outline(walks, topology);
  const auto compiled = CompiledSchedule::make_unverified(outline, topology, network);
  if (!compiled) return tl::unexpected(compiled.error());
  auto chunking = cut_into_chunks(outline, {options.size, options.chunk, options.element_size, options.payload_ppm});
  if (!chunking) return tl::unexpected(chunking.error());
  if (auto fits = check_walk(*compiled, network, *chunking, options, walks.front().steps()); !fits) {
    return tl::unexpected(fits.error());
  }
  if (compiled->shares_resources()) return not_walkable("two of its hops share a link, backplane or reduction");
  RingReport result;
  result.report.size = options.size;
  result.report.element_size = options.element_size;
  result.report.chunk = options.chunk;
  result.report.elapsed = options.launch;
  result.report.links.resize(network.link_count());
  for (std::size_t i = 0; i < walks.size(); ++i) {
    RingSimulation simulation(walks[i], i, walks.size(), *compiled, *chunking, network, options);
    if (!simulation.run()) return not_walkable("a chunk would queue on its way");
    simulation.add_to(result);
  }
  return result;
}

Result<RingReport> simulate_ring(const RingWalk& walk, const Topology& topology, const Options& options,
                                 const CopyEngines& engines) {
  return simulate_rings({&walk, 1}, topology, options, engines);
}

}  // namespace espalier::sim
