#include "engine/cuda/chunk_times.h"

#include <map>

namespace espalier::engine::cuda {
namespace {

/// Puts the steps of a chunk together.
class ChunkTable {
 public:
  void add(const BroughtChunk& chunk, std::uint32_t step) {
    const auto [known, is_new] = places_.try_emplace({chunk.transfer, chunk.chunk}, chunks_.size());
    if (is_new) chunks_.push_back(chunk);
    chunks_[known->second].steps.push_back(step);
  }
  std::vector<BroughtChunk> take() { return std::move(chunks_); }

 private:
  std::vector<BroughtChunk> chunks_;
  std::map<std::pair<TransferId, std::uint32_t>, std::size_t> places_;
};

}  // namespace

std::vector<BroughtChunk> find_brought_chunks(const DeviceProgram& program, std::optional<Rank> by) {
  ChunkTable table;
  for (const Block& block : program.blocks) {
    if (block.by_host || (by && block.rank != *by)) continue;
    for (std::uint32_t i = block.first_step; i < block.first_step + block.step_count; ++i) {
      const Step& step = program.steps[i];
      if (step.kind == StepKind::enter || step.kind == StepKind::finish || step.kind == StepKind::send) continue;
      const bool adds = step.kind == StepKind::reduce || step.kind == StepKind::receive_reduce;
      // Without a signal it is a rank's own part, which no transfer brings.
      if (step.signal != no_counter) {
        table.add({block.rank, step.transfer, step.chunk, adds ? Phase::reduce : Phase::recv, {}}, i);
      }
      for (std::uint32_t d = 0; step.kind < StepKind::send && d < step.destination_count; ++d) {
        const Destination& to = program.destinations[step.first_destination + d];
        table.add({to.rank, to.transfer, to.chunk, Phase::recv, {}}, i);
      }
    }
  }
  return table.take();
}

}  // namespace espalier::engine::cuda
