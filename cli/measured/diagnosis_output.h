#pragma once

// Tested by: tests/options/options_test.py

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

#include "cli/measured/counted_parts.h"
#include "cli/output/table.h"
#include "diagnose/diagnose.h"
#include "diagnose/next_test.h"

namespace espalier::cli {

/// A measured time that no schedule on the machine can reach.
struct TooFast {
  const diagnose::Evidence* evidence = nullptr;
  diagnose::Point point;
  double bound_seconds = 0;
};

/// A diagnosis with what it was made from.
struct DiagnosisReport {
  std::string machine;
  std::string profile;  ///< Empty: links alone.
  std::size_t rows = 0;
  const diagnose::Diagnosis* diagnosis = nullptr;
  std::optional<diagnose::NextTest> next_test;
  std::optional<TooFast> too_fast;
  std::span<const CountedPart> counted;          ///< By counters beside the tables.
  std::span<const std::string> unknown_devices;  ///< That have counters, and that the machine does not have.
};

/// A row per suspect of at least this probability.
Table suspects_table(const diagnose::Diagnosis& diagnosis, double least = 0);
std::string diagnosis_text(const DiagnosisReport& report);
/// "espalier/diagnosis/1" (docs/diagnose.md).
nlohmann::ordered_json diagnosis_json(const DiagnosisReport& report);

}  // namespace espalier::cli
