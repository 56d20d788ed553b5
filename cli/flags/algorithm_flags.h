#pragma once

// Tested by: tests/fuzz/fuzz_flags.cpp

#include <string>
#include <vector>

#include "base/result.h"

namespace espalier::cli {

/// Splits "ring,tree,auto" and checks each name; "all" stands for every planner. With `variants` packings of a height
/// and a number of trees may be named as results name them: "packing/h2t1". With `nccl` its algorithms may be named.
/// Errors: invalid_input, with the nearest name.
Result<std::vector<std::string>> parse_algorithms(const std::string& text, bool variants, bool nccl);
Result<std::vector<std::string>> parse_algorithms(const std::string& text, bool variants = false);

/// For -a's help: "ring, tree, ...".
std::string planner_names();

/// For -a's help where all of them may be meant: "auto, all, ring, tree, ...".
std::string algorithm_names();

}  // namespace espalier::cli
