#include "experts/exchange.h"

#include <gtest/gtest.h>

#include <string>

namespace espalier::experts {
namespace {

MachineRates one_box() { return {.ranks = 8, .boxes = 1, .link_rate = 450e9, .nic_rate = 0, .link_latency = 700e-9}; }
MachineRates four_boxes() {
  return {.ranks = 32, .boxes = 4, .link_rate = 450e9, .nic_rate = 50e9, .link_latency = 700e-9};
}
Exchange of(Software software) {
  return {.software = software, .tokens = 4096, .hidden = 7168, .top_k = 8, .experts = 256};
}
const Phase& phase(const std::vector<Phase>& phases, std::string_view name) {
  for (const Phase& each : phases) {
    if (each.name == name) return each;
  }
  ADD_FAILURE() << name;
  return phases.front();
}

TEST(Exchange, CountsPartsThatHoldSomeExpert) {
  // Two of two experts of four, one on each of four parts: always two parts.
  EXPECT_DOUBLE_EQ(expected_parts(4, 2, 4), 2);
  // Two of four, two on each of two parts: the second is beside the first once in three times. 1 + 2/3.
  EXPECT_NEAR(expected_parts(4, 2, 2), 5.0 / 3, 1e-12);
  EXPECT_DOUBLE_EQ(expected_parts(8, 8, 4), 4);
  EXPECT_DOUBLE_EQ(expected_parts(256, 8, 1), 1);
}

TEST(Exchange, NeverBeatsWhatHasToLeave) {
  // What leaves a rank at least: tokens x ranks beside its own that get a copy, at the link's rate.
  const Exchange asked = of(Software::deepep_normal);
  const double copies = expected_parts(256, 8, 8) * 7 / 8;
  const auto phases = predict(one_box(), asked);
  ASSERT_TRUE(phases);
  EXPECT_GT(phase(*phases, "dispatch").seconds, 4096 * copies * 7168 / 450e9);
  EXPECT_GT(phase(*phases, "combine").seconds, 4096 * copies * 7168 * 2 / 450e9);
  const auto far = predict(four_boxes(), asked);
  ASSERT_TRUE(far);
  EXPECT_GT(phase(*far, "dispatch").seconds, 4096 * expected_parts(256, 8, 4) * 3 / 4 * 7168 / 50e9);
  EXPECT_EQ(phase(*far, "dispatch").limit, Limit::nics);
  EXPECT_EQ(far->size(), 4U);
}

TEST(Exchange, MoreMultiprocessorsAreFasterUntilLinksLimit) {
  Exchange asked = of(Software::deepep_normal);
  double before = 1;
  for (const std::int64_t sms : {4, 8, 12, 24}) {
    asked.sms = sms;
    const double now = phase(*predict(one_box(), asked), "dispatch").seconds;
    EXPECT_LT(now, before) << sms;
    before = now;
  }
  asked.sms = 4;
  EXPECT_EQ(phase(*predict(one_box(), asked), "dispatch").limit, Limit::multiprocessors);
  asked.sms = 128;
  EXPECT_EQ(phase(*predict(one_box(), asked), "dispatch").limit, Limit::links);
}

TEST(Exchange, FewExpertsLeaveMultiprocessorsIdleInDecoding) {
  Exchange asked = of(Software::deepep_low_latency);
  asked.top_k = 2;
  asked.experts = 8;
  EXPECT_EQ(phase(*predict(one_box(), asked), "dispatch").limit, Limit::multiprocessors);
  asked.experts = 128;
  EXPECT_EQ(phase(*predict(one_box(), asked), "dispatch").limit, Limit::links);
  asked.tokens = 1;
  EXPECT_EQ(phase(*predict(one_box(), asked), "dispatch").limit, Limit::start);
}

TEST(Exchange, SmallerFormatsTakeLess) {
  Exchange asked = of(Software::trtllm_two_sided);
  double before = 1;
  for (const Format format : {Format::bf16, Format::fp8, Format::nvfp4}) {
    asked.dispatch = format;
    const double now = phase(*predict(one_box(), asked), "dispatch").seconds;
    EXPECT_LT(now, before);
    before = now;
  }
}

TEST(Exchange, RefusesWhatCannotBe) {
  const auto refused = [](const MachineRates& machine, const Exchange& asked) {
    const auto answer = predict(machine, asked);
    return answer ? std::string("answered") : answer.error().message;
  };
  Exchange asked = of(Software::deepep_normal);
  asked.sms = 5;
  EXPECT_EQ(refused(one_box(), asked), "sms is 5");
  asked.sms = 134;
  EXPECT_EQ(refused(one_box(), asked), "sms is 134");
  asked = of(Software::deepep_normal);
  asked.top_k = 257;
  EXPECT_EQ(refused(one_box(), asked), "top-k is 257");
  asked = of(Software::deepep_normal);
  asked.tokens = 0;
  EXPECT_EQ(refused(one_box(), asked), "tokens is 0");
  asked = of(Software::deepep_normal);
  asked.dispatch = Format::nvfp4;
  EXPECT_EQ(refused(one_box(), asked), "deepep-normal dispatches bf16 or fp8 and combines bf16");
  EXPECT_EQ(refused(four_boxes(), of(Software::trtllm_two_sided)), "trtllm-nvlink stays within one NVLink domain");
  asked = of(Software::deepep_low_latency);
  asked.experts = 16;
  EXPECT_EQ(refused(four_boxes(), asked), "16 experts are not one for each of 32 ranks");
  asked = of(Software::deepep_normal);
  asked.max_boxes = 1;
  asked.top_k = 65;
  EXPECT_EQ(refused(four_boxes(), asked), "1 boxes have 64 experts, fewer than top-k 65");
  EXPECT_EQ(refused({.ranks = 1, .boxes = 1, .link_rate = 1e9}, of(Software::deepep_normal)),
            "one rank has nobody to exchange with");
}

TEST(Exchange, NamesGoBothWays) {
  for (const Software software : {Software::deepep_normal, Software::deepep_low_latency, Software::trtllm_two_sided,
                                  Software::trtllm_one_sided}) {
    EXPECT_EQ(*parse_software(name_of(software)), software);
  }
  const auto unknown = parse_software("deepep");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().help.find("deepep-normal"), std::string::npos);
  EXPECT_FALSE(parse_format("fp32"));
}

}  // namespace
}  // namespace espalier::experts
