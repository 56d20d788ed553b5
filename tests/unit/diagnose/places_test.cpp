#include "diagnose/places.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace espalier::diagnose {
namespace {

/// Twelve cables that a symmetry makes the same; a plan loads the last one a fifth more below 8 MiB.
Result<std::vector<double>> predict_cables(const Question&, std::span<const Fault> faults,
                                           std::span<const Bytes> sizes) {
  std::vector<double> times;
  for (const Bytes size : sizes) {
    double slowest = 1;
    for (const Fault& fault : faults) {
      const bool has_more = fault.part == "cable11" && size.count < 8 << 20;
      slowest = std::max(slowest, (has_more ? 1.2 : 1) / fault.rate);
    }
    times.push_back(20e-6 + static_cast<double>(size.count) * slowest / 50e9);
  }
  return times;
}

TEST(Places, AClassFitsAsWellAsItsBestPart) {
  FaultClass cables{{}, "cable", false};
  for (int i = 0; i < 12; ++i) cables.parts.push_back("cable" + std::to_string(i));
  const std::vector<FaultClass> classes = {cables};
  const Fault fault{Fault::Kind::slow, "cable11", 0.5, 0, false};
  Evidence evidence{"", {"", "all_reduce", "ring"}, {}};
  for (std::int64_t size = 1 << 16; size <= 1 << 30; size *= 4) evidence.points.push_back({{size}, 0});
  for (Point& point : evidence.points) {
    point.seconds = predict_cables({}, std::span(&fault, 1), std::span(&point.size, 1))->front();
  }
  const Predict as_above = predict_cables, none;
  FaultSearch search(std::span(&evidence, 1), classes, as_above, none, 1, 0);
  ASSERT_TRUE(search.start());
  search.add_classes({});
  std::vector<Hypothesis> all = search.find_singles(6);
  std::vector<Hypothesis> singles(all.begin() + 2, all.end());
  double prior = 0;
  for (const Hypothesis& each : singles) prior += each.prior;
  const auto anew = [&](std::span<Hypothesis> each) { search.simulate_anew(each, 1); };
  const std::vector<Hypothesis> placed = in_every_place(classes, singles, 100, anew);
  // Each kind of fault is in twelve places, and all of them together are as likely as before.
  EXPECT_EQ(placed.size() % 12, 0U);
  EXPECT_EQ(placed.front().faults.front().part, "cable11");
  double after = 0;
  for (const Hypothesis& each : placed) after += each.prior;
  EXPECT_NEAR(after, prior, 1e-12);
  EXPECT_TRUE(
      std::ranges::any_of(placed, [](const Hypothesis& each) { return each.faults.front().part == "cable11"; }));
  // With no place to spare they stay.
  EXPECT_EQ(in_every_place(classes, singles, 1, anew).size(), singles.size());
}

}  // namespace
}  // namespace espalier::diagnose
