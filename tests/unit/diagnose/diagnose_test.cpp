#include "diagnose/diagnose.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "diagnose/next_test.h"
#include "tests/support/read_good.h"
#include "topology/names/group.h"

namespace espalier::diagnose {
namespace {

/// Four parts, which two collectives load unlike: the time of a closed form that no simulator has a part in.
constexpr std::array parts = {"a", "b", "c", "d"};
constexpr std::array<std::array<double, 4>, 2> loads = {{{1.0, 0.9, 0.5, 0.25}, {0.3, 1.0, 0.8, 0.6}}};

double closed_form(std::size_t collective, Bytes size, std::span<const Fault> faults) {
  double slowest = 0;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    double rate = 1;
    for (const Fault& fault : faults) {
      if (fault.part == parts[part]) rate *= fault.kind == Fault::Kind::gone ? 0.1 : fault.rate;
    }
    slowest = std::max(slowest, loads[collective][part] / rate);
  }
  return 20e-6 + static_cast<double>(size.count) * slowest / 50e9 + delay_of(faults);
}

Result<std::vector<double>> predict(const Question& question, std::span<const Fault> faults,
                                    std::span<const Bytes> sizes) {
  std::vector<double> times;
  for (const Bytes size : sizes)
    times.push_back(closed_form(question.collective == "all_reduce" ? 0 : 1, size, faults));
  return times;
}

std::vector<FaultClass> classes() {
  std::vector<FaultClass> all;
  for (const char* part : parts) all.push_back({{part}, "cable", true});
  return all;
}

std::vector<Evidence> measure(std::span<const Fault> faults, std::uint64_t seed, double noise = 0.02) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> apart(0, noise);
  std::vector<Evidence> evidence;
  for (const char* collective : {"all_reduce", "all_to_all"}) {
    Evidence& each = evidence.emplace_back();
    each.question.collective = collective;
    for (std::int64_t size = 1 << 16; size <= 1 << 30; size *= 4) {
      const double time = closed_form(evidence.size() - 1, {size}, faults);
      each.points.push_back({{size}, time * std::exp(apart(random))});
    }
  }
  return evidence;
}

Diagnosis diagnosed(const std::vector<Evidence>& evidence) {
  auto found = diagnose(evidence, classes(), predict);
  EXPECT_TRUE(found) << found.error().message;
  return *std::move(found);
}

/// Whether the first suspect is this part at about this rate, or says that the measurements do not tell it from it.
bool names(std::span<const Suspect> suspects, const std::string& part, double rate) {
  const auto is_right = [&](const Suspect& suspect) {
    return suspect.fault.part == part && std::abs(suspect.fault.rate / rate - 1) < 0.1;
  };
  if (is_right(suspects.front())) return true;
  const std::vector<std::string>& same = suspects.front().same_predictions;
  return std::ranges::find(same, part) != same.end() && std::ranges::any_of(suspects, is_right);
}

TEST(Diagnose, NamesTheSlowPart) {
  int right = 0, all = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    const std::size_t part = random() % parts.size();
    const double rate = 0.2 + 0.5 * static_cast<double>(random() % 1000) / 1000;
    const Fault fault{Fault::Kind::slow, parts[part], rate, 0, false};
    const std::vector<Evidence> evidence = measure(std::span(&fault, 1), seed);
    const bool shows = std::max(loads[0][part], loads[1][part]) / rate > 1.1;  // Of either collective's slowest.
    if (!shows) continue;
    ++all;
    const Diagnosis diagnosis = diagnosed(evidence);
    right += !diagnosis.suspects.empty() && names(diagnosis.suspects, parts[part], rate) ? 1 : 0;
  }
  EXPECT_GT(all, 40);
  EXPECT_GE(right, all * 95 / 100) << "of " << all;
}

TEST(Diagnose, LeavesHealthyMachinesAlone) {
  int alarms = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) alarms += diagnosed(measure({}, seed)).healthy() ? 0 : 1;
  EXPECT_LE(alarms, 1);
}

