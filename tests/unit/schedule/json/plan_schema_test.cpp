// configs/plan.schema.json names the keys that the reader of plans knows.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "schedule/json/schedule_json.h"

namespace espalier {
namespace {

/// What the reader says that it knows, when it meets a key that it does not.
std::set<std::string> known_keys(const std::string& text) {
  const auto plan = read_plan(text, "plan.json");
  EXPECT_FALSE(plan);
  constexpr std::string_view start = "known are ";
  if (plan || !plan.error().help.starts_with(start)) {
    ADD_FAILURE() << (plan ? "it was read" : plan.error().message);
    return {};
  }
  std::istringstream names(plan.error().help.substr(start.size()));
  std::set<std::string> keys;
  for (std::string name; names >> name;) keys.insert(name.ends_with(',') ? name.substr(0, name.size() - 1) : name);
  return keys;
}

std::set<std::string> schema_keys(const nlohmann::json& schema) {
  EXPECT_EQ(schema.at("additionalProperties"), false);
  std::set<std::string> keys;
  for (const auto& [key, value] : schema.at("properties").items()) keys.insert(key);
  return keys;
}

TEST(PlanSchema, NamesTheKeysOfTheReader) {
  std::ifstream stream(ESPALIER_SOURCE_DIR "/configs/plan.schema.json");
  const nlohmann::json schema = nlohmann::json::parse(stream, nullptr, false);
  ASSERT_FALSE(schema.is_discarded()) << "not JSON";
  const nlohmann::json& definitions = schema.at("definitions");
  const std::string head =
      R"({"espalier_schedule": 1, "collective": "all_gather", "topology": "t", "ranks": ["a", "b"], )"
      R"("algorithm": "x", "units": 2, )";
  const std::string slices =
      R"("slices": [{"offset": 0, "length": 1, "rank": 0}, {"offset": 1, "length": 1, "rank": 1}], )";
  EXPECT_EQ(schema_keys(schema), known_keys(R"({"qqqqqqqq": 1})"));
  EXPECT_EQ(schema_keys(definitions.at("slice")),
            known_keys(head + R"("slices": [{"qqqqqqqq": 0}], "transfers": []})"));
  EXPECT_EQ(schema_keys(definitions.at("transfer")), known_keys(head + slices + R"("transfers": [{"qqqqqqqq": 0}]})"));
  EXPECT_EQ(schema_keys(definitions.at("bound")),
            known_keys(head + slices + R"("transfers": [], "bound": {"qqqqqqqq": 0}})"));
  EXPECT_EQ(schema_keys(definitions.at("chunking")),
            known_keys(head + slices + R"("transfers": [], "chunking": {"qqqqqqqq": 0}})"));
}

}  // namespace
}  // namespace espalier
