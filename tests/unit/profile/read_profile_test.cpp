#include "profile/read_profile.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "profile/profile_keys.h"
#include "profile/profile_values.h"
#include "profile/write_profile.h"
#include "tests/support/files/schema_keys.h"
#include "tests/support/recorded_messages.h"

namespace espalier::profile {
namespace {

const std::string source_folder = ESPALIER_SOURCE_DIR;

TEST(ReadProfile, TakesEveryValue) {
  const ProfileReading reading = read_profile_text(R"(
espalier_profile: 1
name: mine
about: a test
channels: 12
processors: 2
launch:
  usual: 1 us
  graph: 0 us
  one-process: {call: 4 us, per_rank: 2 us, per_send: 500 ns, per_channel: 100 ns, overlap: 3 us}
links: {fabric: 0.8, network: 0.9, switched: 0.7}
paths: any
tuner: {generation: hopper, fabric: 0.824, network: 0.9}
algorithms:
  tree:
    ll128: {base: 14 us, fabric: 1.25 us, pcie: 2 us, network: 8 us, payload: 0.9375, rate: 0.5, chunk: 64 KiB,
            per_rank: 2.5 us, message: 3 us, own: 0.25, drain: 0.75, since: '2.14',
            least_chunk: 4 KiB, in_flight: [64, 8], under_way: 4, fabric_between: 700 ns,
            per_channel: 5 KiB, most: [300 GB/s, 200 GB/s, 100 GB/s]}
)",
                                                   "mine.yaml");
  ASSERT_TRUE(reading.profile) << (reading.diagnostics.empty() ? "" : render(reading.diagnostics.front(), false));
  const Profile& profile = *reading.profile;
  EXPECT_EQ(profile.paths, planners::Paths::any);
  EXPECT_EQ(profile.name, "mine");
  EXPECT_EQ(profile.channels, 12U);
  EXPECT_EQ(profile.processors, 2U);
  EXPECT_EQ(*profile.launch(""), (Launch{{1'000'000}, {}, {}, {}, {}}));
  EXPECT_EQ(*profile.launch("graph"), Launch{});
  EXPECT_EQ(*profile.launch("one-process"), (Launch{{4'000'000}, {2'000'000}, {500'000}, {100'000}, {3'000'000}}));
  EXPECT_FALSE(profile.launch("grap"));
  EXPECT_EQ(profile.switched_ppm, 700'000);
  EXPECT_EQ(profile.reached_ppm, (std::array<std::int32_t, 3>{800'000, 1'000'000, 900'000}));
  ASSERT_TRUE(profile.tuner);
  EXPECT_EQ(profile.tuner->generation, Generation::hopper);
  EXPECT_EQ(profile.tuner->counted_ppm, (std::array<std::int32_t, 3>{824'000, 1'000'000, 900'000}));
  ASSERT_EQ(profile.ways.size(), 1U);
  const ProtocolCosts& way = profile.ways.at({Shape::tree, sim::Protocol::ll128});
  EXPECT_EQ(way.base.count, 14'000'000);
  EXPECT_EQ(way.hop[0].count, 1'250'000);
  EXPECT_EQ(way.hop[1].count, 2'000'000);
  EXPECT_EQ(way.hop[2].count, 8'000'000);
  EXPECT_EQ(way.per_rank.count, 2'500'000);
  EXPECT_EQ(way.message.count, 3'000'000);
  EXPECT_EQ(way.since, 2014U);
  EXPECT_EQ(way.payload_ppm, 937'500);
  EXPECT_EQ(way.rate_ppm, 500'000);
  EXPECT_EQ(way.own_ppm, 250'000);
  EXPECT_EQ(way.drain_ppm, 750'000);
  EXPECT_EQ(way.chunk.count, 65536);
  EXPECT_EQ(way.min_chunk.count, 4096);
  EXPECT_EQ(way.in_flight, (std::vector<std::uint32_t>{64, 8}));
  EXPECT_EQ(way.fabric_between.count, 700'000);
  EXPECT_EQ(way.under_way, 4U);
  EXPECT_EQ(way.per_channel.count, 5120);
  EXPECT_EQ(way.most[2].bytes_per_second, 100'000'000'000);
}

/// What write_profile writes says the same again, but for the digits that it leaves out.
TEST(WriteProfile, IsReadAsItWas) {
  for (const auto& entry : std::filesystem::directory_iterator(source_folder + "/configs/profiles")) {
    if (entry.path().extension() != ".yaml") continue;
    const ProfileReading given = read_profile_file(entry.path());
    ASSERT_TRUE(given.profile);
    const std::vector<std::string> comments = {"a comment"};
    const std::string text = profile_yaml(*given.profile, comments);
    const ProfileReading again = read_profile_text(text, "again");
    ASSERT_TRUE(again.profile) << text;
    const auto before = values_of(*given.profile), after = values_of(*again.profile);
    ASSERT_EQ(before.size(), after.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(before[i].name, after[i].name);
      EXPECT_NEAR(after[i].value / before[i].value, 1, 5e-3) << before[i].name;
    }
    EXPECT_EQ(profile_yaml(*again.profile, comments), text);
  }
}

TEST(ProfileValues, AreSetInTheirOrder) {
  const ProfileReading given = read_profile_file(source_folder + "/configs/profiles/nccl-hopper.yaml");
  ASSERT_TRUE(given.profile);
  std::vector<double> doubled;
  for (const ProfileValue& value : values_of(*given.profile)) doubled.push_back(2 * value.value);
  const auto changed = values_of(with_values(*given.profile, doubled));
  ASSERT_EQ(changed.size(), doubled.size());
  for (std::size_t i = 0; i < changed.size(); ++i) {
    const double most = changed[i].kind == ValueKind::part ? 1 : doubled[i];  // no part is more than the whole
    EXPECT_NEAR(changed[i].value / std::min(doubled[i], most), 1, 1e-6) << changed[i].name;
  }
}

TEST(ShippedProfiles, AreRead) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_folder + "/configs/profiles")) {
    if (entry.path().extension() != ".yaml") continue;
    ++files;
    const ProfileReading reading = read_profile_file(entry.path());
    for (const Diagnostic& diagnostic : reading.diagnostics) ADD_FAILURE() << render(diagnostic, false);
    ASSERT_TRUE(reading.profile);
    EXPECT_EQ(reading.profile->name, entry.path().stem().string());
    EXPECT_FALSE(reading.profile->about.empty());
  }
  EXPECT_GE(files, 5);
}

TEST(ProfileSchema, NamesTheKeysOfTheReader) {
  std::ifstream stream(source_folder + "/configs/profiles/profile.schema.json");
  const nlohmann::json schema = nlohmann::json::parse(stream, nullptr, false);
  ASSERT_FALSE(schema.is_discarded()) << "not JSON";
  const nlohmann::json& definitions = schema.at("definitions");
  test::expect_keys(schema, profile_keys::file);
  test::expect_keys(definitions.at("links"), profile_keys::links);
  test::expect_keys(definitions.at("algorithms"), profile_keys::algorithms);
  test::expect_keys(definitions.at("protocols"), profile_keys::protocols);
  test::expect_keys(definitions.at("way"), profile_keys::way);
  test::expect_keys(definitions.at("tuner"), profile_keys::tuner);
  test::expect_keys(definitions.at("launch"), profile_keys::launch);
}

TEST(ProfileDocument, NamesEveryKey) {
  const std::string document = espalier::test::contents(source_folder + "/docs/profiles.md");
  const auto expect_named = [&](std::span<const std::string_view> keys) {
    for (const std::string_view key : keys) {
      EXPECT_NE(document.find("`" + std::string(key) + "`"), std::string::npos) << key;
    }
  };
  expect_named(profile_keys::file);
  expect_named(profile_keys::links);
  expect_named(profile_keys::algorithms);
  expect_named(profile_keys::protocols);
  expect_named(profile_keys::way);
  expect_named(profile_keys::tuner);
  expect_named(profile_keys::launch);
}

}  // namespace
}  // namespace espalier::profile
