#include "cli/output/table.h"

#include <gtest/gtest.h>

namespace espalier::cli {
namespace {

TEST(Table, CsvHasARecordPerRowAndUnitsInTheFirst) {
  Table table;
  table.add_column("size", "(B)");
  table.add_column("busbw", "(GB/s)", Table::Align::right, "ring");
  table.add_column("by", "", Table::Align::left);
  table.add_row({"1024", "0.5", "tree"});
  table.add_row({"2048"});
  EXPECT_EQ(table.csv(), "size (B),ring busbw (GB/s),by\r\n1024,0.5,tree\r\n2048,,\r\n");
}

TEST(Table, CsvQuotesWhatWouldEndAField) {
  // RFC 4180, section 2, rules 6 and 7.
  Table table;
  table.add_column("name");
  table.add_row({"a,b"});
  table.add_row({"say \"hi\""});
  table.add_row({"two\nlines"});
  EXPECT_EQ(table.csv(), "name\r\n\"a,b\"\r\n\"say \"\"hi\"\"\"\r\n\"two\nlines\"\r\n");
}

}  // namespace
}  // namespace espalier::cli
