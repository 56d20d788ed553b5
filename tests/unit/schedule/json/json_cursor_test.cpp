#include "schedule/json/json_cursor.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/random.h"

namespace espalier {
namespace {

/// The raw value that a text holds, or the failure as "offset: message".
std::string raw_or_failure(std::string_view text) {
  JsonCursor cursor(text);
  std::string_view raw;
  if (cursor.read_raw(raw) && cursor.at_end()) return std::string(raw);
  return std::to_string(cursor.failure().offset) + ": " + cursor.failure().message;
}

TEST(JsonCursor, ReadsValueByValue) {
  JsonCursor cursor(R"( {"a": [1, -2], "b": "x\n\u00e9\ud83d\ude00", "c": null, "d": 2.5e1} )");
  std::string_view key;
  std::string_view text;
  std::int64_t first = 0;
  std::int64_t second = 0;
  double number = 0;
  ASSERT_TRUE(cursor.begin_object() && cursor.next_key(key));
  EXPECT_EQ(key, "a");
  ASSERT_TRUE(cursor.begin_array() && cursor.next_element() && cursor.read_integer(first) && cursor.next_element() &&
              cursor.read_integer(second) && !cursor.next_element());
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, -2);
  ASSERT_TRUE(cursor.next_key(key) && cursor.read_string(text));
  EXPECT_EQ(text, "x\n\u00e9\U0001F600");
  ASSERT_TRUE(cursor.next_key(key) && cursor.take_null());
  ASSERT_TRUE(cursor.next_key(key) && cursor.read_number(number));
  EXPECT_EQ(number, 25);
  EXPECT_TRUE(!cursor.next_key(key) && cursor.at_end());
  EXPECT_FALSE(cursor.failed());
}

TEST(JsonCursor, KeepsTheFirstFailure) {
  JsonCursor cursor("[1, x]");
  std::int64_t value = 0;
  ASSERT_TRUE(cursor.begin_array());
  while (cursor.next_element()) {
    if (!cursor.read_integer(value)) break;
  }
  EXPECT_FALSE(cursor.begin_object());
  EXPECT_FALSE(cursor.next_element());
  EXPECT_EQ(cursor.failure().offset, 4U);
  EXPECT_EQ(cursor.failure().message, "a whole number is expected here, not 'x'");
}

TEST(JsonCursor, SaysWhatIsWrongWhere) {
  EXPECT_EQ(raw_or_failure(R"({"a": [true, {}]})"), R"({"a": [true, {}]})");
  EXPECT_EQ(raw_or_failure("[1, 2"), "5: the text ends where ',' or ']' is expected");
  EXPECT_EQ(raw_or_failure("[1 2]"), "3: ',' or ']' is expected here, not a number");
  EXPECT_EQ(raw_or_failure("[1,]"), "3: the list ends after a comma");
  EXPECT_EQ(raw_or_failure(R"({"a": 1,})"), "8: the object ends after a comma");
  EXPECT_EQ(raw_or_failure("{a: 1}"), "1: a key in quotes is expected here, not 'a'");
  EXPECT_EQ(raw_or_failure(R"({"a" 1})"), "5: ':' is expected here, not a number");
  EXPECT_EQ(raw_or_failure("\"abc"), "0: the text ends within this string");
  EXPECT_EQ(raw_or_failure("\"\\x\""), "1: a string holds an escape that JSON does not have");
  EXPECT_EQ(raw_or_failure("\"\\ud800\""), "1: half of a surrogate pair");
  EXPECT_EQ(raw_or_failure("\"\\udc00\""), "1: half of a surrogate pair");
  EXPECT_EQ(raw_or_failure("\"a\tb\""), "2: a string holds a control character");
  EXPECT_EQ(raw_or_failure("\"\xC3\x28\""), "1: a string holds bytes that are not UTF-8");
  EXPECT_EQ(raw_or_failure("01"), "0: a number that JSON does not have");
  EXPECT_EQ(raw_or_failure("1 1"), "2: something follows after the end of the document");
  EXPECT_EQ(raw_or_failure("NaN"), "0: a value is expected here, not 'N'");
  EXPECT_EQ(raw_or_failure(""), "0: the text ends where a value is expected");
  EXPECT_EQ(raw_or_failure(std::string(65, '[')), "64: more than 64 lists and objects inside each other");
  EXPECT_EQ(raw_or_failure(std::string(1'000'000, '{')), "1: a key in quotes is expected here, not an object");
}

TEST(JsonCursor, RefusesNumbersThatDoNotFit) {
  std::int64_t integer = 0;
  double number = 0;
  for (const char* text : {"9223372036854775808", "-9223372036854775809", "1.0", "1e3", "\"1\"", "true", "-", "+1"}) {
    EXPECT_FALSE(JsonCursor(text).read_integer(integer)) << text;
  }
  EXPECT_TRUE(JsonCursor("-9223372036854775808").read_integer(integer));
  EXPECT_EQ(integer, INT64_MIN);
  EXPECT_FALSE(JsonCursor("1e400").read_number(number));
}

TEST(JsonCursor, PlacesCountLinesAndCharacters) {
  const std::string_view text = "ab\n\u00e9\u00e9x";
  EXPECT_EQ(position_of(text, 0).column, 1U);
  EXPECT_EQ(position_of(text, 7).line, 2U);
  EXPECT_EQ(position_of(text, 7).column, 3U);
}

/// Damages a document at random places with bytes that matter in JSON.
std::string damaged(std::string text, Random& random) {
  constexpr std::string_view bytes =
      "{}[]\",:\\ 0123456789-+.eEtrufalsn\x01\x1F\x7F\xC3\xA9\xED\xA0\x80\xF0\x9F\x98\xFF\n";
  for (std::uint64_t i = 0; i < 1 + random.below(3); ++i) {
    const std::size_t place = random.below(text.size());
    switch (random.below(3)) {
      case 0: text[place] = bytes[random.below(bytes.size())]; break;
      case 1: text.insert(place, 1, bytes[random.below(bytes.size())]); break;
      default: text.erase(place, 1 + random.below(3)); break;
    }
    if (text.empty()) text = "0";
  }
  return text;
}

TEST(JsonCursor, AcceptsExactlyWhatAnotherParserAccepts) {
  const std::string whole = R"({"a": [1, -0.5, 2e3, true, false, null], "b\u00e9\ud83d\ude00\n": {"c": "x)"
                            "\xC3\xA9\xF0\x9F\x98\x80"
                            R"(", "d": {}}, "e": [], "f": "\\\"\/\b\f\r\t"})";
  ASSERT_EQ(raw_or_failure(whole), whole);
  Random random(23);
  int accepted = 0;
  for (int round = 0; round < 50'000; ++round) {
    const std::string text = damaged(whole, random);
    JsonCursor cursor(text);
    std::string_view raw;
    const bool ours = cursor.read_raw(raw) && cursor.at_end();
    // A leading byte order mark is skipped there and refused here; overflowing numbers are judged later here.
    ASSERT_EQ(ours, nlohmann::json::accept(text)) << text;
    accepted += ours ? 1 : 0;
  }
  EXPECT_GT(accepted, 1'000);
}

}  // namespace
}  // namespace espalier
