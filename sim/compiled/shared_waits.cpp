#include "sim/compiled/shared_waits.h"

#include <span>
#include <unordered_map>

namespace espalier::sim {
namespace {

/// Shorter lists, and those of fewer transfers, are as quick to look at again.
constexpr std::size_t min_length = 4;
constexpr std::uint32_t min_users = 4;

}  // namespace

SharedWaits::SharedWaits(const Schedule& schedule, const Dependencies& dependencies) {
  const auto for_long = [&](const auto& visit) {
    for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
      const std::span<const Dependency> waits = dependencies.of(TransferId(i));
      // Of several slices nothing is shared.
      if (waits.size() >= min_length && schedule.transfers[i].slice_count == 1) visit(i, waits.data());
    }
  };
  struct List {
    std::uint32_t users = 0;
    std::uint32_t index = none;
  };
  std::unordered_map<const Dependency*, List> lists;
  for_long([&](std::size_t, const Dependency* list) { ++lists[list].users; });
  for_long([&](std::size_t i, const Dependency* begin) {
    List& list = lists[begin];
    if (list.users < min_users) return;
    if (list.index == none) list.index = count_++;
    if (list_of_.empty()) list_of_.assign(schedule.transfers.size(), none);
    list_of_[i] = list.index;
  });
}

}  // namespace espalier::sim