TEST(Diagnose, WhatAModelLacksIsNoFault) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    std::vector<Evidence> evidence = measure({}, seed);
    const double bend = seed % 2 == 0 ? 0.12 : -0.12;  // Over all sizes, growing with them.
    for (Evidence& each : evidence) {
      for (Point& point : each.points)
        point.seconds *= 1 + bend * std::log2(static_cast<double>(point.size.count)) / 30;
    }
    EXPECT_TRUE(diagnosed(evidence).suspects.empty()) << seed;
  }
}

TEST(Diagnose, TellsALateRankFromASlowPart) {
  for (const double delay : {1e-4, 1e-3, 1e-2}) {
    const Fault late{Fault::Kind::late, {}, 1, delay, false};
    const Diagnosis diagnosis = diagnosed(measure(std::span(&late, 1), 7));
    ASSERT_FALSE(diagnosis.suspects.empty());
    EXPECT_EQ(diagnosis.suspects.front().fault.kind, Fault::Kind::late);
    EXPECT_NEAR(diagnosis.suspects.front().fault.delay / delay, 1, 0.2);
  }
}

TEST(Diagnose, TwoFaultsAreAmongTheFirst) {
  int both = 0, all = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    std::mt19937_64 random(seed);
    const auto rate = [&] { return 0.25 + 0.3 * static_cast<double>(random() % 1000) / 1000; };
    // a shows in the first collective alone, c in the second: each has a table in which it is what counts.
    const std::vector<Fault> faults = {{Fault::Kind::slow, "a", rate(), 0, false},
                                       {Fault::Kind::slow, "c", rate(), 0, false}};
    const Diagnosis diagnosis = diagnosed(measure(faults, seed));
    ++all;
    const auto named = [&](const std::string& part) {
      const auto first = std::span(diagnosis.suspects).first(std::min<std::size_t>(4, diagnosis.suspects.size()));
      return std::ranges::any_of(first, [&](const Suspect& suspect) { return suspect.fault.part == part; });
    };
    both += named("a") && named("c") ? 1 : 0;
  }
  EXPECT_GE(both, all * 85 / 100) << "of " << all;
}

TEST(Diagnose, TwoPartsThatAreGoneAreFoundWhereNeitherAloneSaysWhatBothDo) {
  // Twenty parts. Without one of them all takes 1.2 times as long, without two 1.3 times; but without p4 and p11, after
  // which a plan finds no way around, three times. A slow part slows down what it is a part of: 5 % of all bytes.
  std::vector<FaultClass> many;
  for (int i = 0; i < 20; ++i) many.push_back({{"p" + std::to_string(i)}, "cable", true});
  const Predict plan = [](const Question&, std::span<const Fault> faults, std::span<const Bytes> sizes) {
    double longer = 1;
    std::set<std::string> gone;
    for (const Fault& fault : faults) {
      if (fault.kind == Fault::Kind::gone) gone.insert(fault.part);
      if (fault.kind == Fault::Kind::slow) longer = std::max(longer, 0.95 + 0.05 / fault.rate);
    }
    if (!gone.empty()) longer = std::max(longer, gone.size() == 1 ? 1.2 : 1.3);
    if (gone == std::set<std::string>{"p4", "p11"}) longer = 3;
    std::vector<double> times;
    for (const Bytes size : sizes) times.push_back(longer * (20e-6 + static_cast<double>(size.count) / 50e9));
    return Result<std::vector<double>>(times);
  };
  Evidence table;
  table.question.collective = "all_reduce";
  for (std::int64_t size = 1 << 16; size <= 1 << 30; size *= 4) {
    table.points.push_back({{size}, 3 * (20e-6 + static_cast<double>(size) / 50e9)});
  }
  DiagnoseOptions options;
  options.max_pairs = 100;  // Of 190 pairs twice as many may be tried.
  options.classes_with = [&](const Fault&) { return many; };
  const auto found = diagnose(std::span(&table, 1), many, plan, options);
  ASSERT_TRUE(found);
  ASSERT_GE(found->suspects.size(), 2U);
  const std::set<std::string> first = {found->suspects[0].fault.part, found->suspects[1].fault.part};
  EXPECT_EQ(first, (std::set<std::string>{"p4", "p11"}));
}

