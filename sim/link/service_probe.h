#pragma once

// Tested by: tests/unit/sim/link/link_model_test.cpp

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "sim/core/waits.h"
#include "sim/run.h"

namespace espalier::sim {

/// Who is served by resources while somebody waits: Model::probe of the model link.
class ServiceProbe {
 public:
  void probe(std::span<const Probe> probes, std::size_t resources);

  [[nodiscard]] bool is_on() const { return !windows_.empty(); }

  /// A resource serves a chunk of a transfer from `entry` to `done`. Requires: in the order in which it serves.
  void served(std::uint32_t resource, const Run& run, TransferId transfer, std::int64_t entry, std::int64_t done);

  [[nodiscard]] std::vector<Blame> take() const;

 private:
  /// A wait at a resource.
  struct Window {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::uint32_t probe = 0;
  };
  using Key = std::tuple<std::uint32_t, std::uint32_t, RunId, Rank, Rank>;  // wait, resource, and who was in the way

  std::vector<std::vector<Window>> windows_;  // by resource, then by begin; empty when nothing is probed
  std::vector<std::size_t> next_;             // by resource: its first window that is not over
  std::map<Key, std::int64_t> times_;
};

}  // namespace espalier::sim
