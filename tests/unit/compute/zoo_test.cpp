#include "compute/zoo.h"

#include <gtest/gtest.h>

namespace espalier::compute {
namespace {

double billions(std::string_view name) { return static_cast<double>((*find_model(name))->shape.weights()) / 1e9; }

TEST(Zoo, ModelsHaveTheWeightsOfTheirNames) {
  EXPECT_NEAR(billions("gpt-3-175b"), 175, 1);
  EXPECT_NEAR(billions("llama-3-8b"), 8.03, 0.01);
  EXPECT_NEAR(billions("llama-3-70b"), 70.6, 0.1);
  EXPECT_NEAR(billions("llama-3-405b"), 405.8, 0.5);
  EXPECT_NEAR(billions("mixtral-8x22b"), 140.6, 0.5);
  EXPECT_NEAR(billions("qwen3-30b-a3b"), 30.5, 0.2);
  EXPECT_NEAR(billions("deepseek-v3"), 671, 3);
}

TEST(Zoo, UnknownNamesGetASuggestion) {
  const auto found = find_model("llama-3-70");
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().help.find("llama-3-70b"), std::string::npos);
}

}  // namespace
}  // namespace espalier::compute
