#pragma once

// Tested by: tests/unit/diagnose/diagnose_test.cpp

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/diagnose.h"
#include "diagnose/fault_search.h"

namespace espalier::diagnose {

/// Looks for two faults at once. What begins: pairs of curves, held against what was measured as if a row took as long
/// as the slower of the two makes it, and each fault that may be one of two with whatever explains most of the rest.
/// The likeliest are predicted together; then one of two is kept and every other fault put in the place of the second,
/// as it would be beside the first, until nothing likelier is found.
class PairSearch {
 public:
  /// Hypotheses refer to the search's curves.
  PairSearch(const FaultSearch& search, std::span<const FaultClass> classes, const DiagnoseOptions& options);

  /// The likeliest pairs, none where the healthy machine explains all but noise.
  [[nodiscard]] std::vector<Hypothesis> find();

 private:
  /// Two kinds of faults of two classes, and how well they may fit together.
  struct Pair {
    const Curve* one = nullptr;
    const Curve* other = nullptr;
    double score = 0;
    Together rule = Together::slower;
  };
  /// By rate: the logarithm of each row's time.
  using Logarithms = std::vector<std::vector<double>>;
  /// Two parts, and whether the software knows of what is wrong with them.
  using Key = std::pair<std::set<std::pair<std::string, Fault::Kind>>, bool>;

  [[nodiscard]] Logarithms tabulate(const Curve& curve) const;
  [[nodiscard]] double score_of(const Logarithms& one, const Logarithms& other, Together rule) const;
  [[nodiscard]] bool may_be_together(const Curve& one, const Curve& other) const;
  [[nodiscard]] std::vector<Pair> screen() const;
  /// The pairs that curves say fit best, sorted.
  [[nodiscard]] std::vector<Hypothesis> fit() const;
  /// A fault that may be one of two, at the rate at which most rows are as with it.
  struct First {
    const Curve* curve = nullptr;
    Fault fault;
    double score = 0;
  };

  [[nodiscard]] std::vector<First> likeliest_firsts(std::size_t max) const;
  [[nodiscard]] std::optional<Hypothesis> respond(const First& first, const Curve& curve, const std::string& part,
                                                  const std::vector<double>& alone) const;
  [[nodiscard]] std::vector<Hypothesis> respond_to_firsts() const;
  /// One fault and whatever explains most of the rest.
  [[nodiscard]] std::vector<Hypothesis> begin_with_one() const;
  /// What may be beside a fault that alone makes rows take so long; `ratios`: by how much longer rows take with two
  /// faults than the slower one alone makes them.
  [[nodiscard]] std::vector<Hypothesis> beside(const Curve& kept, const Fault& fault, std::span<const double> alone,
                                               std::span<const double> ratios) const;
  [[nodiscard]] std::vector<Hypothesis> substitutes(std::span<const Hypothesis> found) const;
  [[nodiscard]] std::vector<Hypothesis> instead(const Hypothesis& of, std::size_t kept) const;
  /// The classes of the machine and the tests once it has this fault; none where nobody says.
  [[nodiscard]] const std::vector<FaultClass>& classes_beside(const Fault& fault) const;
  /// The pair with the second part in each place that differs, so many at most, the likeliest first.
  [[nodiscard]] std::vector<Hypothesis> places_of(const Hypothesis& pair, std::size_t max) const;
  /// Any two parts that are gone, in every place: what is planned around both follows from neither alone.
  [[nodiscard]] std::vector<Hypothesis> two_gone() const;
  [[nodiscard]] std::vector<Hypothesis> place(std::vector<Hypothesis> pairs, std::size_t max_kinds) const;
  [[nodiscard]] bool needs_both(const Hypothesis& pair) const;
  [[nodiscard]] const Curve* curve_of(const std::string& part, const Fault& like) const;
  [[nodiscard]] std::vector<Hypothesis> with_neighbours() const;
  /// The likeliest, so many at most, of what was not tried before.
  [[nodiscard]] std::vector<Hypothesis> untried(std::vector<Hypothesis> pairs, std::size_t max);
  /// Predicts what was not tried, and puts it with what was found.
  void try_out(std::vector<Hypothesis> pairs, std::size_t max);
  void set_known(Hypothesis& pair) const;

  const FaultSearch& search_;
  std::span<const FaultClass> classes_;
  const DiagnoseOptions& options_;
  std::set<std::pair<std::size_t, std::string>> planned_around_;  ///< Whose faults show otherwise where they are known.
  mutable std::map<std::string, std::vector<FaultClass>> classes_beside_;  ///< By the part that is at fault.
  std::vector<double> alone_;  ///< By curve: the evidence of that fault alone.
  std::set<Key> tried_;
  std::vector<Hypothesis> found_;
};

}  // namespace espalier::diagnose
