#pragma once

// Tested by: tests/unit/schedule/dependencies_test.cpp

#include <cstdint>
#include <span>
#include <vector>

#include "schedule/schedule.h"

namespace espalier {

class SliceMoves;

/// Why a transfer waits for an earlier one.
enum class Wait : std::uint8_t {
  arrival,    ///< It reads or replaces at its source or destination what the earlier one wrote there.
  departure,  ///< It writes over what the earlier one reads at its own source.
};

struct Dependency {
  std::uint32_t transfer_value : 31 = 0;
  std::uint32_t on_departure : 1 = 0;

  [[nodiscard]] TransferId transfer() const { return TransferId(transfer_value); }
  [[nodiscard]] Wait wait() const { return on_departure != 0 ? Wait::departure : Wait::arrival; }
};

/// What each transfer waits for, derived from the program order (docs/schedule.md, "Order"). Two accesses of one slice
/// at one rank keep their order unless both only read it or both reduce into it. Order on a channel is not listed here:
/// the transfers of one channel from one rank to another are sent in program order.
class Dependencies {
 public:
  /// Requires: at most max_transfers and ids in range (rule S1).
  /// Cost: about linear in the slice moves; 12 bytes per transfer and four per dependency that is kept. Transfers of
  /// one slice that wait for the same ones (all that read a sum of many) share their list.
  explicit Dependencies(const Schedule& schedule);

  /// Earlier transfers in id order, each once: who waits for an arrival need not wait for the departure before it.
  /// Waits that follow from others are left out where that is cheap to see, and may be listed where it is not.
  [[nodiscard]] std::span<const Dependency> of(TransferId transfer) const {
    return std::span(list_).subspan(begins_[transfer.index()], counts_[transfer.index()]);
  }

  /// Whether any transfer waits for a departure, and for that of this one.
  [[nodiscard]] bool wait_for_departures() const { return !departure_is_awaited_.empty(); }
  [[nodiscard]] bool departure_is_awaited(TransferId transfer) const {
    return wait_for_departures() && departure_is_awaited_[transfer.index()] != 0;
  }

 private:
  void keep(TransferId transfer, std::span<const Dependency> waits);
  /// Transfers of several slices: the union of what each slice waits for.
  void gather_runs(const Schedule& schedule, const SliceMoves& moves);

  std::vector<std::uint64_t> begins_;
  std::vector<std::uint32_t> counts_;
  std::vector<Dependency> list_;
  std::vector<char> departure_is_awaited_;  ///< By transfer; empty where no departure is.
};

}  // namespace espalier
