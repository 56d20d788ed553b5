#include "sweep/guarded/guarded_items.h"

#include <gtest/gtest.h>

#include <map>

#include "base/check.h"
#include "tests/support/sanitized.h"

namespace espalier::sweep {
namespace {

struct Outcome {
  std::map<std::size_t, std::string> lines, lost;
  Result<void> read;
};

Outcome outcome_of(std::size_t count, unsigned threads, const DoItem& work) {
  std::vector<std::size_t> items;
  for (std::size_t item = 0; item < count; ++item) items.push_back(item);
  GuardedItems guarded(items, threads, work);
  Outcome outcome;
  const auto into = [](std::map<std::size_t, std::string>& map) {
    return [&map](std::size_t item, std::string_view line) -> Result<void> {
      EXPECT_TRUE(map.emplace(item, line).second) << item << " comes twice";
      return {};
    };
  };
  outcome.read = guarded.read(into(outcome.lines), into(outcome.lost));
  return outcome;
}

TEST(GuardedItems, EndedProcessesCostTheirItemsAndNoOthers) {
  if (ESPALIER_SANITIZED != 0) GTEST_SKIP() << "under a sanitizer the process is to end";
  for (const unsigned threads : {1U, 3U}) {
    const Outcome outcome = outcome_of(40, threads, [](std::size_t item) -> Result<std::string> {
      ESPALIER_CHECK(item != 0 && item != 17 && item != 39, "the bug of this test");
      return item == 5 ? std::string() : "row " + std::to_string(item);
    });
    ASSERT_TRUE(outcome.read) << outcome.read.error().message;
    EXPECT_EQ(outcome.lines.size(), 37U);
    EXPECT_EQ(outcome.lines.at(16), "row 16");
    EXPECT_EQ(outcome.lines.at(5), "");
    ASSERT_EQ(outcome.lost.size(), 3U);
    for (const std::size_t item : {0U, 17U, 39U}) {
      EXPECT_NE(outcome.lost.at(item).find("the bug of this test"), std::string::npos) << outcome.lost.at(item);
    }
  }
}

TEST(GuardedItems, ErrorsOfTheWorkEndIt) {
  const Outcome outcome = outcome_of(10, 1, [](std::size_t item) -> Result<std::string> {
    if (item == 4) return fail(ErrorCode::invalid_input, "no such scenario");
    return std::to_string(item);
  });
  ASSERT_FALSE(outcome.read);
  EXPECT_EQ(outcome.read.error().message, "no such scenario");
  EXPECT_EQ(outcome.lines.size(), 4U);
}

TEST(GuardedItems, ErrorsOfTheReaderEndIt) {
  GuardedItems guarded({0, 1}, 1, [](std::size_t) -> Result<std::string> { return std::string("row"); });
  const OnLine full = [](std::size_t, std::string_view) -> Result<void> {
    return fail(ErrorCode::unavailable, "full");
  };
  const auto read = guarded.read(full, full);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "full");
}

}  // namespace
}  // namespace espalier::sweep