TEST(Diagnose, ASlowPartIsFoundThatOnlyAPlanAroundAnotherUses) {
  // Twenty parts. Without one of them all takes 1.2 times as long, a slow one slows 5 % of all bytes down; but without
  // p4 the plan sends all by p11, which takes 0.2 + 1 / 0.4 = 2.7 times as long when p11 has 40 % of its rate.
  std::vector<FaultClass> many;
  for (int i = 0; i < 20; ++i) many.push_back({{"p" + std::to_string(i)}, "cable", true});
  const Predict plan = [](const Question&, std::span<const Fault> faults, std::span<const Bytes> sizes) {
    double longer = 1, rate_of_p11 = 1;
    bool is_gone_p4 = false;
    for (const Fault& fault : faults) {
      const bool is_gone = fault.kind == Fault::Kind::gone;
      longer = std::max(longer, is_gone ? 1.2 : 0.95 + 0.05 / fault.rate);
      is_gone_p4 |= is_gone && fault.part == "p4";
      if (!is_gone && fault.part == "p11") rate_of_p11 = fault.rate;
    }
    if (is_gone_p4) longer = std::max(longer, 0.2 + 1 / rate_of_p11);
    std::vector<double> times;
    for (const Bytes size : sizes) times.push_back(longer * (20e-6 + static_cast<double>(size.count) / 50e9));
    return Result<std::vector<double>>(times);
  };
  Evidence table;
  table.question.collective = "all_reduce";
  for (std::int64_t size = 1 << 16; size <= 1 << 30; size *= 4) {
    table.points.push_back({{size}, 2.7 * (20e-6 + static_cast<double>(size) / 50e9)});
  }
  DiagnoseOptions options;
  options.classes_with = [&](const Fault&) { return many; };
  const auto finds_both = [&](std::size_t max_responses) {
    options.max_responses = max_responses;
    const auto found = diagnose(std::span(&table, 1), many, plan, options);
    const auto is_named = [&](const std::string& part) {
      const auto first = std::span(found->suspects).first(std::min<std::size_t>(2, found->suspects.size()));
      return std::ranges::any_of(first, [&](const Suspect& suspect) { return suspect.fault.part == part; });
    };
    return found && is_named("p4") && is_named("p11");
  };
  // Beside each first fault 19 parts are predicted at two rates, beside one that is gone 19 more gone: 5 * (38 + 57).
  EXPECT_TRUE(finds_both(600));
  EXPECT_FALSE(finds_both(0));
}

TEST(Diagnose, ALateRankBesideASlowPart) {
  int both = 0, all = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    std::mt19937_64 random(seed);
    const auto part = [&] { return static_cast<double>(random() % 1000) / 1000; };
    // 50 us and more on 22 us at the least size; the part's rate counts at the largest ones.
    const Fault slow{Fault::Kind::slow, "b", 0.25 + 0.4 * part(), 0, false};
    const Fault late{Fault::Kind::late, {}, 1, 50e-6 + 500e-6 * part(), false};
    const Diagnosis diagnosis = diagnosed(measure(std::array{slow, late}, seed));
    ++all;
    const auto first = std::span(diagnosis.suspects).first(std::min<std::size_t>(4, diagnosis.suspects.size()));
    const bool has_late = std::ranges::any_of(first, [](const Suspect& suspect) { return suspect.what == "rank"; });
    const bool has_slow = std::ranges::any_of(first, [](const Suspect& suspect) { return suspect.fault.part == "b"; });
    both += has_late && has_slow ? 1 : 0;
  }
  EXPECT_GE(both, all * 85 / 100) << "of " << all;
}

