// configs/espalier.schema.json and docs/topology.md name the keys that the reader knows.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "topology/yaml/read_keys.h"

namespace espalier {
namespace {

nlohmann::json read_schema() {
  std::ifstream stream(ESPALIER_SOURCE_DIR "/configs/espalier.schema.json");
  return nlohmann::json::parse(stream, nullptr, false);
}

void expect_keys(const nlohmann::json& schema, std::span<const std::string_view> keys) {
  ASSERT_TRUE(schema.contains("properties"));
  EXPECT_EQ(schema.at("additionalProperties"), false);
  std::vector<std::string> in_schema;
  for (const auto& [key, value] : schema.at("properties").items()) in_schema.push_back(key);
  std::vector<std::string> in_reader(keys.begin(), keys.end());
  std::ranges::sort(in_schema);
  std::ranges::sort(in_reader);
  EXPECT_EQ(in_schema, in_reader);
}

TEST(TopologySchema, NamesTheKeysOfTheReader) {
  const nlohmann::json schema = read_schema();
  ASSERT_FALSE(schema.is_discarded()) << "not JSON";
  const nlohmann::json& definitions = schema.at("definitions");
  expect_keys(schema, read_keys::file);
  expect_keys(definitions.at("group"), read_keys::group);
  expect_keys(definitions.at("include_map"), read_keys::include);
  expect_keys(definitions.at("link_class"), read_keys::link_class);
  expect_keys(definitions.at("node"), read_keys::node);
  expect_keys(definitions.at("link"), read_keys::link);
  expect_keys(definitions.at("provenance"), read_keys::provenance);
}

/// Calls `visit` with every value behind a "$ref".
template <class Visit>
void for_each_reference(const nlohmann::json& value, const Visit& visit) {
  for (const auto& [key, inner] : value.items()) {
    if (key == "$ref") visit(inner.template get<std::string>());
    if (inner.is_structured()) for_each_reference(inner, visit);
  }
}

TEST(TopologySchema, EveryReferenceHasItsDefinition) {
  const nlohmann::json schema = read_schema();
  ASSERT_FALSE(schema.is_discarded());
  int references = 0;
  for_each_reference(schema, [&](const std::string& reference) {
    ++references;
    ASSERT_TRUE(reference.starts_with("#/")) << reference;
    EXPECT_TRUE(schema.contains(nlohmann::json::json_pointer(reference.substr(1)))) << reference;
  });
  EXPECT_GT(references, 30);
}

/// The document has a row, a heading or an entry for each key.
TEST(TopologyDocument, NamesEveryKey) {
  std::ifstream stream(ESPALIER_SOURCE_DIR "/docs/topology.md");
  const std::string document{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  const auto expect_named = [&](std::span<const std::string_view> keys) {
    for (const std::string_view key : keys) {
      EXPECT_NE(document.find("`" + std::string(key) + "`"), std::string::npos) << key;
    }
  };
  expect_named(read_keys::file);
  expect_named(read_keys::group);
  expect_named(read_keys::include);
  expect_named(read_keys::node);
  expect_named(read_keys::link);
  expect_named(read_keys::provenance);
}

}  // namespace
}  // namespace espalier
