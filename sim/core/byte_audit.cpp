#include "sim/core/byte_audit.h"

#include "sim/core/workload.h"

namespace espalier::sim {

void ByteAudit::expect(const CompiledSchedule& compiled, const Chunking& chunking, std::uint32_t payload_ppm) {
  for (const Transfer& transfer : compiled.schedule().transfers) {
    const Pieces pieces = chunking.pieces(transfer);
    std::int64_t wire = 0;
    for (std::uint32_t c = 0; c < pieces.count; ++c) wire += on_the_wire(chunking.bytes(pieces, c), payload_ppm);
    const Path& path = compiled.path(transfer);
    for (std::uint32_t step = path.begin; step < path.end_of(transfer); ++step) {
      expected_[compiled.steps()[step]] += step < path.end ? wire : pieces.bytes;
    }
  }
}

bool ByteAudit::balances(std::span<const Server> servers) const {
  for (std::size_t i = 0; i < servers.size(); ++i) {
    if (servers[i].bytes != expected_[i]) return false;
  }
  return true;
}

}  // namespace espalier::sim
