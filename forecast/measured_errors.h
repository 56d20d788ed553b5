#pragma once

// Tested by: tests/unit/forecast/measured_errors_test.cpp

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "schedule/collective.h"

namespace espalier::forecast {

/// How far measurements of one class lay from what a profile predicts for NCCL (tests/accuracy/errors.py writes it).
struct ErrorClass {
  std::string profile;
  CollectiveKind collective = CollectiveKind::all_reduce;
  bool is_of_several = false;  ///< Machines.
  Bytes min_size, max_size;    ///< Of what was measured.
  std::uint32_t max_ranks = 0;
  std::uint32_t min_version = 0, max_version = 0;  ///< Of NCCL (profile::version_number); 0: not said.
  std::uint32_t points = 0;
  double low = 1, median = 1, high = 1;  ///< Measured over predicted; nine in ten lie between low and high.
  std::optional<double> held;            ///< The part of points that ranges of other systems held.
  std::uint32_t systems = 0;
  std::string gpus;  ///< What names of compute/gpu.h begin with whose machines were measured, with blanks between.
};

/// What is asked of the classes.
struct Predicted {
  std::string_view profile;             ///< Empty: links alone.
  std::string_view algorithm = "nccl";  ///< As asked for.
  CollectiveKind collective = CollectiveKind::all_reduce;
  std::size_t machines = 1;
  std::size_t ranks = 0;
  std::optional<std::uint32_t> version;  ///< Where one is named.
  Bytes size;
  std::string_view gpu = {};  ///< Of the machine, a name of compute/gpu.h; empty: not said.
};

/// The class that tells most of a prediction, and why that is not what was measured, in words; empty where it is.
/// Only what NCCL itself picks, or one of its algorithms, was measured.
struct ErrorRange {
  const ErrorClass* of = nullptr;  ///< Null: nothing of the kind was measured.
  std::string outside;
};

/// Classes of errors by profile. Immutable.
class MeasuredErrors {
 public:
  /// Reads lines of comma-separated values under their header. Errors: invalid_input, with the line.
  [[nodiscard]] static Result<MeasuredErrors> read(std::string_view text);

  [[nodiscard]] ErrorRange find(const Predicted& what) const;
  [[nodiscard]] const std::vector<ErrorClass>& classes() const { return classes_; }

 private:
  std::vector<ErrorClass> classes_;
};

}  // namespace espalier::forecast
