#pragma once

// Tested by: tests/unit/diagnose/diagnose_test.cpp

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "diagnose/fault_classes.h"
#include "diagnose/question.h"

namespace espalier::diagnose {

/// One explanation among several.
struct Suspect {
  Fault fault;                                ///< At the rate or delay that fits best.
  std::string what;                           ///< "nic", "nvlink4 cable", "rank".
  std::vector<std::string> alike;             ///< Parts that the measurements do not tell from it, with it.
  std::vector<std::string> same_predictions;  ///< Parts of other classes whose faults make what was measured as likely.
  double probability = 0;                     ///< That it is at fault, alone or with another.
  double explains = 0;                        ///< Of the sum of squared gaps, what is gone with it; 0 to 1.
  std::optional<Fault> together_with;         ///< Where two faults explain more than this one alone.
  std::string evidence;  ///< One line: what was measured where it shows most, and what would be with it.
};

/// What a table says about a machine.
struct Diagnosis {
  enum class Verdict : std::uint8_t { as_predicted, slower, faster };

  Verdict verdict = Verdict::as_predicted;
  double probability_healthy = 1;
  double log_evidence = 0;          ///< Of all explanations together: it compares descriptions of one machine.
  double factor = 1;                ///< Measured over predicted on the healthy machine, where they part most.
  const Evidence* worst = nullptr;  ///< Of which series that is, and
  std::size_t worst_point = 0;      ///< at which point.
  double typical_factor = 1;        ///< The median over all rows of measured over predicted.
  std::vector<Suspect> suspects;    ///< Most probable first; empty where the machine does as predicted.
  std::vector<std::string>
      untouched;  ///< Kinds of parts ("pcie5 cable") whose faults would not show in these measurements.

  [[nodiscard]] bool healthy() const { return verdict == Verdict::as_predicted; }
};

struct DiagnoseOptions {
  std::size_t max_suspects = 8;
  double alarm = 0.8;    ///< Suspects are named where the machine is at fault with this probability and more.
  unsigned threads = 1;  ///< That may predict at once.
  /// About what `predict` would say of slow parts that nobody knows of, at next to no cost; empty: there is none. With
  /// it only those are considered, beside late ranks, and few are predicted: for machines on which that takes long.
  Predict estimate = {};
  std::size_t max_known = 0;  ///< With estimates, of how many classes faults that software knows of are predicted.
  /// The classes of the machine and these tests once it has this fault: which parts are alike beside it.
  std::function<std::vector<FaultClass>(const Fault&)> classes_with = {};
  std::size_t max_pairs = 40;       ///< Of faults in their places, that are predicted.
  std::size_t max_responses = 320;  ///< Of a second fault beside likely first ones, about so many at most.
  std::size_t max_places = 64;      ///< Of single faults, that are predicted.
  /// Parts that meet this one: the cables of a node, the nodes of a cable, the switches of a class of links. Empty:
  /// nobody says.
  std::function<std::vector<std::string>(const std::string&)> neighbours = {};
  std::size_t max_dense = 8;                             ///< Faults that are planned around, at up to ten rates more.
  std::function<void(const std::string&)> on_step = {};  ///< Told what is looked at, one at a time.
};

/// Holds single and double faults against what was measured, by what each would make of the times: the probability of
/// each fault is that of Bayes' rule with the likelihood of likelihood.h. Rates are found on a grid; curves between
/// simulated rates are straight in the reciprocal rate; who comes to the top is simulated anew at its own rate.
/// `classes` are those of the machine and these tests (find_fault_classes).
/// Requires: evidence with at least one point. Errors: those of `predict` on the healthy machine.
/// Cost: about five predictions per class and series, and a dozen more; with estimates a few in all.
Result<Diagnosis> diagnose(std::span<const Evidence> evidence, std::span<const FaultClass> classes,
                           const Predict& predict, const DiagnoseOptions& options = {});

}  // namespace espalier::diagnose
