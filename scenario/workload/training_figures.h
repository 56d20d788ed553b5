#pragma once

// Tested by: tests/unit/scenario/workload/training_figures_test.cpp

#include <cstdint>
#include <optional>
#include <string>

#include "base/units.h"
#include "compute/training.h"
#include "scenario/workload/training.h"

namespace espalier::scenario {

/// What a rank keeps in its memory while it trains.
struct MemoryNeed {
  Bytes parameters;
  Bytes gradients;
  Bytes optimizer;    ///< Adam: two moments and, where parameters have less than 32 bits, a copy in 32 bits.
  Bytes activations;  ///< Of the micro-batches that are under way at once.

  [[nodiscard]] Bytes total() const { return parameters + gradients + optimizer + activations; }
};

/// What follows from the sizes of a training step alone.
struct TrainingFigures {
  std::int64_t ranks = 1;
  std::int64_t steps = 1;
  std::int64_t tokens = 0;                  ///< Of one step, all ranks together.
  double operations = 0;                    ///< Of one step, all ranks together; what is computed again does not count.
  FlopRate rate;                            ///< Of one rank, at its peak.
  std::int64_t place = 0;                   ///< The place of the pipeline whose ranks need the most memory.
  std::int64_t first_rank = 0;              ///< The first rank there, counted among those of the step.
  MemoryNeed memory;                        ///< Of a rank there.
  Bytes capacity;                           ///< Of a rank's memory; zero: not said.
  std::optional<compute::StepRange> range;  ///< Where measured steps lie beside such a simulation.
  std::string outside;                      ///< Why it is not what was measured; empty where it is.

  /// Tokens per second when all steps take so long together.
  [[nodiscard]] double tokens_per_second(Picoseconds elapsed) const;
  /// The part of the peak of all ranks that the model's own operations use: model FLOPs utilisation (A. Chowdhery et
  /// al., "PaLM: Scaling language modeling with Pathways", 2022, section 4.1).
  [[nodiscard]] double model_flops_utilisation(Picoseconds elapsed) const;
};

/// What a rank at a place of the pipeline keeps.
///
/// Parameters and gradients in their types; the optimizer's state takes 12 bytes per parameter of 16 bits (S.
/// Rajbhandari et al., "ZeRO: Memory optimizations toward training trillion parameter models", SC 2020, section 3.1),
/// 8 where parameters have 32 bits themselves. Sharding::optimizer divides the state by the data-parallel ranks,
/// Sharding::full parameters and gradients too; one layer is then there whole. Activations of a layer and micro-batch
/// by V. Korthikanti et al., "Reducing activation recomputation in large transformer models", MLSys 2023, table 2,
/// without the scores of attention, which kernels compute again; with `recomputes` the layer's input alone. The output
/// layer's scores in 32 bits at the last stage. Not counted: what frameworks and kernels keep. With a GPU it is all of
/// compute/memory.h instead. Requires: a model that add_training has accepted, with `data` given.
MemoryNeed memory_of_place(const TrainingModel& model, std::int64_t place);

/// Requires: as memory_of_place.
TrainingFigures figures_of(const TrainingModel& model);

}  // namespace espalier::scenario
