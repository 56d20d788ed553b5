#include "cli/calibration/profile_calibration.h"

#include <gtest/gtest.h>

#include "cli/jobs/predict_rows.h"

namespace espalier::cli {
namespace {

TEST(TableSource, IsAFileAlone) {
  const auto source = parse_table_source("runs/x2.txt");
  ASSERT_TRUE(source);
  EXPECT_EQ(source->file, "runs/x2.txt");
  EXPECT_EQ(source->algorithm, "nccl");
  EXPECT_TRUE(source->machine.empty() && source->launch.empty() && source->ranks.empty());
  EXPECT_FALSE(source->protocol);
}

TEST(TableSource, SaysWhatRan) {
  const auto source = parse_table_source(
      "x2.txt@my/boxes.yaml,launch=one-process,algorithm=nccl/ring,protocol=ll128,version=2.4,ranks=gpu[0-11]");
  ASSERT_TRUE(source);
  EXPECT_EQ(source->file, "x2.txt");
  EXPECT_EQ(source->machine, "my/boxes.yaml");
  EXPECT_EQ(source->launch, "one-process");
  EXPECT_EQ(source->algorithm, "nccl/ring");
  EXPECT_EQ(source->protocol, sim::Protocol::ll128);
  EXPECT_EQ(source->version, 2004U);
  EXPECT_EQ(source->ranks, "gpu[0-11]");
}

TEST(TableSource, RefusesWhatIsNotKnown) {
  for (const char* wrong :
       {"t@m,lunch=x", "t@m,algorithm=ring", "t@m,protocol=fast", "t@m,,ranks=a", "t@m,version=new", "t@m,launch="}) {
    EXPECT_FALSE(parse_table_source(wrong)) << wrong;
  }
}

TEST(PredictRows, RowsOnOtherNumbersOfRanksAreLeftOut) {
  compare::Measurements rows;
  rows.file = "imb.txt";
  for (const std::uint32_t ranks : {2U, 4U, 8U, 0U}) {
    compare::Measurement row;
    row.collective = "all_reduce";
    row.ranks = ranks;
    rows.rows.push_back(row);
  }
  compare::Measurements other = rows;
  keep_ranks(rows, 8);
  ASSERT_EQ(rows.rows.size(), 2U);  // 8, and what does not say.
  EXPECT_EQ(rows.rows[0].ranks, 8U);
  EXPECT_EQ(rows.warnings,
            std::vector<std::string>{"imb.txt: 2 rows measured on other numbers of ranks than 8 are left out"});
  keep_ranks(other, 16);  // None is of the machine: that is refused when rows are predicted.
  EXPECT_EQ(other.rows.size(), 4U);
}

}  // namespace
}  // namespace espalier::cli
