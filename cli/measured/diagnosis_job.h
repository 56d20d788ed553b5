#pragma once

// Tested by: tests/options/options_test.py

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/jobs/stop.h"
#include "cli/measured/counted_parts.h"
#include "cli/measured/diagnosis_output.h"
#include "cli/measured/diagnosis_runs.h"
#include "cli/output/console.h"
#include "diagnose/diagnose.h"
#include "diagnose/next_test.h"

namespace espalier::cli {

/// What was measured, and the machine with the ranks of each series.
struct DiagnosisTables {
  std::vector<diagnose::Evidence> evidence;
  std::vector<Topology> tested;
  std::vector<CountedPart> counted;          ///< Parts that counters beside the tables speak against.
  std::vector<std::string> unknown_devices;  ///< Of these counters, which the machine does not have.

  [[nodiscard]] std::size_t rows() const;
  /// The series of a table: measured on these ranks alone (as --ranks names them; empty: all), and where rows name
  /// their members on those. `usual_algorithm` ran where rows do not say. Errors: as evidence_of, unknown ranks.
  OrStop<void> add(const Topology& machine, const compare::Measurements& table, const std::string& ranks,
                   const std::string& usual_algorithm);
};

/// The machine with these ranks alone; all where none is named. Errors: usage, for FILE@RANKS.
OrStop<Topology> machine_with_ranks(const Topology& machine, const std::string& ranks, const std::string& file);

/// A diagnosis with what it was made by. It refers to the tables.
struct Diagnosed {
  std::shared_ptr<const forecast::Software> software;  ///< Of the launch that fits best.
  diagnose::Diagnosis diagnosis;
  std::optional<diagnose::NextTest> next_test;
  std::optional<TooFast> too_fast;
};

/// Diagnoses what was measured on a machine under this software (null: links alone), on all cores with a progress bar.
/// Says so where calls start in another way. Requires: tables that stay. Errors: those of the predictions.
Result<Diagnosed> diagnose_tables(const Console& console, const Topology& machine, const DiagnosisTables& tables,
                                  const std::shared_ptr<const forecast::Software>& software);

}  // namespace espalier::cli
