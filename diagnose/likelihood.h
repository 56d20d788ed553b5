#pragma once

// Tested by: tests/unit/diagnose/likelihood_test.cpp

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"

namespace espalier::diagnose {

/// How likely it is that measured times part from predicted ones as they do, when the prediction is of what really is
/// there. Two things part them: noise, which is of each time its own, and what the model lacks, which changes slowly
/// with the message size and is partly the same for all collectives. How large either is, is not known: several are
/// taken in turn, and the likelihood is their mean.
///
/// The logarithms of measured over predicted are a Gaussian process: covariance noise^2 where two rows are one, plus
/// error^2 exp(-|octaves between the sizes| / 4), and half of that between different series.
/// Source: C. Rasmussen, C. Williams, "Gaussian Processes for Machine Learning", 2006, sections 2.2 and 5.2.
class Likelihood {
 public:
  /// A measured time: its size and the series that it is of (one collective on some ranks).
  struct Row {
    Bytes size;
    std::size_t series = 0;
  };

  /// Requires: at least one row. Cost: cubic in the rows, once; each likelihood is quadratic.
  explicit Likelihood(std::span<const Row> rows);
  ~Likelihood();
  Likelihood(Likelihood&&) noexcept;
  Likelihood& operator=(Likelihood&&) noexcept;

  /// The logarithm of the likelihood of these logarithms of measured over predicted, one per row.
  [[nodiscard]] double log_of(std::span<const double> residuals) const;

 private:
  struct Factors;
  std::unique_ptr<Factors> factors_;
};

/// The logarithm of the mean of what these are logarithms of, each counted as often as its weight says; no weights:
/// all alike.
double log_mean(std::span<const double> logarithms, std::span<const double> weights = {});

}  // namespace espalier::diagnose
