#pragma once

// Tested by: tests/unit/compare/read/others_test.cpp

#include <string>
#include <string_view>

namespace espalier::compare {

/// A text of MPI's benchmarks, perftest or NVIDIA's tests without what launchers and logs put before each of its lines,
/// such as times, names of pods, "|" and ">": words like those that stand before a title of the tool. Lines keep their
/// numbers.
std::string without_labels(std::string_view text);

}  // namespace espalier::compare