TEST(Diagnose, TheFirstFourHoldWhatIsLikeliestTogether) {
  // One fault has four names, which no row tells apart; the other one has its own.
  const auto alike = [](const Question& question, std::span<const Fault> faults, std::span<const Bytes> sizes) {
    std::vector<Fault> renamed(faults.begin(), faults.end());
    for (Fault& fault : renamed) fault.part = fault.part.substr(0, 1);
    return predict(question, renamed, sizes);
  };
  std::vector<FaultClass> all;
  for (const char* part : {"a", "a2", "a3", "a4", "c"}) all.push_back({{part}, "cable", true});
  int both = 0;
  constexpr int tables = 10;
  for (std::uint64_t seed = 0; seed < tables; ++seed) {
    const std::array faults = {Fault{Fault::Kind::slow, "a", 0.35, 0, false},
                               Fault{Fault::Kind::slow, "c", 0.3, 0, false}};
    const std::vector<Evidence> evidence = measure(faults, seed);
    const auto diagnosis = diagnose(evidence, all, alike);
    ASSERT_TRUE(diagnosis);
    const auto first = std::span(diagnosis->suspects).first(std::min<std::size_t>(4, diagnosis->suspects.size()));
    const bool has_c = std::ranges::any_of(first, [](const Suspect& suspect) { return suspect.fault.part == "c"; });
    both += has_c ? 1 : 0;
  }
  EXPECT_GE(both, tables - 1);
}

// Of two descriptions of one machine the evidence tells which is right: calls that take 60 us more to start, with a
// slow part, are not a late rank beside it; and one that is late by 60 us is not other calls.
TEST(Diagnose, EvidenceTellsDescriptionsApart) {
  const auto predict_started = [](double longer) {
    return [longer](const Question& question, std::span<const Fault> faults,
                    std::span<const Bytes> sizes) -> Result<std::vector<double>> {
      std::vector<double> times = *predict(question, faults, sizes);
      for (double& time : times) time += longer;
      return times;
    };
  };
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const Fault slow{Fault::Kind::slow, parts[seed % parts.size()], 0.4, 0, false};
    std::vector<Evidence> evidence = measure(std::span(&slow, 1), seed);
    for (Evidence& each : evidence) {
      for (Point& point : each.points) point.seconds += 60e-6;
    }
    const auto right = diagnose(evidence, classes(), predict_started(60e-6));
    const auto short_of_it = diagnose(evidence, classes(), predict_started(0));
    const auto beyond = diagnose(evidence, classes(), predict_started(300e-6));
    ASSERT_TRUE(right && short_of_it && beyond);
    EXPECT_GT(right->log_evidence, short_of_it->log_evidence) << seed;
    EXPECT_GT(right->log_evidence, beyond->log_evidence + 5) << seed;
  }
}

TEST(Diagnose, WithEstimatesFewArePredicted) {
  const Fault fault{Fault::Kind::slow, "b", 0.5, 0, false};
  const std::vector<Evidence> evidence = measure(std::span(&fault, 1), 3);
  std::size_t predicted = 0;
  const Predict counted = [&](const Question& question, std::span<const Fault> faults, std::span<const Bytes> sizes) {
    ++predicted;
    return predict(question, faults, sizes);
  };
  DiagnoseOptions options;
  options.estimate = predict;
  const auto diagnosis = diagnose(evidence, classes(), counted, options);
  ASSERT_TRUE(diagnosis);
  EXPECT_EQ(predicted, evidence.size());  // The healthy machine's.
  ASSERT_FALSE(diagnosis->suspects.empty());
  EXPECT_TRUE(names(diagnosis->suspects, "b", 0.5));
}

