#pragma once

// Tested by: tests/unit/sweep/guarded/guarded_items_test.cpp

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace espalier::sweep {

/// Takes what an item gave, a line without its end. An error ends the work.
using OnLine = std::function<Result<void>(std::size_t item, std::string_view line)>;

/// Does an item and hands over one line; called by several threads at once. Errors end the work.
using DoItem = std::function<Result<std::string>(std::size_t item)>;

/// Numbered items done in processes of their own (sweep/guarded/worker.h). An item whose process ends, and does so
/// again where it is alone, is lost; all others give what they would.
class GuardedItems {
 public:
  /// Starts them. Requires: no other threads here, as it forks.
  GuardedItems(std::vector<std::size_t> items, unsigned threads, DoItem work);
  ~GuardedItems();
  GuardedItems(const GuardedItems&) = delete;
  GuardedItems& operator=(const GuardedItems&) = delete;

  /// Hands over every item's line, or as lost what its process said. Called once. Errors: those of `on_line`, `on_lost`
  /// and the work; unavailable where no process can be started.
  Result<void> read(const OnLine& on_line, const OnLine& on_lost);

 private:
  std::vector<std::size_t> items_;
  unsigned threads_;
  DoItem work_;
  pid_t supervisor_ = -1;
  int lines_ = -1;
};

}  // namespace espalier::sweep
