#include "cli/measured/diagnosis_runs.h"

#include <gtest/gtest.h>

#include <array>

#include "profile/read_profile.h"
#include "tests/support/read_good.h"
#include "topology/yaml/read_topology.h"

namespace espalier::cli {
namespace {

const Topology& star_of_eight() {
  static const Topology machine = test::read_good(R"(
espalier: 1
name: star
classes: {cable: {bandwidth: 10 GB/s, latency: 2 us}}
nodes: [{id: leaf, kind: switch}, {id: "gpu[0-7]", kind: gpu}]
links: [{all: ["gpu[0-7]", leaf], class: cable}]
)");
  return machine;
}

TEST(DiagnosisRuns, EstimatesAreNearWhatIsSimulated) {
  DiagnosisRuns runs(star_of_eight(), nullptr);
  constexpr std::array sizes = {Bytes{1 << 14}, Bytes{1 << 20}, Bytes{1 << 24}, Bytes{1 << 28}};
  for (const char* algorithm : {"ring", "recursive"}) {
    for (const double rate : {0.25, 0.5, 0.75}) {
      const diagnose::Fault fault{diagnose::Fault::Kind::slow, "gpu3-leaf", rate, 0, false};
      const diagnose::Question question{"", "all_reduce", algorithm};
      const auto simulated = runs.predict(question, std::span(&fault, 1), sizes);
      const auto estimated = runs.estimate(question, std::span(&fault, 1), sizes);
      ASSERT_TRUE(simulated && estimated);
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        EXPECT_NEAR((*estimated)[i] / (*simulated)[i], 1, 0.15) << algorithm << " " << rate << " " << sizes[i].count;
      }
    }
  }
}

TEST(DiagnosisRuns, AnotherLaunchRunsWhatIsPlanned) {
  DiagnosisRuns runs(star_of_eight(), nullptr);
  const diagnose::Question question{"", "all_reduce", "ring"};
  EXPECT_GT(runs.bound_per_byte(question), 0);
  constexpr std::array sizes = {Bytes{1 << 14}, Bytes{1 << 24}};
  const auto other = runs.with_launch(nullptr);
  EXPECT_EQ(other->bound_per_byte(question), runs.bound_per_byte(question));
  EXPECT_EQ(*other->predict(question, {}, sizes), *runs.predict(question, {}, sizes));
}

TEST(DiagnosisRuns, SizesOneByOneAreThoseTogether) {
  const diagnose::Question question{"", "all_gather", "ring"};
  constexpr std::array sizes = {Bytes{1 << 14}, Bytes{1 << 20}};
  DiagnosisRuns at_once(star_of_eight(), nullptr), one_by_one(star_of_eight(), nullptr);
  const auto all = at_once.predict(question, {}, sizes);
  ASSERT_TRUE(all);
  for (std::size_t i = sizes.size(); i-- > 0;) {
    EXPECT_EQ(one_by_one.predict(question, {}, std::span(sizes).subspan(i, 1))->front(), (*all)[i]);
  }
}

TEST(DiagnosisRuns, WhatIsPlannedAroundIsNotEstimated) {
  DiagnosisRuns runs(star_of_eight(), nullptr);
  constexpr std::array sizes = {Bytes{1 << 20}};
  const diagnose::Fault known{diagnose::Fault::Kind::slow, "gpu3-leaf", 0.5, 0, true};
  EXPECT_FALSE(runs.estimate({"", "all_reduce", "ring"}, std::span(&known, 1), sizes));
  const diagnose::Fault late{diagnose::Fault::Kind::late, "", 1, 1e-3, false};
  const auto healthy = runs.predict({"", "all_reduce", "ring"}, {}, sizes);
  const auto with = runs.estimate({"", "all_reduce", "ring"}, std::span(&late, 1), sizes);
  ASSERT_TRUE(healthy && with);
  EXPECT_NEAR(with->front() - healthy->front(), 1e-3, 1e-12);
}

TEST(DiagnosisRuns, WhatNoSoftwareReadsIsPlannedAsOnTheHealthyMachine) {
  const std::string shipped = ESPALIER_SOURCE_DIR "/configs/";
  const TopologyReading reading = read_topology_file(shipped + "dgx-a100-x2.yaml");
  const profile::ProfileReading ampere = profile::read_profile_file(shipped + "profiles/nccl-ampere.yaml");
  ASSERT_TRUE(reading.topology && ampere.profile);
  const auto software = std::make_shared<const forecast::Software>(
      forecast::Software{"nccl-ampere", *ampere.profile, ampere.profile->launches.front().second, {}});
  DiagnosisRuns runs(*reading.topology, software);
  constexpr std::array sizes = {Bytes{1 << 22}, Bytes{1 << 26}};
  const diagnose::Question question{"", "all_reduce", "nccl"};
  EXPECT_GT(runs.bound_per_byte(question), 0);
  diagnose::Fault fault{diagnose::Fault::Kind::slow, "box0.nic2", 0.5, 0, false};
  const auto unknown = runs.predict(question, std::span(&fault, 1), sizes);
  fault.is_planned_around = true;
  const auto known = runs.predict(question, std::span(&fault, 1), sizes);
  ASSERT_TRUE(unknown && known);
  EXPECT_EQ(*known, *unknown);
}

TEST(DiagnosisRuns, MachinesThatLookAlikeArePlannedOnceAndRunAsTheyAre) {
  const std::string shipped = ESPALIER_SOURCE_DIR "/configs/";
  const TopologyReading reading = read_topology_file(shipped + "dgx-a100.yaml");
  const profile::ProfileReading ampere = profile::read_profile_file(shipped + "profiles/nccl-ampere.yaml");
  ASSERT_TRUE(reading.topology && ampere.profile);
  const auto software = std::make_shared<const forecast::Software>(
      forecast::Software{"nccl-ampere", *ampere.profile, ampere.profile->launches.front().second, {}});
  constexpr std::array sizes = {Bytes{1 << 20}, Bytes{1 << 26}};
  const diagnose::Question question{"", "all_reduce", "nccl"};
  // Of twelve NVLinks 5.4 and 5.9 are counted as six; 3 as three.
  DiagnosisRuns remembers(*reading.topology, software);
  for (const double rate : {0.45, 0.49, 0.25}) {
    const diagnose::Fault fault{diagnose::Fault::Kind::slow, "gpu1-nvswitch", rate, 0, true};
    DiagnosisRuns fresh(*reading.topology, software);
    const auto first = fresh.predict(question, std::span(&fault, 1), sizes);
    const auto again = remembers.predict(question, std::span(&fault, 1), sizes);
    ASSERT_TRUE(first && again);
    EXPECT_EQ(*first, *again) << rate;
  }
}

}  // namespace
}  // namespace espalier::cli