TEST(Diagnose, WithEstimatesWhatIsGoneIsPredicted) {
  const Predict estimate = [](const Question& question, std::span<const Fault> faults, std::span<const Bytes> sizes) {
    if (!faults.empty() && faults.front().is_planned_around) {
      return Result<std::vector<double>>(fail(ErrorCode::unsupported, "what is planned around is not estimated"));
    }
    return predict(question, faults, sizes);
  };
  const Fault gone{Fault::Kind::gone, "d", 1, 0, true};
  const std::vector<Evidence> evidence = measure(std::span(&gone, 1), 3);
  DiagnoseOptions options;
  options.estimate = estimate;
  const auto gone_d = [](const Diagnosis& diagnosis) {
    return std::ranges::any_of(diagnosis.suspects, [](const Suspect& suspect) {
      return suspect.fault.part == "d" && suspect.fault.kind == Fault::Kind::gone;
    });
  };
  const auto without = diagnose(evidence, classes(), predict, options);
  options.max_known = 4;
  const auto with = diagnose(evidence, classes(), predict, options);
  ASSERT_TRUE(without && with);
  EXPECT_FALSE(gone_d(*without));
  EXPECT_TRUE(gone_d(*with));
}

TEST(Diagnose, ProbabilitiesAreSuch) {
  const Fault fault{Fault::Kind::slow, "b", 0.5, 0, false};
  const Diagnosis diagnosis = diagnosed(measure(std::span(&fault, 1), 3));
  ASSERT_FALSE(diagnosis.suspects.empty());
  for (const Suspect& suspect : diagnosis.suspects) {
    EXPECT_GE(suspect.probability, 0);
    EXPECT_LE(suspect.probability, 1 + 1e-9);
    EXPECT_GE(suspect.explains, 0);
    EXPECT_LE(suspect.explains, 1);
  }
  EXPECT_TRUE(std::ranges::is_sorted(diagnosis.suspects, std::ranges::greater(), &Suspect::probability));
  EXPECT_GE(diagnosis.suspects.size(), 3U) << "what is next stands there, however improbable";
}

TEST(Diagnose, AMachineFasterThanPredictedHasNoSuspects) {
  std::vector<Evidence> evidence = measure({}, 5);
  for (Evidence& each : evidence) {
    for (Point& point : each.points) point.seconds /= 2;
  }
  const Diagnosis diagnosis = diagnosed(evidence);
  EXPECT_EQ(diagnosis.verdict, Diagnosis::Verdict::faster);
  EXPECT_TRUE(diagnosis.suspects.empty());
}

TEST(NextTest, HalvesWhatIsLeft) {
  const Topology machine = test::read_good(R"(
espalier: 1
name: boxes
classes: {cable: {bandwidth: 10 GB/s, latency: 1 us}}
nodes: [{id: leaf, kind: switch}]
groups:
  - id: "box[0-7]"
    host: true
    nodes: [{id: gpu0, kind: gpu}]
    links: [{all: [gpu0, leaf], class: cable}]
)");
  std::set<std::string> asked;
  // A collective is as slow as the slowest cable among its ranks.
  const Predict slowest = [&](const Question& question, std::span<const Fault> faults, std::span<const Bytes>) {
    const auto ranks = find_rank_nodes(machine, question.ranks);
    asked.insert(question.ranks);
    EXPECT_TRUE(ranks);
    double time = 1;
    for (const Fault& fault : faults) {
      const NodeId of = machine.find_node(fault.part.substr(0, fault.part.find('-')));
      if (std::ranges::find(*ranks, of) != ranks->end()) time = std::max(time, 1 / fault.rate);
    }
    return Result<std::vector<double>>(std::vector{time});
  };
  std::vector<std::string> cables;
  for (int i = 0; i < 8; ++i) cables.push_back("box" + std::to_string(i) + ".gpu0-leaf");
  const Fault half{Fault::Kind::slow, {}, 0.5, 0, false};
  const auto test = find_next_test(machine, cables, half, {"", "all_reduce", "ring"}, {1 << 20}, slowest);
  ASSERT_TRUE(test);
  EXPECT_EQ(test->left, 4U);
  EXPECT_EQ(test->ranks, 4U);
  EXPECT_EQ(asked.size(), 1U);  // No other test leaves fewer, whatever it would take.
  EXPECT_FALSE(find_next_test(machine, cables, half, {"", "all_reduce", "ring"}, {1 << 20}, slowest, 0));
}

}  // namespace
}  // namespace espalier::diagnose
