#pragma once

// Tested by: tests/unit/schedule/shares_test.cpp

#include <cstdint>
#include <vector>

#include "base/rational.h"
#include "base/units.h"
#include "schedule/collective.h"

namespace espalier {

/// Where the parts of a buffer begin that a collective speaks of: all of one length, but where shares are given.
/// Use while the collective lives.
class BufferParts {
 public:
  /// Requires: units >= 0; shares, where there are any, as why_bad_shares demands.
  BufferParts(const Collective& collective, std::int64_t units);

  /// Whether every part has a whole number of units. What follows requires it.
  [[nodiscard]] bool are_whole() const { return are_whole_; }
  [[nodiscard]] std::int64_t count() const { return count_; }
  /// The first unit of a part; for part == count() the number of all units.
  [[nodiscard]] std::int64_t begin(std::int64_t part) const {
    return begins_.empty() ? part * each_ : begins_[static_cast<std::size_t>(part)];
  }
  [[nodiscard]] std::int64_t length(std::int64_t part) const { return begin(part + 1) - begin(part); }
  /// The part that holds a unit. Requires: 0 <= unit < units. Cost: O(log ranks) with shares.
  [[nodiscard]] std::int64_t at(std::int64_t unit) const;

 private:
  std::int64_t count_;
  std::int64_t each_ = 0;             ///< Length of every part when all are equal.
  std::vector<std::int64_t> begins_;  ///< With shares: count + 1 entries.
  bool are_whole_;
};

/// How many of `elements` each rank's shard has: its share, rounded down, and of the elements left over one each for
/// those whose shares were rounded down the most, the lower rank first among equals (the method of largest remainders).
/// So every shard has its share to within one element, a larger share never has fewer, and none has none.
/// Requires: a kind with shards; elements >= 0. Cost: O(ranks log ranks).
std::vector<std::int64_t> deal_elements(const Collective& collective, std::int64_t elements);

/// How many of the elements each block of a traffic matrix has when a message has `elements`: its share of these,
/// rounded up, so a block that is not zero never vanishes, and a rank may send or receive an element more than the
/// message has for each of its blocks. Where the message is a whole multiple of the matrix, nothing is rounded.
/// Requires: a collective with a matrix; elements >= 0.
std::vector<std::int64_t> block_elements(const Collective& collective, std::int64_t elements);

/// The largest message whose equal parts (or exact shares) are all at most what whole elements give them. A bound
/// counts such parts, so it holds for this much of a message: a gather of 250 elements on 6 ranks may take as long as
/// one of 246, since the root's 42 need not move, and all others have 41 or 42. Where parts are not counted, the
/// message itself.
Bytes evenly_dealt(const Collective& collective, Bytes size, std::int64_t element_size);

/// The seconds that a bound proves for a message of whole elements: no run takes less.
Rational min_time(const Rational& time_per_byte, const Collective& collective, Bytes size, std::int64_t element_size);

/// The part of the bound's throughput that a time is: at most 1 on a right simulation. Of no time 1 where nothing has
/// to move, else 0.
double part_of_bound(const Rational& time_per_byte, const Collective& collective, Bytes size, std::int64_t element_size,
                     double seconds);

}  // namespace espalier
