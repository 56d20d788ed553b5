#include "engine/rendezvous/exchange_table.h"

#include <gtest/gtest.h>

#include "engine/rendezvous/control_plane.h"

namespace espalier::engine::rendezvous {
namespace {

using std::chrono::milliseconds;
const ExchangeTable::Time start{};

Put put_of(std::uint64_t id, const std::string& tag, std::vector<std::uint32_t> members, std::string blob,
           std::uint64_t timeout_ms = 1000) {
  return {id, timeout_ms, tag, std::move(members), std::move(blob)};
}

TEST(ExchangeTable, AnswersWhenTheLastHasComeInTheOrderOfMembers) {
  ExchangeTable table(4);
  EXPECT_FALSE(table.put(3, put_of(30, "t", {3, 1}, "three"), start));
  const auto answer = table.put(1, put_of(10, "t", {3, 1}, "one"), start);
  ASSERT_TRUE(answer && answer->blobs->has_value());
  EXPECT_EQ(**answer->blobs, (std::vector<std::string>{"three", "one"}));
  EXPECT_EQ(answer->to, (std::vector<std::pair<std::uint32_t, std::uint64_t>>{{1, 10}, {3, 30}}));
  EXPECT_FALSE(table.next_deadline());
}

TEST(ExchangeTable, OtherTagsAndOtherMembersAreOtherExchanges) {
  ExchangeTable table(4);
  EXPECT_FALSE(table.put(0, put_of(1, "a", {0, 1}, "x"), start));
  EXPECT_FALSE(table.put(1, put_of(1, "b", {0, 1}, "x"), start));
  EXPECT_FALSE(table.put(1, put_of(2, "a", {1, 0}, "x"), start));
  EXPECT_TRUE(table.put(1, put_of(3, "a", {0, 1}, "x"), start));
}

TEST(ExchangeTable, TheTimeIsUpForEachMemberOnItsOwn) {
  ExchangeTable table(3);
  table.put(0, put_of(1, "t", {0, 1, 2}, "x", 100), start);
  table.put(1, put_of(2, "t", {0, 1, 2}, "x", 250), start);
  EXPECT_EQ(table.next_deadline(), start + milliseconds(100));
  EXPECT_TRUE(table.expire(start + milliseconds(99)).empty());
  const auto first = table.expire(start + milliseconds(100));
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].to[0].first, 0U);
  EXPECT_EQ(first[0].blobs->error().message, "exchange 't': rank 2 did not come within 100 ms");
  const auto second = table.expire(start + milliseconds(250));
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(second[0].blobs->error().message, "exchange 't': ranks 0, 2 did not come within 250 ms");
  EXPECT_FALSE(table.next_deadline());
}

TEST(ExchangeTable, PostponedEverybodyHasMoreTime) {
  ExchangeTable table(3);
  table.put(0, put_of(1, "t", {0, 1, 2}, "x", 100), start);
  table.put(1, put_of(2, "t", {0, 1, 2}, "x", 250), start);
  table.postpone(milliseconds(1000));
  EXPECT_EQ(table.next_deadline(), start + milliseconds(1100));
  EXPECT_TRUE(table.expire(start + milliseconds(1099)).empty());
  EXPECT_EQ(table.expire(start + milliseconds(1100)).size(), 1U);
  EXPECT_EQ(table.expire(start + milliseconds(1250)).size(), 1U);
}

TEST(ExchangeTable, WhoLeavesEndsWhatWaitsForIt) {
  ExchangeTable table(3);
  table.put(0, put_of(1, "t", {0, 2}, "x"), start);
  table.put(1, put_of(2, "u", {0, 1}, "x"), start);
  const auto answers = table.leave(2);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].to[0].first, 0U);
  EXPECT_EQ(answers[0].blobs->error().message, "exchange 't': rank 2 left the job");
  const auto refused = table.put(0, put_of(3, "t", {0, 2}, "x"), start);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->blobs->error().message, "exchange 't': rank 2 has left the job");
}

TEST(ExchangeTable, RefusesMembersThatMakeNoSense) {
  ExchangeTable table(3);
  for (const std::vector<std::uint32_t>& members :
       {std::vector<std::uint32_t>{}, {1, 2}, {0, 0}, {0, 3}, {0, 0xFFFFFFFF}}) {
    const auto refused = table.put(0, put_of(1, "t", members, "x"), start);
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->blobs->error().code, ErrorCode::invalid_input);
  }
}

TEST(ExchangeTable, OneRankTwiceIsRefused) {
  ExchangeTable table(2);
  table.put(0, put_of(1, "t", {0, 1}, "x"), start);
  const auto refused = table.put(0, put_of(2, "t", {0, 1}, "x"), start);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->blobs->error().message, "exchange 't': rank 0 is in it already");
  EXPECT_TRUE(table.put(1, put_of(3, "t", {0, 1}, "x"), start)->blobs->has_value());
}

TEST(ExchangeTable, TooMuchInAllIsAnErrorForAll) {
  const std::uint32_t world = largest_exchange / largest_blob + 1;
  ExchangeTable table(world);
  std::vector<std::uint32_t> members;
  for (std::uint32_t rank = 0; rank < world; ++rank) members.push_back(rank);
  const std::string blob(largest_blob, 'x');
  for (std::uint32_t rank = 0; rank + 1 < world; ++rank) {
    EXPECT_FALSE(table.put(rank, put_of(rank, "t", members, blob), start));
  }
  const auto answer = table.put(world - 1, put_of(9, "t", members, blob), start);
  ASSERT_TRUE(answer && !answer->blobs->has_value());
  EXPECT_EQ(answer->to.size(), world);
  EXPECT_EQ(answer->blobs->error().code, ErrorCode::too_large);
}

}  // namespace
}  // namespace espalier::engine::rendezvous
