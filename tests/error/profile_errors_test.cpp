#include <gtest/gtest.h>

#include <algorithm>

#include "profile/read_profile.h"
#include "tests/support/recorded_messages.h"

namespace espalier::profile {
namespace {

namespace test = espalier::test;

const std::filesystem::path profile_files = ESPALIER_SOURCE_DIR "/tests/error/profile";

class ProfileErrors : public testing::TestWithParam<std::string> {};

TEST_P(ProfileErrors, MessageIsAsRecorded) {
  std::filesystem::current_path(profile_files);  // so that messages name the file alone
  const ProfileReading reading = read_profile_file(GetParam() + ".yaml");
  EXPECT_FALSE(reading.profile.has_value());
  EXPECT_TRUE(has_errors(reading.diagnostics));
  std::string messages;
  for (const Diagnostic& diagnostic : reading.diagnostics) messages += render(diagnostic, false);
  test::expect_recorded(profile_files, GetParam(), messages);
  if (!GetParam().starts_with("F0")) return;
  EXPECT_NE(messages.find("[" + GetParam().substr(0, 4) + "]"), std::string::npos) << messages;
}

INSTANTIATE_TEST_SUITE_P(Files, ProfileErrors, testing::ValuesIn(test::stems_of(profile_files, ".yaml")),
                         test::test_name);

TEST(ProfileErrorCodes, EachIsDocumentedAndShown) {
  const std::string document = test::contents(ESPALIER_SOURCE_DIR "/docs/profiles.md");
  const std::string header = test::contents(ESPALIER_SOURCE_DIR "/profile/profile_codes.h");
  const std::vector<std::string> stems = test::stems_of(profile_files, ".yaml");
  int codes = 0;
  for (std::size_t at = header.find("= \"F"); at != std::string::npos; at = header.find("= \"F", at + 1)) {
    const std::string code = header.substr(at + 3, 4);
    ++codes;
    EXPECT_NE(document.find("| " + code + " |"), std::string::npos) << code;
    EXPECT_TRUE(std::ranges::any_of(stems, [&](const std::string& stem) { return stem.starts_with(code); })) << code;
  }
  EXPECT_EQ(codes, 6);
}

}  // namespace
}  // namespace espalier::profile
