#include "sim/core/workload.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "schedule/chunking.h"
#include "sim/compiled/compiled_schedule.h"
#include "sim/limits.h"
#include "sim/model.h"

namespace espalier::sim {
namespace {

/// Sums over the transfers of one route, or over what passes one resource.
struct Work {
  __int128 bytes = 0;
  std::uint64_t chunks = 0;

  void add(__int128 more_bytes, std::uint64_t more_chunks) {
    bytes += more_bytes;
    chunks += more_chunks;
  }
};

struct RouteWork {
  Work all;
  Work reduced;
};

Result<std::vector<RouteWork>> sum_by_route(const Schedule& schedule, const Chunking& chunking) {
  std::vector<RouteWork> work(schedule.route_count());
  std::uint64_t chunks = 0;
  for (const Transfer& transfer : schedule.transfers) {
    const Pieces pieces = chunking.pieces(transfer);
    chunks += pieces.count;
    if (pieces.count > max_chunks_per_transfer || chunks > max_chunks) {
      return fail(ErrorCode::too_large,
                  "the transfers would be cut into more chunks than the limit of " +
                      std::to_string(max_chunks_per_transfer) + " each and " + std::to_string(max_chunks) + " together",
                  "use larger chunks");
    }
    RouteWork& route = work[transfer.route.index()];
    route.all.add(pieces.bytes, pieces.count);
    if (transfer.reduces != 0) route.reduced.add(pieces.bytes, pieces.count);
  }
  return work;
}

/// What chunks take on a resource one after the other; each one's time is rounded up by less than 1 ps.
__int128 time_on(const Resource& resource, const Work& work) {
  return work.bytes * picoseconds_per_second / resource.bytes_per_second + 1 +
         static_cast<__int128>(work.chunks) * (static_cast<__int128>(resource.latency) + resource.each + 1);
}

}  // namespace

Result<void> check_transfers(const Schedule& schedule) {
  for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
    const Transfer& transfer = schedule.transfers[i];
    const std::size_t first = transfer.first_slice.index();
    if (transfer.route.index() >= schedule.route_count() || first >= schedule.slices.size() ||
        transfer.slice_count > schedule.slices.size() - first) {
      return fail(ErrorCode::invalid_input,
                  "transfer " + std::to_string(i) + " names a slice or route that the schedule does not have",
                  "verify the schedule first");
    }
  }
  return {};
}

Result<Chunking> cut_into_chunks(const Schedule& schedule, const RunOptions& options) {
  auto layout = Layout::make(schedule, options.size, options.element_size);
  if (!layout) return tl::unexpected(layout.error());
  if (options.chunk.count < options.element_size) {
    return fail(ErrorCode::invalid_input,
                "a chunk of " + std::to_string(options.chunk.count) + " bytes is smaller than an element of " +
                    std::to_string(options.element_size),
                "use chunks of at least one element");
  }
  if (options.ahead > max_ahead) {
    return fail(ErrorCode::invalid_input,
                std::to_string(options.ahead) + " rounds ahead are more than " + std::to_string(max_ahead),
                "use less, or 0 for no limit");
  }
  if (options.payload_ppm < min_payload_ppm || options.payload_ppm > 1'000'000) {
    return fail(ErrorCode::invalid_input,
                "a payload of " + std::to_string(options.payload_ppm) + " millionths of what is on the wire",
                "give a part from 1 % to 100 %");
  }
  // A count past 32 bits is past the limit of steps too, and stays so when it is cut off here.
  constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
  const std::int64_t count = std::min(chunk_count(schedule, *layout, options.chunk), most);
  return Chunking(std::move(*layout), count);
}

Result<Workload> check_workload(const CompiledSchedule& compiled, const Network& network, const Chunking& chunking,
                                std::int32_t payload_ppm, std::uint64_t max_steps) {
  const Result<std::vector<RouteWork>> sums = sum_by_route(compiled.schedule(), chunking);
  if (!sums) return tl::unexpected(sums.error());
  constexpr __int128 enough = static_cast<__int128>(1) << 100;  // far past any limit
  __int128 steps = 0;
  Workload workload;
  for (std::size_t i = 0; i < sums->size(); ++i) {
    const RouteWork& route = (*sums)[i];
    const Path& path = compiled.paths()[i];
    workload.time += static_cast<__int128>(route.all.chunks) * path.overhead;
    for (std::uint32_t step = path.begin; step < path.reduce_end; ++step) {
      const Work& work = step < path.end ? route.all : route.reduced;
      // A byte more per chunk, for those that are rounded up to whole bytes on the wire.
      const __int128 wire = work.bytes * 1'000'000 / payload_ppm + static_cast<__int128>(work.chunks);
      const Resource& resource = network.resources()[compiled.steps()[step]];
      workload.time += time_on(resource, payload_ppm == 1'000'000 ? work : Work{wire, work.chunks});
      workload.time = std::min(workload.time, enough);
      steps += work.chunks;
    }
  }
  if (steps > max_steps) {
    return fail(ErrorCode::too_large,
                "the simulation would take more than " + std::to_string(max_steps) + " steps of chunks over links",
                "use larger chunks, or record neither timeline nor critical path");
  }
  workload.steps = static_cast<std::uint64_t>(steps);
  return workload;
}

Result<void> WorkLimit::add(const Workload& work) {
  time_ += work.time + work.time * jitter_ppm_ / 1'000'000 + static_cast<__int128>(work.steps);
  if (time_ <= max_simulated_time - latest_entry) return {};
  return fail(ErrorCode::too_large, "the simulated time could pass the limit of 2^61 ps (26 days)",
              "simulate a smaller message");
}

}  // namespace espalier::sim
