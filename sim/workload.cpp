#include "sim/workload.h"

#include <string>
#include <vector>

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
    route.all.add(pieces.range.length(), pieces.count);
    if (transfer.reduces != 0) route.reduced.add(pieces.range.length(), pieces.count);
  }
  return work;
}

/// What all chunks take one after the other; every chunk's time on a resource is rounded up by less than 1 ps.
Result<void> check_time(const Network& network, const std::vector<Work>& by_resource, __int128 overheads) {
  __int128 time = overheads;
  for (std::size_t i = 0; i < by_resource.size(); ++i) {
    const Work& work = by_resource[i];
    const Resource& resource = network.resources[i];
    bool fits = work.bytes <= max_simulated_time;
    if (fits) {
      time += transfer_time_wide(Bytes{static_cast<std::int64_t>(work.bytes)}, Bandwidth{resource.bytes_per_second});
      time += static_cast<__int128>(work.chunks) * (resource.latency + 1);
      fits = time <= max_simulated_time;
    }
    if (!fits) {
      return fail(ErrorCode::too_large, "the simulated time could pass the limit of 2^62 ps (53 days)",
                  "simulate a smaller message");
    }
  }
  return {};
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

Result<std::uint64_t> check_workload(const Schedule& schedule, const Chunking& chunking, const Network& network,
                                     std::uint64_t max_steps) {
  const Result<std::vector<RouteWork>> sums = sum_by_route(schedule, chunking);
  if (!sums) return tl::unexpected(sums.error());
  const std::vector<RouteWork>& by_route = *sums;
  std::vector<Work> by_resource(network.resources.size());
  __int128 steps = 0;
  __int128 overheads = 0;
  for (std::size_t i = 0; i < by_route.size(); ++i) {
    const Path& path = network.paths[i];
    overheads += static_cast<__int128>(by_route[i].all.chunks) * path.overhead;
    for (std::uint32_t step = path.begin; step < path.reduce_end; ++step) {
      const Work& work = step < path.end ? by_route[i].all : by_route[i].reduced;
      by_resource[network.steps[step]].add(work.bytes, work.chunks);
      steps += work.chunks;
    }
  }
  if (steps > max_steps) {
    return fail(ErrorCode::too_large,
                "the simulation would take more than " + std::to_string(max_steps) + " steps of chunks over links",
                "use larger chunks, or record neither timeline nor critical path");
  }
  if (auto checked = check_time(network, by_resource, overheads); !checked) return tl::unexpected(checked.error());
  return static_cast<std::uint64_t>(steps);
}

}  // namespace espalier::sim
