#include <gtest/gtest.h>

#include "schedule/json/schedule_json.h"
#include "tests/support/recorded_messages.h"

namespace espalier {
namespace {

const std::filesystem::path plan_files = ESPALIER_SOURCE_DIR "/tests/error/plan";

class PlanErrors : public testing::TestWithParam<std::string> {};

TEST_P(PlanErrors, MessageIsAsRecorded) {
  const std::string file = GetParam() + ".json";
  const Result<PlanFile> plan = read_plan(test::contents(plan_files / file), file);
  ASSERT_FALSE(plan.has_value());
  test::expect_recorded(plan_files, GetParam(), test::lines_of(plan.error()));
}

INSTANTIATE_TEST_SUITE_P(Files, PlanErrors, testing::ValuesIn(test::stems_of(plan_files, ".json")), test::test_name);

}  // namespace
}  // namespace espalier
