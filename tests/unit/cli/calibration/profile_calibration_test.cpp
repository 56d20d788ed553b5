#include "cli/calibration/profile_calibration.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace espalier::cli
