#pragma once

// Tested by: tests/unit/compare/compare_timelines_test.cpp

#include <optional>
#include <string>
#include <vector>

#include "compare/critical_chain.h"
#include "compare/pairing.h"
#include "compare/statistics.h"

namespace espalier::compare {

/// A duration in both timelines.
struct Duration {
  Picoseconds a;
  Picoseconds b;
  /// (a - b) / b.
  [[nodiscard]] double error() const {
    return relative_error(static_cast<double>(a.count), static_cast<double>(b.count));
  }
};

struct PhaseComparison {
  Phase phase = Phase::send;
  std::size_t pairs = 0;
  std::size_t only_a = 0;  ///< Spans without a counterpart.
  std::size_t only_b = 0;
  Duration total;          ///< Summed over the pairs.
  ErrorSummary durations;  ///< Of the relative errors of single spans.
  Picoseconds begin_lag;   ///< Median over the pairs of b's begin less a's, each from its own start.
};

struct LinkComparison {
  std::string name;
  std::size_t chunks = 0;  ///< Spans, or ways of chunks, in a.
  Duration busy;           ///< Time with at least one of them.
};

/// One rank (or relay); all moments from the start of the timeline.
struct RankComparison {
  std::string name;
  Duration start;    ///< Its first span begins.
  Duration finish;   ///< Its last span ends.
  Duration busy;     ///< Time with at least one span.
  Duration waiting;  ///< finish less busy: what it spent on nothing before it was done.
  Duration on_path;  ///< For how much of the critical path it was waited for (path_by_rank.h).
};

/// The error of transfers' durations, from the first begin to the last end of their paired spans.
struct TransferComparison {
  ErrorSummary errors;
  TransferId worst;
  std::string worst_way;  ///< "gpu0>gpu3"
  Duration worst_duration;
};

/// A run of steps of a critical path that belong to one transfer.
struct PathTransfer {
  TransferId transfer;
  std::string way;    ///< "gpu0>gpu3"
  Picoseconds begin;  ///< From the start of the timeline.
  Picoseconds until;
  Picoseconds waited;  ///< Nothing of the path ran, at its end.
};

struct PathComparison {
  std::vector<PathTransfer> a;
  std::vector<PathTransfer> b;
  std::size_t common = 0;  ///< So many transfers from the start are the same in both.
  double shared = 0;       ///< The part of b's path that is spent on transfers of a's path.
};

struct TimelineComparison {
  Duration total;  ///< From the first begin to the last end.
  std::vector<PhaseComparison> phases;
  std::vector<LinkComparison> links;   ///< Largest absolute error first.
  bool links_by_way = false;           ///< From send to recv of the chunks that cross the link, for lack of wire spans.
  std::vector<RankComparison> ranks;   ///< In lane order; those without spans are left out.
  std::optional<std::size_t> laggard;  ///< The rank whose finish in b is latest against a; nothing without ranks.
  /// Whom b's critical path waits for longer than a's: by a twentieth of b, and by a quarter more than for any other.
  std::optional<std::size_t> culprit;
  TransferComparison transfers;
  PathComparison path;
  bool by_transfer = false;
  std::vector<std::string> notes;
};

/// Lays two timelines over each other (docs/compare.md). `a` is the prediction, `b` what it is held against; each
/// counts from its own first span. A timeline compared with itself has no error, whatever is in it. Cost: O(n log n) in
/// the number of spans.
TimelineComparison compare_timelines(Timeline a, Timeline b, const KnownSchedule& known = {});

}  // namespace espalier::compare
