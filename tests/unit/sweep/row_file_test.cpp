#include "sweep/row_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace espalier::sweep {
namespace {

constexpr RowStyle csv_style{RowFormat::csv, false};

class RowFileTest : public testing::Test {
 protected:
  RowFileTest() { std::filesystem::remove(path_); }
  ~RowFileTest() override { std::filesystem::remove(path_); }

  [[nodiscard]] std::string text() const {
    std::ifstream stream(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  }
  void set_text(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }

  std::string path_ = std::filesystem::temp_directory_path() / ("espalier_rows_" + std::to_string(getpid()) + ".csv");
};

Row make_row(std::int64_t size) {
  Row row;
  row.key.topology = "a, \"quoted\" name";
  row.key.size = {size};
  row.reason = "why not";
  return row;
}

TEST_F(RowFileTest, GoesOnAfterACutAtEveryByteOfTheLastLine) {
  const std::string before = header_text(csv_style) + row_text(make_row(1), csv_style);
  const std::string last = row_text(make_row(2), csv_style);
  for (std::size_t cut = 0; cut <= last.size(); ++cut) {
    set_text(before + last.substr(0, cut));
    auto file = RowFile::open(path_, csv_style, true);
    ASSERT_TRUE(file) << file.error().message;
    const bool is_whole = cut == last.size();
    EXPECT_EQ(file->was_torn(), cut > 0 && !is_whole);
    ASSERT_EQ(file->rows().size(), is_whole ? 2U : 1U);
    if (!is_whole) {
      ASSERT_TRUE(file->append(make_row(2)));
    }
    EXPECT_EQ(text(), before + last) << cut;
  }
}

TEST_F(RowFileTest, AHeaderThatIsNotWholeProvesNothing) {
  const std::string header = header_text(csv_style);
  for (std::size_t cut = 1; cut < header.size(); ++cut) {
    set_text(header.substr(0, cut));
    const auto file = RowFile::open(path_, csv_style, true);
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().message, path_ + ":1: the columns are not those of espalier/sweep/4");
    EXPECT_EQ(text(), header.substr(0, cut));
  }
}

TEST_F(RowFileTest, GoesOnWithAnEmptyFileOrAHeader) {
  const std::string header = header_text(csv_style);
  for (const std::string& there : {std::string(), header}) {
    set_text(there);
    auto file = RowFile::open(path_, csv_style, true);
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_TRUE(file->append(make_row(1)));
    EXPECT_EQ(text(), header + row_text(make_row(1), csv_style));
  }
}

// Every byte of a file of rows becomes a stray quote, once: the file is refused or, where the quote stands in the last
// line, read without it; nothing that was there is lost but that line.
TEST_F(RowFileTest, AStrayQuoteNeverCostsRows) {
  std::string whole = header_text(csv_style);
  for (std::int64_t size = 1; size <= 5; ++size) whole += row_text(make_row(size), csv_style);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string harmed = whole;
    harmed[at] = '"';
    set_text(harmed);
    const auto file = RowFile::open(path_, csv_style, true);
    const bool ends_without_break = at + 1 == whole.size();
    if (file) {
      EXPECT_TRUE(ends_without_break || !file->was_torn()) << at;
      EXPECT_TRUE(ends_without_break || file->rows().size() == 5) << at;
    } else {
      EXPECT_TRUE(file.error().message.starts_with(path_ + ":")) << file.error().message;
      EXPECT_EQ(text(), harmed);
    }
  }
}

// A file that is whole JSON, a line of it, or anything else is refused and stays as it is, in both formats.
TEST_F(RowFileTest, WhatIsNotProvenToBeRowsIsNeverTouched) {
  const std::string row = row_text(make_row(1), {RowFormat::json_lines, false});
  const std::string two_lines = header_text(csv_style) + row_text(make_row(1), csv_style);
  const std::array<std::string, 10> foreign = {"{\"a\": 1}",
                                               "{\"a\": 1}\n",
                                               "{",
                                               "{\"schema\":\"espalier/sweep/9\",\"x",
                                               "\"",
                                               std::string(64, '\0'),
                                               "espalier",
                                               row + "{\"a",
                                               two_lines + "1,2,3",
                                               two_lines + "espalier/sweep/4,\"\n"};
  for (const std::string& content : foreign) {
    for (const RowFormat format : {RowFormat::csv, RowFormat::json_lines}) {
      set_text(content);
      const auto file = RowFile::open(path_, {format, false}, true);
      ASSERT_FALSE(file) << content;
      EXPECT_TRUE(file.error().message.starts_with(path_ + ":")) << file.error().message;
      EXPECT_NE(file.error().help, "");
      EXPECT_EQ(text(), content);
    }
  }
}

TEST_F(RowFileTest, ALineBreakInQuotesIsNotTakenForTorn) {
  Row row = make_row(2);
  row.key.topology = "a\nname";
  const std::string before = header_text(csv_style) + row_text(make_row(1), csv_style);
  const std::string last = row_text(row, csv_style);
  for (std::size_t cut = 1; cut < last.size(); ++cut) {
    set_text(before + last.substr(0, cut));
    const auto file = RowFile::open(path_, csv_style, true);
    const bool is_behind_the_break = last.find('\n') < cut;
    EXPECT_EQ(file.has_value(), !is_behind_the_break) << cut;
    EXPECT_EQ(text(), is_behind_the_break ? before + last.substr(0, cut) : before) << cut;
  }
}

TEST_F(RowFileTest, OnlyRowsAreReplaceable) {
  EXPECT_TRUE(check_replaceable(path_));
  for (const std::string& content : {std::string(), header_text(csv_style), header_text({RowFormat::csv, true}),
                                     row_text(make_row(1), {RowFormat::json_lines, false})}) {
    set_text(content);
    EXPECT_TRUE(check_replaceable(path_)) << content;
  }
  for (const char* const content : {"notes\n", "{}", "schema", "\n"}) {
    set_text(content);
    const auto checked = check_replaceable(path_);
    ASSERT_FALSE(checked) << content;
    EXPECT_EQ(checked.error().message, path_ + ":1: the file is there already and is not one of rows");
  }
}

TEST_F(RowFileTest, NeverReplacesRowsUnasked) {
  ASSERT_TRUE(RowFile::open(path_, csv_style, false));
  const auto again = RowFile::open(path_, csv_style, false);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().message, path_ + " is there already");
  set_text("something else\n");
  EXPECT_FALSE(RowFile::open(path_, csv_style, true));
  EXPECT_EQ(text(), "something else\n");
}

TEST_F(RowFileTest, HasOneWriter) {
  auto first = RowFile::open(path_, csv_style, true);
  ASSERT_TRUE(first);
  const auto second = RowFile::open(path_, csv_style, true);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message, "another sweep writes " + path_);
}

TEST_F(RowFileTest, KeepsItsColumns) {
  {
    auto file = RowFile::open(path_, csv_style, true);
    ASSERT_TRUE(file && file->append(make_row(1)));
  }
  const auto other = RowFile::open(path_, {RowFormat::csv, true}, true);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message, path_ + " has no columns of --timings");
}

}  // namespace
}  // namespace espalier::sweep
