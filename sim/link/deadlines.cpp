#include "sim/link/deadlines.h"

#include <algorithm>

#include "sim/core/workload.h"

namespace espalier::sim {

Deadlines::Deadlines(const CompiledSchedule& compiled, const Chunking& chunking, const Network& network,
                     std::uint32_t payload_ppm, std::int64_t end)
    : latest_(network.resources().size(), end) {
  struct Work {
    __int128 bytes = 0;
    std::int64_t chunks = 0;
  };
  std::vector<Work> work(latest_.size());
  for (const Transfer& transfer : compiled.schedule().transfers) {
    const Pieces pieces = chunking.pieces(transfer);
    const Path& path = compiled.path(transfer);
    for (std::uint32_t step = path.begin; step < path.end_of(transfer); ++step) {
      Work& of_resource = work[compiled.steps()[step]];
      of_resource.bytes += step < path.end ? on_the_wire(pieces.bytes, payload_ppm) : pieces.bytes;
      of_resource.chunks += pieces.count;
    }
  }
  // Each chunk's time is rounded up, so that all of them together take no less than this.
  for (std::size_t i = 0; i < work.size(); ++i) {
    const Resource& resource = network.resources()[i];
    latest_[i] -= resource.each > 0
                      ? resource.each * work[i].chunks
                      : static_cast<std::int64_t>(work[i].bytes * picoseconds_per_second / resource.bytes_per_second);
  }
}

bool Deadlines::can_begin(std::int64_t now) const {
  return std::ranges::all_of(latest_, [&](std::int64_t latest) { return now <= latest; });
}

}  // namespace espalier::sim
