#pragma once

// Tested by: tests/unit/diagnose/diagnose_test.cpp

#include <span>
#include <vector>

#include "diagnose/diagnose.h"
#include "diagnose/fault_search.h"

namespace espalier::diagnose {

/// Looks for two faults at once. Every pair of curves is held against what was measured as if a row took as long as the
/// slower of the two makes it; what fits best so is predicted, with the second part in every place that a symmetry of
/// the machine with the first does not make the same.
class PairSearch {
 public:
  /// `singles` are what one fault explains; all refer to the search's curves.
  PairSearch(const FaultSearch& search, std::span<const FaultClass> classes, const DiagnoseOptions& options)
      : search_(search), classes_(classes), options_(options) {}

  /// The likeliest pairs, none where the healthy machine explains all but noise.
  [[nodiscard]] std::vector<Hypothesis> find() const;

 private:
  /// Two kinds of faults of two classes, and how well they may fit together.
  struct Pair {
    const Curve* one = nullptr;
    const Curve* other = nullptr;
    double score = 0;
  };
  /// By rate: the logarithm of each row's time.
  using Logarithms = std::vector<std::vector<double>>;

  [[nodiscard]] Logarithms tabulate(const Curve& curve) const;
  [[nodiscard]] double score_of(const Logarithms& one, const Logarithms& other) const;
  [[nodiscard]] bool may_be_together(const Curve& one, const Curve& other) const;
  [[nodiscard]] std::vector<Pair> screen() const;
  /// The pairs that curves say fit best, sorted.
  [[nodiscard]] std::vector<Hypothesis> fit() const;
  [[nodiscard]] std::vector<Hypothesis> place(std::vector<Hypothesis> fitted) const;
  /// The pair with the second part in each place that differs; with the first two parts where nobody says which do.
  [[nodiscard]] std::vector<Hypothesis> places_of(const Hypothesis& pair) const;

  const FaultSearch& search_;
  std::span<const FaultClass> classes_;
  const DiagnoseOptions& options_;
};

}  // namespace espalier::diagnose
