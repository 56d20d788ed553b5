#include "cli/jobs/verbs_flags.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace espalier::cli {
namespace {

Result<engine::VerbsOptions> resolve_words(std::vector<std::string> words) {
  CLI::App app;
  VerbsFlags flags;
  flags.add_to(app);
  app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  return flags.resolve();
}

TEST(VerbsFlags, NothingGivenLeavesTheEnginesOwnChoice) {
  const auto options = resolve_words({});
  ASSERT_TRUE(options);
  EXPECT_TRUE(options->devices.empty());
  EXPECT_EQ(options->gid_index, engine::VerbsOptions{}.gid_index);
  EXPECT_EQ(options->timeout, engine::VerbsOptions{}.timeout);
}

TEST(VerbsFlags, EachSetsItsOption) {
  const auto options = resolve_words({"--verbs-device", "a,b", "--verbs-port", "2", "--verbs-gid", "3", "--verbs-mtu",
                                      "2048", "--verbs-traffic-class", "104", "--verbs-service-level", "5",
                                      "--verbs-retries", "6", "--verbs-timeout", "20"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->devices, (std::vector<std::vector<std::string>>{{"a"}, {"b"}}));
  EXPECT_EQ(options->port, 2);
  EXPECT_EQ(options->gid_index, 3);
  EXPECT_EQ(options->mtu, 2048U);
  EXPECT_EQ(options->traffic_class, 104);
  EXPECT_EQ(options->service_level, 5);
  EXPECT_EQ(options->retries, 6);
  EXPECT_EQ(options->timeout, 20);
}

TEST(VerbsFlags, ARankMayHaveSeveralDevices) {
  const auto options = resolve_words({"--verbs-device", "a+b,c"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->devices, (std::vector<std::vector<std::string>>{{"a", "b"}, {"c"}}));
}

TEST(VerbsFlags, ADeviceMayBeNamedWithItsPort) {
  const auto options = resolve_words({"--verbs-device", "a:1+a:2,b"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->devices, (std::vector<std::vector<std::string>>{{"a:1", "a:2"}, {"b"}}));
}

TEST(VerbsFlags, APortForAllNeedsADeviceNamedWithoutOne) {
  EXPECT_TRUE(resolve_words({"--verbs-device", "a:1,b", "--verbs-port", "2"}));
  const auto options = resolve_words({"--verbs-port", "2", "--verbs-device", "a:1,b:1"});
  ASSERT_FALSE(options);
  EXPECT_EQ(options.error().message.find("--verbs-port"), 0U) << options.error().message;
}

TEST(VerbsFlags, WhatCannotBeIsRefusedByName) {
  const std::vector<std::vector<std::string>> refused = {
      {"--verbs-device", "a,,b"},       {"--verbs-device", "a+,b"},
      {"--verbs-device", "a,b+b"},      {"--verbs-port", "0"},
      {"--verbs-device", "a:0"},        {"--verbs-device", "a:256"},
      {"--verbs-device", "a:"},         {"--verbs-device", ":1"},
      {"--verbs-device", "a:1:2"},      {"--verbs-device", "a:1+a:1"},
      {"--verbs-gid", "256"},           {"--verbs-mtu", "1000"},
      {"--verbs-traffic-class", "256"}, {"--verbs-service-level", "16"},
      {"--verbs-retries", "8"},         {"--verbs-timeout", "0"}};
  for (const auto& words : refused) {
    const auto options = resolve_words(words);
    ASSERT_FALSE(options) << words[0];
    EXPECT_EQ(options.error().message.find(words[0]), 0U) << options.error().message;
  }
}

}  // namespace
}  // namespace espalier::cli
