#pragma once

// Tested by: tests/unit/sim/link/link_model_test.cpp

#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "schedule/chunking.h"
#include "sim/compiled/compiled_schedule.h"
#include "sim/link/server.h"

namespace espalier::sim {

#ifdef NDEBUG
inline constexpr bool checks_invariants = false;
#else
inline constexpr bool checks_invariants = true;
#endif

/// The bytes that resources have to carry for all runs, added up transfer by transfer and not as the model moves them:
/// in debug builds a model that is through compares.
class ByteAudit {
 public:
  explicit ByteAudit(std::size_t resource_count) : expected_(resource_count, 0), served_until_(resource_count, 0) {}

  /// A resource took a chunk at `entry` and was free again when it was done with it.
  void serve(std::uint32_t resource, std::int64_t entry, std::int64_t done) {
    ESPALIER_CHECK(entry >= served_until_[resource] && done >= entry, "a resource carries one chunk at a time");
    served_until_[resource] = done;
  }

  void expect(const CompiledSchedule& compiled, const Chunking& chunking, std::uint32_t payload_ppm);

  /// Whether every resource carried what was expected of it, neither more nor less.
  [[nodiscard]] bool balances(std::span<const Server> servers) const;

 private:
  std::vector<std::int64_t> expected_;      // bytes, by resource
  std::vector<std::int64_t> served_until_;  // by resource
};

}  // namespace espalier::sim
