#include "sim/history.h"

#include <algorithm>

namespace espalier::sim {

History::History(const Program& program, const Chunking& chunking, const Network& network)
    : program_(&program), network_(&network) {
  std::uint64_t chunks = 0;
  std::uint64_t services = 0;
  const std::vector<Transfer>& transfers = program.schedule().transfers;
  first_chunk_.reserve(transfers.size());
  first_service_.reserve(transfers.size());
  for (const Transfer& transfer : transfers) {
    first_chunk_.push_back(chunks);
    first_service_.push_back(services);
    const std::uint64_t count = chunking.pieces(transfer).count;
    chunks += count;
    services += count * program.path(transfer).steps_of(transfer);
  }
  ready_.resize(chunks);
  origins_.resize(chunks);
  services_.resize(services);
}

void History::trace(ChunkId chunk, ChunkTrace& trace) const {
  const Transfer& transfer = program_->schedule().transfers[chunk.transfer.index()];
  const Path& path = program_->path(transfer);
  trace.ready = ready_[index(chunk)];
  trace.origin = origins_[index(chunk)];
  trace.steps.clear();
  const std::uint64_t first =
      first_service_[chunk.transfer.index()] + std::uint64_t{chunk.chunk} * path.steps_of(transfer);
  std::int64_t asked = trace.ready + path.overhead;
  std::int64_t last_byte = asked;
  for (std::uint32_t i = 0; i < path.steps_of(transfer); ++i) {
    ChunkTrace::Step step;
    step.resource = program_->steps()[path.begin + i];
    const Resource& resource = network_->resources()[step.resource];
    step.asked = path.begin + i == path.end ? last_byte : asked;
    step.entry = services_[first + i].entry;
    step.busy = services_[first + i].done - step.entry;
    step.leave = std::max(step.entry + step.busy, last_byte);
    step.beyond = step.leave + resource.latency;
    asked = step.entry + resource.latency;
    last_byte = step.beyond;
    trace.steps.push_back(step);
  }
}

}  // namespace espalier::sim
