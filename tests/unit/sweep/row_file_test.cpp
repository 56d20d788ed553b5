#include "sweep/row_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

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
  row.key.topology = "a, \"quoted\"\nname";
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

TEST_F(RowFileTest, GoesOnAfterACutInTheHeader) {
  const std::string header = header_text(csv_style);
  for (std::size_t cut = 0; cut <= header.size(); ++cut) {
    set_text(header.substr(0, cut));
    auto file = RowFile::open(path_, csv_style, true);
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_TRUE(file->append(make_row(1)));
    EXPECT_EQ(text(), header + row_text(make_row(1), csv_style)) << cut;
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
