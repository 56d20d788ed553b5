#pragma once

// Tested by: tests/options/options_test.py

#include <memory>
#include <optional>
#include <string>

#include "cli/output/console.h"
#include "compare/judgement.h"
#include "compare/read/measurements.h"
#include "forecast/software.h"
#include "topology/topology.h"

namespace espalier::cli {

/// A machine and its software that were said to have been measured.
struct MeasuredMachine {
  const Topology& topology;
  std::string argument;  ///< As it was named.
  std::string options;   ///< What was named with it for its software, as options; may be empty.
  std::shared_ptr<const forecast::Software> software;
  std::string algorithm;  ///< "nccl", ...
  const compare::Measurements& measured;
};

/// Another one that was tried in its place.
struct Relative {
  std::string machine;   ///< "dgx-h100-nvls", "cluster.yaml with NVLS".
  std::string software;  ///< "nccl-hopper:one-process, nccl/tree alone".
  std::string options;   ///< What asks for that software: "--profile nccl-hopper:one-process -a nccl/tree".
  compare::Judgement judgement;
  bool is_possible = true;  ///< No time is below what that machine can do.
  bool is_launch = false;   ///< Only how calls are started differs.

  [[nodiscard]] bool fits() const { return is_possible && judgement.kind == compare::Judgement::Kind::as_predicted; }
};

/// The relative under which the measured times are furthest from odd: other launches, with and without NVLS, NCCL's
/// versions between which algorithms came, Simple alone, rings or trees alone, and, where a time is below what the
/// machine can do, shipped machines of as many ranks. Each step begins with the best of the one before, and the search
/// ends with the first that fits. Nothing where none is clearly better than the machine itself.
/// Cost: predicts all rows for about a dozen relatives.
std::optional<Relative> find_relative(const Console& console, const MeasuredMachine& given,
                                      const compare::Judgement& own);

}  // namespace espalier::cli
