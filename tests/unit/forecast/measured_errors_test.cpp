#include "forecast/measured_errors.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace espalier::forecast {
namespace {

const std::string header =
    "profile,collective,machines,min_size,max_size,max_ranks,min_version,max_version,points,low,median,high,held,"
    "systems,gpus\n";
const std::string small = "p,all_reduce,one,512,65536,8,2.23,2.29,96,0.9,1.01,1.2,0.93,5,h100 b200\n";
const std::string large_row = "p,all_reduce,one,134217728,536870912,8,2.23,2.29,30,0.95,1,1.05,,1,\n";

MeasuredErrors read(const std::string& lines) {
  auto errors = MeasuredErrors::read(header + lines);
  EXPECT_TRUE(errors) << errors.error().message;
  return *std::move(errors);
}

Predicted of_size(std::int64_t size) { return {"p", "nccl", CollectiveKind::all_reduce, 1, 8, std::nullopt, {size}}; }

TEST(MeasuredErrors, TheNearestClassTells) {
  const MeasuredErrors errors = read(small + large_row);
  const ErrorRange found = errors.find(of_size(1024));
  ASSERT_NE(found.of, nullptr);
  EXPECT_EQ(found.of->points, 96U);
  EXPECT_EQ(found.of->held, 0.93);
  EXPECT_EQ(found.outside, "");
  EXPECT_EQ(errors.find(of_size(1 << 28)).of->held, std::nullopt);
  EXPECT_EQ(errors.find(of_size(1 << 17)).of->points, 96U);
}

TEST(MeasuredErrors, WhatLiesOutsideSaysSo) {
  const MeasuredErrors errors = read(small + large_row);
  EXPECT_EQ(errors.find(of_size(1 << 19)).outside, "measured from 512 B to 64 KiB");
  Predicted many = of_size(1024);
  many.ranks = 16;
  EXPECT_EQ(errors.find(many).outside, "measured on up to 8 ranks");
  Predicted later = of_size(1024);
  later.version = 2030;
  EXPECT_EQ(errors.find(later).outside, "measured with NCCL 2.23 to 2.29");
  Predicted other = of_size(1024);
  other.gpu = "h200";
  EXPECT_EQ(errors.find(other).outside, "measured on h100/b200, not on h200");
  other.gpu = "h100-sxm";
  EXPECT_EQ(errors.find(other).outside, "");
  other.gpu = "b200";
  EXPECT_EQ(errors.find(other).outside, "");
  Predicted over = of_size(1024);
  over.machines = 2;
  EXPECT_EQ(errors.find(over).of, nullptr);
  EXPECT_EQ(errors.find(over).outside, "no all_reduce on several machines was measured under p");
}

TEST(MeasuredErrors, WhatNobodyRanHasNoClass) {
  const MeasuredErrors errors = read(small + large_row);
  Predicted other = of_size(1024);
  other.algorithm = "ring";
  EXPECT_EQ(errors.find(other).of, nullptr);
  EXPECT_EQ(errors.find(other).outside, "of NCCL's own algorithms alone there are measurements");
  other.algorithm = "nccl/ring";
  EXPECT_NE(errors.find(other).of, nullptr);
  other.profile = "";
  EXPECT_EQ(errors.find(other).outside, "links alone were simulated");
}

TEST(MeasuredErrors, LinesThatAreNoClassAreRefused) {
  for (const char* line :
       {"p,all_reduce,one,512,65536,8,2.23,2.29,96,0.9,1.01,1.2,0.93", "p,all_sum,one,512,65536,8,,,96,0.9,1,1.2,,5,",
        "p,all_reduce,one,512,65536,8,,,96,1.3,1,1.2,,5,", "p,all_reduce,one,512,65536,8,,,96,0.9,1,inf,,5,",
        "p,all_reduce,one,512,65536,8,x,,96,0.9,1,1.2,,5,", "p,all_reduce,many,512,65536,8,,,96,0.9,1,1.2,,5,", ""}) {
    const auto read = MeasuredErrors::read(header + line + "\n");
    ASSERT_FALSE(read) << line;
    EXPECT_NE(read.error().message.find("line 2"), std::string::npos) << read.error().message;
  }
  EXPECT_FALSE(MeasuredErrors::read("profile\n"));
}

TEST(MeasuredErrors, TheShippedOnesAreRead) {
  std::ifstream file(ESPALIER_SOURCE_DIR "/configs/profiles/errors.csv");
  std::ostringstream text;
  text << file.rdbuf();
  const auto errors = MeasuredErrors::read(text.str());
  ASSERT_TRUE(errors) << errors.error().message;
  EXPECT_GT(errors->classes().size(), 20U);
  Predicted hopper{"nccl-hopper", "nccl", CollectiveKind::all_reduce, 1, 8, std::nullopt, {std::int64_t{1} << 20}};
  EXPECT_NE(errors->find(hopper).of, nullptr);
}

}  // namespace
}  // namespace espalier::forecast
