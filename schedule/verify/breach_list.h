#pragma once

// Tested by: tests/unit/schedule/verify/verify_test.cpp

#include <algorithm>
#include <cstdint>
#include <vector>

#include "schedule/verify/verify.h"

namespace espalier {

/// Collects breaches in any order and keeps the first `limit` in rule, then transfer order; the text of a breach that
/// would not be kept is never made.
class BreachList {
 public:
  explicit BreachList(std::size_t limit) : limit_(limit) {}

  /// `message` is called when the breach is among the first so far.
  template <class Message>
  void add(Rule rule, TransferId transfer, const Message& message) {
    ++count_;
    if (limit_ == 0) return;
    const auto before = [](const Breach& a, const Breach& b) {
      return a.rule != b.rule ? a.rule < b.rule : a.transfer < b.transfer;
    };
    Breach breach{rule, transfer, {}};
    const auto place = std::upper_bound(kept_.begin(), kept_.end(), breach, before);
    if (kept_.size() == limit_ && place == kept_.end()) return;
    breach.message = message();
    kept_.insert(place, std::move(breach));
    if (kept_.size() > limit_) kept_.pop_back();
  }

  [[nodiscard]] bool empty() const { return count_ == 0; }
  VerifyReport report() && { return {std::move(kept_), count_}; }

 private:
  std::size_t limit_;
  std::uint64_t count_ = 0;
  std::vector<Breach> kept_;
};

/// Whether rule S3 is looked at.
enum class Routes : std::uint8_t { checked, unchecked };

/// Rules S1 to S4.
void verify_structure(const Schedule& schedule, const Topology& topology, BreachList& breaches,
                      Routes routes = Routes::checked);
/// Rules S5 to S7 and S9. Requires: a schedule that keeps S1 to S4.
void verify_meaning(const Schedule& schedule, const Topology& topology, BreachList& breaches);
/// Rule S8. Requires: a schedule that keeps S1 to S4.
void verify_relays(const Schedule& schedule, const Topology& topology, BreachList& breaches);

}  // namespace espalier
