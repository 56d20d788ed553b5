#include "cli/flags/address_file.h"

#include <gtest/gtest.h>

namespace espalier::cli {
namespace {

std::string error_of(const std::string& text) {
  const auto read = read_addresses(text, "a.json");
  return read ? "read" : read.error().message;
}

TEST(AddressFile, ReadsRoutes) {
  const auto read = read_addresses(R"([{"route": 4294967294, "bind": "10.0.0.1", "connect": "10.0.0.2"},
                                       {"route": 0, "connect": "::1"}])",
                                   "a.json");
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ((*read)[0].route, 4294967294U);
  EXPECT_EQ((*read)[0].bind, "10.0.0.1");
  EXPECT_EQ((*read)[1].bind, "");
  EXPECT_EQ((*read)[1].connect, "::1");
}

TEST(AddressFile, RefusesWhatIsNoAddress) {
  EXPECT_EQ(error_of("{}"), "a.json: not a JSON list of addresses");
  EXPECT_EQ(error_of("[\xff]"), "a.json: not a JSON list of addresses");
  EXPECT_EQ(error_of("[5]"), "a.json: entry 0: it has no route's number");
  EXPECT_EQ(error_of(R"([{"route": -1, "connect": "h"}])"), "a.json: entry 0: it has no route's number");
  EXPECT_EQ(error_of(R"([{"route": 0.5, "connect": "h"}])"), "a.json: entry 0: it has no route's number");
  EXPECT_EQ(error_of(R"([{"route": 0, "bind": 5, "connect": "h"}])"), "a.json: entry 0: 'bind' is no address");
  EXPECT_EQ(error_of(R"([{"route": 0}])"), "a.json: entry 0: it has no address to connect to");
  EXPECT_EQ(error_of(R"([{"route": 0, "connect": null}])"), "a.json: entry 0: it has no address to connect to");
  EXPECT_EQ(error_of(R"([{"route": 0, "connect": "h"}, {"route": 0, "connect": "i"}])"),
            "a.json: entry 1: route 0 is there twice");
}

// 2^40 has 32 zero bits at its end: cut to 32 bits it would be route 0.
TEST(AddressFile, NeverCutsARoutesNumber) {
  EXPECT_EQ(error_of(R"([{"route": 1099511627776, "connect": "h"}])"),
            "a.json: entry 0: there is no route 1099511627776");
  EXPECT_EQ(error_of(R"([{"route": 4294967295, "connect": "h"}])"), "a.json: entry 0: there is no route 4294967295");
}

}  // namespace
}  // namespace espalier::cli
