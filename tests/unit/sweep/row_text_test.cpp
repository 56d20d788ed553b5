#include "sweep/row_text.h"

#include <gtest/gtest.h>

#include <array>

#include "base/random.h"

namespace espalier::sweep {
namespace {

constexpr std::array styles = {RowStyle{RowFormat::csv, false}, RowStyle{RowFormat::csv, true},
                               RowStyle{RowFormat::json_lines, false}, RowStyle{RowFormat::json_lines, true}};

/// Text that CSV and JSON have to take care of.
std::string random_text(Random& random) {
  std::string text;
  for (std::uint64_t i = random.below(6); i > 0; --i) text += "a,\"\n\\ \t\r'x"[random.below(10)];
  return text;
}

Row random_row(Random& random) {
  Row row;
  row.key = {"dgx1v",
             "0123456789abcdef",
             random_text(random),
             random_text(random),
             random_text(random),
             "broadcast",
             random.below(2) == 0 ? "" : "zipf:0.7,seed=3",
             "gpu0",
             "float",
             "ring",
             {random.between(0, 1 << 30)},
             std::nullopt,
             "link",
             "ll128",
             2,
             20'000,
             random.next()};
  if (random.below(2) == 0) row.key.chunk = Bytes{random.between(1, 1 << 20)};
  row.alike = 1 + random.below(100);
  if (random.below(3) == 0) {
    row.reason = "no, \"" + random_text(random);
  } else {
    row.figures = Figures{8,
                          "packing/h2t3",
                          {4096},
                          {random.between(0, std::int64_t{1} << 62)},
                          static_cast<double>(random.next()) / 7,
                          static_cast<double>(random.next()) * 1e-30,
                          1.0 / 3,
                          "7/976000000000",
                          random_text(random),
                          0.5,
                          std::nullopt,
                          std::nullopt,
                          random_text(random)};
    if (random.below(2) == 0) {
      row.figures->low = Picoseconds{random.between(0, 1 << 30)};
      row.figures->high = Picoseconds{random.between(0, 1 << 30)};
    }
  }
  return row;
}

TEST(RowText, ReadsBackExactly) {
  Random random(1);
  for (const RowStyle& style : styles) {
    std::string text = header_text(style);
    std::vector<Row> rows;
    for (int i = 0; i < 200; ++i) {
      rows.push_back(random_row(random));
      if (style.timings) rows.back().timing = Timing{0.25, 1.5};
      text += row_text(rows.back(), style);
    }
    const auto read = read_rows(text, style.format, "rows");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->whole_bytes, text.size());
    EXPECT_EQ(read->timings, style.timings);
    ASSERT_EQ(read->rows.size(), rows.size());
    std::string again = header_text(style);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      EXPECT_TRUE(read->rows[i].agrees_with(rows[i])) << row_text(rows[i], style);
      again += row_text(read->rows[i], style);
    }
    EXPECT_EQ(again, text);
  }
}

TEST(RowText, LeavesOutWhatWasTornOff) {
  Random random(2);
  for (const RowStyle& style : styles) {
    const std::string before = header_text(style) + row_text(random_row(random), style);
    const std::string last = row_text(random_row(random), style);
    for (std::size_t cut = 0; cut < last.size(); ++cut) {
      const auto read = read_rows(before + last.substr(0, cut), style.format, "rows");
      // A line break in quotes cannot be told from a stray quote: such a row is no torn line.
      const bool has_break = last.substr(0, cut).find('\n') != std::string::npos;
      ASSERT_EQ(read.has_value(), !has_break) << (read ? "" : read.error().message);
      if (!read) continue;
      EXPECT_EQ(read->rows.size(), 1U);
      EXPECT_EQ(read->whole_bytes, before.size());
    }
  }
}

TEST(RowText, SaysWhichLineIsNoRow) {
  Random random(3);
  Row row = random_row(random);
  row.key.parameters = "two\nlines";
  const RowStyle csv{RowFormat::csv, false};
  const std::string good = header_text(csv) + row_text(row, csv);  // Lines 1, and 2 to at least 3.
  row.key.parameters.clear();
  row.key.profile.clear();
  row.key.failure.clear();
  row.figures.reset();
  row.reason = "why";
  const auto message = [&](std::string line) {
    const auto read = read_rows(header_text(csv) + line, RowFormat::csv, "r.csv");
    return read ? "read" : read.error().message;
  };
  const std::string line = row_text(row, csv);
  EXPECT_EQ(message(line), "read");
  EXPECT_EQ(message("a,b\n"), "r.csv:2: the line is no row of espalier/sweep/4");
  std::string other = line;
  other.replace(other.find("sweep/4"), 7, "sweep/1");
  EXPECT_EQ(message(other), "r.csv:2: the row is not of schema espalier/sweep/4");
  other = line;
  other.replace(other.find("failed"), 6, "felled");
  EXPECT_EQ(message(other), "r.csv:2: 'felled' is no status");
  other = line;
  other.replace(other.find("20000"), 5, "-1");
  EXPECT_EQ(message(other), "r.csv:2: '-1' is no jitter_ppm");
  EXPECT_EQ(read_rows("x,y\n", RowFormat::csv, "r.csv").error().message,
            "r.csv:1: the columns are not those of espalier/sweep/4");
  EXPECT_EQ(read_rows("{}\n", RowFormat::json_lines, "r.jsonl").error().message,
            "r.jsonl:1: the line is no row of espalier/sweep/4");
  EXPECT_TRUE(read_rows(good + "x\n", RowFormat::csv, "r.csv").error().message.starts_with("r.csv:")) << good;
}

TEST(RowText, EndingsDecideTheFormat) {
  EXPECT_EQ(format_of("a.csv"), RowFormat::csv);
  EXPECT_EQ(format_of("a.jsonl"), RowFormat::json_lines);
  EXPECT_EQ(format_of("a.ndjson"), RowFormat::json_lines);
  EXPECT_FALSE(format_of("a.json"));
}

TEST(Digest, IsThatOfSha256) {
  // SHA-256 of "abc" begins with ba7816bf 8f01cfea (FIPS 180-4's example).
  EXPECT_EQ(digest_of("abc"), "ba7816bf8f01cfea");
}

}  // namespace
}  // namespace espalier::sweep
