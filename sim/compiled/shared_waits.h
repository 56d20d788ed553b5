#pragma once

// Tested by: tests/differential/sim/shared_waits_test.cpp

#include <cstdint>
#include <limits>
#include <vector>

#include "schedule/dependencies.h"
#include "schedule/schedule.h"

namespace espalier::sim {

/// Which transfers wait for the same ones: all that send on a sum of many (schedule/dependencies.h). Who waits for that
/// sum is then worked out once for all of them: n ranks that each add up n parts and send the sum to n others would
/// otherwise take n^3 looks.
class SharedWaits {
 public:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  SharedWaits() = default;
  /// Cost: linear in the transfers; four bytes for each where anything is shared, nothing elsewhere.
  SharedWaits(const Schedule& schedule, const Dependencies& dependencies);

  [[nodiscard]] std::uint32_t count() const { return count_; }
  /// The list of dependencies that this transfer shares with others, or none. Transfers that share one carry the same
  /// slice.
  [[nodiscard]] std::uint32_t of(TransferId transfer) const {
    return list_of_.empty() ? none : list_of_[transfer.index()];
  }

 private:
  std::uint32_t count_ = 0;
  std::vector<std::uint32_t> list_of_;  // by transfer; empty where nothing is shared
};

}  // namespace espalier::sim
