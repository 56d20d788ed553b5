#pragma once

// Tested by: tests/unit/diagnose/diagnose_test.cpp

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/fault_classes.h"
#include "diagnose/likelihood.h"
#include "diagnose/question.h"

namespace espalier::diagnose {

inline constexpr double prior_of_gone = 0.15;           ///< Of a class's, that parts are gone and not only slow.
inline constexpr double prior_of_planned_around = 0.4;  ///< That the software knows what is slow.
inline constexpr double same_within = 0.003;            ///< Predictions that part by less are the same.
/// Where curves are simulated if planning for each rate takes long. The slower a part, the sooner its plan is another.
inline constexpr std::array first_rates = {0.25, 0.5};

/// What one kind of fault of one class makes of all measured times, by what is left of the rate.
struct Curve {
  std::size_t fault_class = 0;
  Fault fault;                             ///< Its rate is open.
  std::vector<double> rates;               ///< Where it was simulated: falling, the first one is 1.
  std::vector<std::vector<double>> times;  ///< By rate: seconds of each row.
  double prior = 0;                        ///< Before anything was measured.

  /// Seconds of a row: straight between neighbours over the reciprocal of the rate.
  [[nodiscard]] double time(std::size_t row, double rate) const;
  /// The largest part by which a row's time is longer at the least rate.
  [[nodiscard]] double effect() const;
};

/// One explanation: nothing, one fault or two.
struct Hypothesis {
  std::vector<const Curve*> curves;
  std::vector<Fault> faults;
  double prior = 0;
  double log_evidence = 0;
  std::vector<double> times;  ///< With the best rates.
};

/// What two faults may do to a row, as far as curves say.
enum class Together : std::uint8_t {
  slower,   ///< It takes as long as the slower one alone makes it.
  product,  ///< It takes as many times longer as both together: one of them is on the way of all.
};

/// The logarithm of what is measured and it together; the larger, the likelier.
double posterior(const Hypothesis& hypothesis);

/// Those of the sorted, so many at most, that what is simulated may still bring to the top.
std::span<Hypothesis> likely(std::span<Hypothesis> sorted, std::size_t max);

/// Whether the times of every row are the same up to this part.
bool are_within(std::span<const double> one, std::span<const double> other, double part);

/// Rows of all series one after the other.
class FaultSearch {
 public:
  /// `threads` predict at once. With estimates (DiagnoseOptions) curves are theirs.
  FaultSearch(std::span<const Evidence> evidence, std::span<const FaultClass> classes, const Predict& predict,
              const Predict& estimate, unsigned threads, std::size_t max_dense);

  /// The healthy machine's times. Errors: those of predict.
  Result<void> start();
  /// Every fault of every class whose effect is seen at all; at more rates where it fits. `on_class` is told a part of
  /// each, one at a time.
  void add_classes(const std::function<void(const std::string&)>& on_class);
  /// With estimates: parts that are gone, or slow ones that are planned around, of so many classes at most, predicted.
  /// Hypotheses so far refer to no curve any more.
  void add_known(Fault::Kind kind, std::size_t max_classes);
  /// Predicts faults that are planned around at more rates, for pairs: a single one that may take any of many steps
  /// fits noise too well.
  void refine_planned_around();
  /// The healthy machine, late ranks and single faults, of which the likeliest, so many at most, are predicted anew.
  [[nodiscard]] std::vector<Hypothesis> find_singles(std::size_t max_predicted) const;
  /// Seconds of all rows with these faults, predicted once. Errors: those of predict.
  [[nodiscard]] Result<std::vector<double>> predict_all(std::span<const Fault> faults) const;
  /// The rate at which most rows are as the curve says, and how badly the others fit: of a fault that may be one of
  /// two.
  [[nodiscard]] std::pair<double, double> best_of_two(const Curve& curve) const;
  /// With the rates that fit best by the curves.
  [[nodiscard]] Hypothesis explain_by(std::vector<const Curve*> curves, double prior,
                                      Together rule = Together::slower) const;
  /// Puts what is predicted in the place of what curves say, and moves rates for so many rounds, on all threads; then
  /// sorts them.
  void simulate_anew(std::span<Hypothesis> hypotheses, int rounds) const;
  /// Predicts what was simulated at the rates that fit better by the curves' slopes, for so many rounds.
  void improve_rates(std::span<Hypothesis> hypotheses, int rounds) const;

  [[nodiscard]] const std::vector<double>& measured() const { return measured_; }
  [[nodiscard]] const std::vector<double>& healthy() const { return healthy_; }
  [[nodiscard]] std::span<const Curve> curves() const { return curves_; }
  /// The sum of squared logarithms of measured over these.
  [[nodiscard]] double gap(std::span<const double> times) const;
  [[nodiscard]] double log_likelihood(std::span<const double> times) const;

 private:
  [[nodiscard]] Result<std::vector<double>> ask_all(const Predict& predict, std::span<const Fault> faults) const;
  /// Nothing where it cannot run or shows in no row; nor where its first rate's times are those of `like`.
  [[nodiscard]] std::optional<Curve> make_curve(const Predict& by, Curve curve, std::span<const double> rates,
                                                const Curve* like) const;
  [[nodiscard]] double prior_of_class(std::size_t number) const;
  /// Such a fault of this class that the software knows of; nothing where it is far from the largest row of a series,
  /// or the same as where the software does not know.
  [[nodiscard]] std::optional<Curve> known_of(std::size_t number, Fault::Kind kind) const;
  /// The largest row of every series.
  [[nodiscard]] std::optional<std::vector<double>> largest_with(const Fault& fault) const;
  [[nodiscard]] bool is_near_largest(const Fault& fault) const;
  [[nodiscard]] std::vector<Curve> curves_of(std::size_t number) const;
  /// Parts of a class in each of which a fault shows in another way: plans use what a symmetry makes the same unlike
  /// (a tree has a root). With each the part of the class that it stands for.
  [[nodiscard]] std::vector<std::pair<std::string, double>> places_in(const FaultClass& of) const;
  [[nodiscard]] std::optional<std::vector<double>> probe(const std::string& part) const;
  [[nodiscard]] Hypothesis healthy_hypothesis() const;
  [[nodiscard]] Hypothesis late_hypothesis() const;
  [[nodiscard]] std::vector<double> expected_times(const Hypothesis& hypothesis, std::span<const double> rates,
                                                   Together rule = Together::slower) const;
  void simulate_once(Hypothesis& hypothesis) const;
  void improve_rates_of(Hypothesis& hypothesis, int rounds) const;
  void refine(Curve& curve) const;
  void make_dense(Curve& curve) const;
  double add_rate(Curve& curve, double rate) const;
  [[nodiscard]] double misfit(std::span<const double> times) const;
  [[nodiscard]] std::vector<Fault> faults_beside(const Hypothesis& hypothesis) const;

  std::span<const Evidence> evidence_;
  std::span<const FaultClass> classes_;
  const Predict& predict_;
  const Predict& estimate_;
  unsigned threads_;
  std::size_t max_dense_;  ///< As in DiagnoseOptions.
  std::vector<double> measured_, healthy_;
  std::optional<Likelihood> likelihood_;
  std::vector<Curve> curves_;
  mutable std::mutex predicted_mutex_;
  mutable std::map<std::vector<Fault>, Result<std::vector<double>>> predicted_;
};

}  // namespace espalier::diagnose
