#include "topology/yaml/read_limits.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "topology/yaml/read_topology.h"

namespace espalier {
namespace {

std::string first_code(const TopologyReading& reading) {
  return reading.diagnostics.empty() ? "none" : reading.diagnostics.front().code;
}

std::string code_of(std::string_view text) {
  const TopologyReading reading = read_topology_text(text, "test.yaml");
  EXPECT_FALSE(reading.topology.has_value());
  return first_code(reading);
}

std::string repeated(std::string_view text, std::size_t times) {
  std::string result;
  result.reserve(text.size() * times);
  for (std::size_t i = 0; i < times; ++i) result += text;
  return result;
}

class ReadFiles : public testing::Test {
 protected:
  void SetUp() override {
    const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::path(testing::TempDir()) / (std::string("espalier_") + test->name() + ".yaml");
  }
  void TearDown() override { std::filesystem::remove_all(path_); }
  std::filesystem::path path_;
};

TEST_F(ReadFiles, T001WhatCannotBeReadIsRefused) {
  EXPECT_EQ(first_code(read_topology_file(path_)), "T001");
  EXPECT_EQ(first_code(read_topology_file("")), "T001");
  std::filesystem::create_directory(path_);
  EXPECT_EQ(first_code(read_topology_file(path_)), "T001");
}

TEST_F(ReadFiles, T002AHundredMegabytesAreRefusedUnread) {
  std::ofstream(path_) << "espalier: 1\n";
  std::filesystem::resize_file(path_, 100'000'000);
  const TopologyReading reading = read_topology_file(path_);
  EXPECT_EQ(first_code(reading), "T002");
  EXPECT_EQ(reading.diagnostics.size(), 1U);
}

TEST(ReadLimits, T002EndlessFilesAreRefused) { EXPECT_EQ(first_code(read_topology_file("/dev/zero")), "T002"); }

TEST(ReadLimits, T002TextsAreBoundedLikeFiles) {
  EXPECT_EQ(code_of(repeated("# nothing\n", read_limits::file_bytes / 10 + 1)), "T002");
}

TEST(ReadLimits, T002OneBracketIsBounded) {
  const std::string word(1000, 'a');
  EXPECT_EQ(code_of("[" + repeated(word + ",", read_limits::flow_bytes / 1000 + 4) + "]"), "T002");
  EXPECT_EQ(code_of("a: '" + repeated(word + " ", read_limits::flow_bytes / 1000 + 4) + "'"), "T002");
}

TEST(ReadLimits, T007DeepNestingIsRefused) {
  constexpr std::size_t deep = 100'000;
  EXPECT_EQ(code_of(repeated("[", deep)), "T007");
  EXPECT_EQ(code_of(repeated("[", deep) + repeated("]", deep)), "T007");
  EXPECT_EQ(code_of(repeated("{a: ", deep) + repeated("}", deep)), "T007");
  EXPECT_EQ(code_of(repeated("- ", deep)), "T007");
  EXPECT_EQ(code_of(repeated("? ", deep)), "T007");
  EXPECT_EQ(code_of(repeated("[\n", deep)), "T007");
  EXPECT_EQ(code_of(repeated("{\"a\":[", deep)), "T007");
  std::string stairs;
  for (std::size_t i = 0; i < 1000; ++i) stairs += std::string(i, ' ') + "a:\n";
  EXPECT_EQ(code_of(stairs), "T007");
}

TEST(ReadLimits, T007AnAliasCountsWithItsDepth) {
  std::string text = "a: &a [x]\n";
  for (char name = 'b'; name <= 'z'; ++name) {
    text += std::string{name, ':', ' ', '&', name, ' ', '[', '*', static_cast<char>(name - 1), ']', '\n'};
  }
  text += "last: [[[[[[[[*z]]]]]]]]\n";
  EXPECT_EQ(code_of(text), "T007");
}

TEST(ReadLimits, T010ABillionLaughsAreRefused) {
  std::string text = "a: &a [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n";
  for (char name = 'b'; name <= 'k'; ++name) {
    const std::string alias = std::string("*") + static_cast<char>(name - 1);
    text += std::string{name} + ": &" + name + " [" + alias;
    for (int i = 0; i < 9; ++i) text += ", " + alias;
    text += "]\n";
  }
  EXPECT_EQ(code_of(text), "T010");
}

TEST(ReadLimits, T052AParameterBombIsRefused) {
  std::string text = "espalier: 1\nparameters:\n  p0: lollollol\n";
  for (int i = 1; i < 40; ++i) {
    text += "  p" + std::to_string(i) + ": $p" + std::to_string(i - 1) + "$p" + std::to_string(i - 1) + "\n";
  }
  EXPECT_EQ(code_of(text), "T052");
}

TEST(ReadLimits, LongLinesAreNotShown) {
  const std::string text = "espalier: 1\nnodes: [" + repeated("{id: a, kind: gpu}, ", 1000) + "]\n";
  const TopologyReading reading = read_topology_text(text, "test.yaml");
  for (const Diagnostic& diagnostic : reading.diagnostics) EXPECT_LE(diagnostic.excerpt.size(), 4096U);
  EXPECT_EQ(first_code(reading), "T031");
}

TEST(ReadLimits, AThousandAndTwentyFourRanksJoinedEachWithEachAreRead) {
  const TopologyReading reading = read_topology_text(
      "espalier: 1\nnodes: [{id: g, count: 1024, kind: gpu}]\nlinks: [{all: [\"g[*]\"], bandwidth: 1 GB/s}]\n", "test");
  ASSERT_TRUE(reading.topology.has_value());
  EXPECT_EQ(reading.topology->link_count(), 1024U * 1023U);
}

}  // namespace
}  // namespace espalier
