#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>

namespace espalier::test {

/// An object's schema allows the keys that its reader reads, and no others.
inline void expect_keys(const nlohmann::json& schema, std::span<const std::string_view> keys) {
  EXPECT_EQ(schema.at("additionalProperties"), false);
  std::set<std::string> in_schema, in_reader(keys.begin(), keys.end());
  for (const auto& [key, value] : schema.at("properties").items()) in_schema.insert(key);
  EXPECT_EQ(in_schema, in_reader);
}

}  // namespace espalier::test
