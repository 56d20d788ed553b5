#include "sweep/spec_values.h"

#include <gtest/gtest.h>

namespace espalier::sweep {
namespace {

TEST(SpecValues, AreLists) {
  EXPECT_EQ(*parse_size_list("1K,10", 4), (std::vector{Bytes{1024}, Bytes{8}}));
  EXPECT_EQ(*parse_chunks("auto,64K", 4), (std::vector<std::optional<Bytes>>{std::nullopt, Bytes{65536}}));
  EXPECT_EQ(parse_collectives("all")->size(), all_collective_kinds.size());
  EXPECT_EQ(*parse_collectives("reduce,gather"), (std::vector{CollectiveKind::reduce, CollectiveKind::gather}));
  EXPECT_EQ(parse_models("all")->size(), sim::all_models.size());
  EXPECT_EQ(*parse_protocols("ll,none"), (std::vector{sim::Protocol::ll, sim::Protocol::plain}));
  EXPECT_EQ(parse_protocols("all")->size(), 4U);
  EXPECT_EQ(*parse_copy_engine_counts("0,64"), (std::vector<std::uint32_t>{0, 64}));
  EXPECT_EQ(*parse_jitters("0,2%,0.5,100%"), (std::vector<std::int32_t>{0, 20'000, 500'000, 1'000'000}));
  EXPECT_EQ(*parse_seeds("7,1-3,18446744073709551615"), (std::vector<std::uint64_t>{7, 1, 2, 3, UINT64_MAX}));
  const auto kinds = parse_failure_kinds("hosts,links");
  EXPECT_TRUE(kinds && kinds->hosts && kinds->links && !kinds->nodes && !kinds->ranks);
}

TEST(SpecValues, SayWhatIsWrongWithWhich) {
  EXPECT_FALSE(parse_size_list("", 4));
  EXPECT_FALSE(parse_size_list("1K,,2K", 4));
  EXPECT_EQ(parse_chunks("1", 4).error().message, "a chunk holds at least one element");
  EXPECT_EQ(parse_models("lank").error().message, "there is no model 'lank'");
  EXPECT_EQ(parse_models("lank").error().help, "did you mean 'link'?");
  EXPECT_FALSE(parse_collectives("all_reduce,some"));
  EXPECT_EQ(parse_failure_kinds("lonks").error().help, "did you mean 'links'?");
  for (const char* const text : {"", "ll12", "ll,"}) EXPECT_FALSE(parse_protocols(text)) << text;
  for (const char* const text : {"", "65", "-1", "two"}) EXPECT_FALSE(parse_copy_engine_counts(text)) << text;
  for (const char* const text : {"", "1", "-1%", "2%%", "101%", "x"}) EXPECT_FALSE(parse_jitters(text)) << text;
  for (const char* const text : {"", "-1", "3-1", "1-", "1,,2", "x", "0-18446744073709551615", "1-1000001"}) {
    EXPECT_FALSE(parse_seeds(text)) << text;
  }
}

}  // namespace
}  // namespace espalier::sweep
