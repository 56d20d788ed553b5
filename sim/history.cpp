#include "sim/history.h"

#include <algorithm>

namespace espalier::sim {

History::History(const Schedule& schedule, const Chunking& chunking, const Network& network)
    : schedule_(&schedule), chunking_(&chunking), network_(&network) {
  std::uint64_t chunks = 0;
  std::uint64_t entries = 0;
  first_chunk_.reserve(schedule.transfers.size());
  first_entry_.reserve(schedule.transfers.size());
  for (const Transfer& transfer : schedule.transfers) {
    first_chunk_.push_back(chunks);
    first_entry_.push_back(entries);
    const std::uint64_t count = chunking.pieces(transfer).count;
    chunks += count;
    entries += count * network.paths[transfer.route.index()].steps_of(transfer);
  }
  ready_.resize(chunks);
  origins_.resize(chunks);
  entries_.resize(entries);
}

void History::trace(ChunkId chunk, ChunkTrace& trace) const {
  const Transfer& transfer = schedule_->transfers[chunk.transfer.index()];
  const Path& path = network_->paths[transfer.route.index()];
  const Bytes bytes{chunking_->chunk(chunking_->pieces(transfer), chunk.chunk).length()};
  trace.ready = ready_[index(chunk)];
  trace.origin = origins_[index(chunk)];
  trace.steps.clear();
  const std::uint64_t first_entry =
      first_entry_[chunk.transfer.index()] + std::uint64_t{chunk.chunk} * path.steps_of(transfer);
  std::int64_t asked = trace.ready + path.overhead;
  std::int64_t last_byte = asked;
  for (std::uint32_t i = 0; i < path.steps_of(transfer); ++i) {
    ChunkTrace::Step step;
    step.resource = network_->steps[path.begin + i];
    const Resource& resource = network_->resources[step.resource];
    step.asked = path.begin + i == path.end ? last_byte : asked;
    step.entry = entries_[first_entry + i];
    step.busy = transfer_time(bytes, Bandwidth{resource.bytes_per_second}).count;
    step.leave = std::max(step.entry + step.busy, last_byte);
    step.beyond = step.leave + resource.latency;
    asked = step.entry + resource.latency;
    last_byte = step.beyond;
    trace.steps.push_back(step);
  }
}

}  // namespace espalier::sim
