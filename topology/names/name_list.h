#pragma once

// Tested by: tests/unit/topology/analysis/describe_test.cpp

#include <string>
#include <vector>

namespace espalier {

/// Names in as few words as there are: in the ranges of the topology format where they allow it ("gpu[0-7]",
/// "box[0-3].gpu[0,4]"), parted by commas; when that is still long, the first and the last name and how many there are.
std::string summarize_names(const std::vector<std::string>& names);

}  // namespace espalier
