#pragma once

// Tested by: tests/unit/compare/compare_results_test.cpp

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compare/read/measurements.h"
#include "compare/statistics.h"
#include "schedule/timeline/timeline.h"

namespace espalier::compare {

/// The times of both files for one collective, size and algorithm; the median where a file has several runs.
struct ComparedSize {
  std::string collective;
  Bytes size;
  std::string algorithm;  ///< Empty where neither file names one; "ring vs tree" where the fastest are compared.
  double a = 0;           ///< Seconds.
  double b = 0;
  double error = 0;  ///< (a - b) / b.
};

/// A size at which the files disagree about which algorithm is fastest.
struct DifferentWinner {
  std::string collective;
  Bytes size;
  std::string a;
  std::string b;
  double cost = 0;  ///< What choosing a's winner costs by b's times: time over b's fastest, less 1.
};

struct AlgorithmErrors {
  std::string collective;
  std::string algorithm;
  ErrorSummary errors;
};

struct ResultsComparison {
  std::vector<ComparedSize> sizes;  ///< By collective, algorithm and size.
  std::vector<AlgorithmErrors> algorithms;
  ErrorSummary errors;                     ///< Over all sizes.
  std::size_t worst = 0;                   ///< Index into `sizes`.
  std::size_t compared_winners = 0;        ///< Sizes at which both files have the same two or more algorithms.
  std::vector<DifferentWinner> different;  ///< In size order.
  std::size_t only_in_a = 0;               ///< Rows without a counterpart.
  std::size_t only_in_b = 0;
  std::vector<std::string> notes;
};

/// As the algorithm of `compare_results`: the fastest of each file at each size.
inline constexpr std::string_view fastest_of_each = "best";

/// Pairs the rows of two files by collective, size and algorithm. A row without an algorithm (nccl-tests) pairs with
/// any algorithm that is the only one of the other file, and with the fastest at its size where there are several;
/// "auto" also pairs with the algorithm that it chose. With an `algorithm`, only its rows are compared where a file
/// names algorithms; with "best", the fastest of each file. Rows of pairs of ranks pair by these, too, where both files
/// name them. Errors: invalid_input when no two rows pair or a file lacks
/// the algorithm, saying what each file has, and when a prediction is for another number of ranks than was measured.
Result<ResultsComparison> compare_results(const Measurements& a, const Measurements& b,
                                          const std::string& algorithm = {});

/// A timeline as one row: its title names collective, algorithm and size, its spans last from the first to the last.
/// Errors: invalid_input when the title says none of that.
Result<Measurements> measurements_of(const Timeline& timeline, const std::string& file);

}  // namespace espalier::compare
