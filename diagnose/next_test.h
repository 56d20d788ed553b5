#pragma once

// Tested by: tests/unit/diagnose/diagnose_test.cpp

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "diagnose/question.h"
#include "topology/topology.h"

namespace espalier::diagnose {

/// A measurement that tells apart what those so far do not.
struct NextTest {
  Question question;
  Bytes size;
  std::size_t ranks = 0;
  std::size_t left = 0;  ///< Of the parts that it is about, so many are left at most whatever it shows.
};

/// The test of some ranks that leaves the fewest of these parts: half of the hosts or of the ranks, one host, two
/// ranks of two hosts, and the like. `fault` is what each of them may have; `like` and `size` are what to measure.
/// Nothing where no such test tells any apart. Errors: none; a test that cannot be predicted is passed over.
/// Cost: find_alike for each of a dozen tests, some predictions for each of so many at most, of those that may leave
/// least.
std::optional<NextTest> find_next_test(const Topology& machine, std::span<const std::string> parts, const Fault& fault,
                                       const Question& like, Bytes size, const Predict& predict,
                                       std::size_t max_predicted = 12);

}  // namespace espalier::diagnose
