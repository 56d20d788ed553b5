#include "sim/core/history.h"

#include <algorithm>
#include <utility>

namespace espalier::sim {

History::History(RunId run, const CompiledSchedule& compiled, Chunking chunking, std::int32_t payload_ppm,
                 const Network& network, ModelKind kind)
    : run_(run),
      compiled_(&compiled),
      chunking_(std::move(chunking)),
      payload_ppm_(payload_ppm),
      network_(&network),
      kind_(kind),
      entries_(compiled.schedule().collective.rank_count, never),
      lane_holds_(compiled.lanes().first.size()) {
  std::uint64_t chunks = 0;
  std::uint64_t services = 0;
  const std::vector<Transfer>& transfers = compiled.schedule().transfers;
  first_chunk_.reserve(transfers.size());
  first_service_.reserve(transfers.size());
  for (const Transfer& transfer : transfers) {
    first_chunk_.push_back(chunks);
    first_service_.push_back(services);
    const std::uint64_t count = chunking_.pieces(transfer).count;
    chunks += count;
    services += count * compiled.path(transfer).steps_of(transfer);
  }
  ready_.resize(chunks);
  origins_.resize(chunks);
  services_.resize(services);
}

void History::entered(Rank rank, std::int64_t time) {
  entries_[rank.index()] = time;
  if (first_entered_.is_none()) first_entered_ = rank;
}

void History::trace(ChunkId chunk, ChunkTrace& trace) const {
  const Transfer& transfer = compiled_->schedule().transfers[chunk.transfer.index()];
  const Path& path = compiled_->path(transfer);
  trace.ready = ready_[index(chunk)];
  trace.origin = origins_[index(chunk)];
  trace.steps.clear();
  const std::uint64_t first =
      first_service_[chunk.transfer.index()] + std::uint64_t{chunk.chunk} * path.steps_of(transfer);
  const auto hold = holds_.find(index(chunk));
  trace.hold = hold == holds_.end() ? Hold{} : hold->second;
  std::int64_t asked = std::max(trace.ready + path.overhead, trace.hold.until);
  std::int64_t last_byte = asked;
  for (std::uint32_t i = 0; i < path.steps_of(transfer); ++i) {
    ChunkTrace::Step step;
    step.resource = compiled_->steps()[path.begin + i];
    const Resource& resource = network_->resources()[step.resource];
    step.asked = path.begin + i == path.end ? last_byte : asked;
    step.entry = services_[first + i].entry;
    step.busy = services_[first + i].done - step.entry;
    step.leave = std::max(step.entry + step.busy, last_byte);
    step.beyond = step.leave + resource.latency;
    asked = (resource.each > 0 ? step.leave : step.entry) + resource.latency;
    last_byte = step.beyond;
    trace.steps.push_back(step);
  }
}

}  // namespace espalier::sim
