#pragma once

// Tested by: tests/unit/diagnose/diagnose_test.cpp

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "diagnose/fault.h"

namespace espalier::diagnose {

/// A collective on some ranks of the machine, by one algorithm.
struct Question {
  std::string ranks;          ///< Nodes and ranges that are the ranks, as --ranks names them; empty: all.
  std::string collective;     ///< "all_reduce", ...
  std::string algorithm;      ///< "ring", "auto", "nccl", ...
  std::string protocol = {};  ///< "simple", ... alone; empty: all.

  friend auto operator<=>(const Question&, const Question&) = default;
};

/// What one collective took at one size.
struct Point {
  Bytes size;
  double seconds = 0;
};

/// Measurements of one question, each of at least a byte and some time.
struct Evidence {
  std::string file;
  Question question;
  std::vector<Point> points;
};

/// Seconds that the question takes at each of these sizes on the machine with these faults.
/// Errors: infeasible or unsupported where it cannot run there; others end the diagnosis.
using Predict =
    std::function<Result<std::vector<double>>(const Question&, std::span<const Fault>, std::span<const Bytes> sizes)>;

}  // namespace espalier::diagnose
