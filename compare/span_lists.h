#pragma once

// Tested by: tests/property/compare/critical_chain_test.cpp

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "schedule/timeline/timeline.h"

namespace espalier::compare {

/// Spans by their index in a timeline.
using SpanIndex = std::uint32_t;

/// A list under levels of bests: of every 32 entries of a level the best one is an entry of the next. Finds the last
/// entry before a place that passes a test, provided that the best of several passes whenever one of them does.
/// Cost: O(log n) a search; 4 bytes for each entry and 4/31 for the levels.
class BestLevels {
 public:
  /// `is_better(x, y)`: x passes every test that y passes.
  template <class Better>
  void build(const Better& is_better) {
    for (std::size_t below = 0; levels_[below].size() > 1; ++below) {
      const std::vector<SpanIndex>& entries = levels_[below];
      std::vector<SpanIndex> bests;
      bests.reserve(entries.size() / fan_out + 1);
      for (std::size_t i = 0; i < entries.size(); ++i) {
        if (i % fan_out == 0) bests.push_back(entries[i]);
        if (is_better(entries[i], bests.back())) bests.back() = entries[i];
      }
      levels_.push_back(std::move(bests));
    }
  }

  [[nodiscard]] std::vector<SpanIndex>& entries() { return levels_.front(); }
  [[nodiscard]] const std::vector<SpanIndex>& entries() const { return levels_.front(); }

  /// The last entry that passes, of those from `first` to before `last`.
  template <class Passes>
  [[nodiscard]] std::optional<SpanIndex> last(std::size_t first, std::size_t last, const Passes& passes) const {
    std::size_t level = 0;
    for (std::size_t at = last; at > 0;) {
      if (at % fan_out == 0 && level + 1 < levels_.size()) {  // whole blocks are left: one level up
        at /= fan_out;
        ++level;
        continue;
      }
      if (!passes(levels_[level][--at])) continue;
      for (; level > 0; --level) at = last_of_block(level - 1, at, passes);
      return at < first ? std::nullopt : std::optional(entries()[at]);
    }
    return std::nullopt;
  }

 private:
  static constexpr std::size_t fan_out = 32;

  template <class Passes>
  [[nodiscard]] std::size_t last_of_block(std::size_t level, std::size_t block, const Passes& passes) const {
    std::size_t at = std::min((block + 1) * fan_out, levels_[level].size()) - 1;
    while (!passes(levels_[level][at])) --at;
    return at;
  }

  std::vector<std::vector<SpanIndex>> levels_{1};
};

/// Spans of some sort in lists by a key, each list in an order. Keys and ranks are of a span's index.
template <class Key>
class SpanLists {
 public:
  template <class Rank, class Belongs>
  SpanLists(std::span<const Span> spans, Key key, const Rank& rank, const Belongs& belongs) : key_(key) {
    std::vector<SpanIndex>& entries = levels_.entries();
    entries.reserve(static_cast<std::size_t>(std::ranges::count_if(spans, belongs)));
    for (std::size_t i = 0; i < spans.size(); ++i) {
      if (belongs(spans[i])) entries.push_back(static_cast<SpanIndex>(i));
    }
    std::ranges::sort(
        entries, [&](SpanIndex a, SpanIndex b) { return std::pair(key_(a), rank(a)) < std::pair(key_(b), rank(b)); });
  }

  /// Lets `last_of` take tests, as BestLevels has them.
  template <class Better>
  void prepare_tests(const Better& is_better) {
    levels_.build(is_better);
  }

  /// The last span of a list that passes, of those in time: the first so many of the list's order.
  template <class KeyValue, class InTime, class Passes>
  [[nodiscard]] std::optional<SpanIndex> last_of(const KeyValue& key, const InTime& is_in_time,
                                                 const Passes& passes) const {
    const std::vector<SpanIndex>& entries = levels_.entries();
    const auto first = std::ranges::lower_bound(entries, key, {}, key_);
    const auto after = std::ranges::upper_bound(first, entries.end(), key, {}, key_);
    const auto end = std::ranges::partition_point(first, after, is_in_time);
    return levels_.last(static_cast<std::size_t>(first - entries.begin()),
                        static_cast<std::size_t>(end - entries.begin()), passes);
  }

  [[nodiscard]] std::span<const SpanIndex> entries() const { return levels_.entries(); }

 private:
  Key key_;
  BestLevels levels_;
};

}  // namespace espalier::compare
