#include "engine/rendezvous/secret.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace espalier::engine::rendezvous {
namespace {

class SecretFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "espalier-secret-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& text, mode_t mode) const {
    const std::string path = folder_ + "/secret";
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
    return path;
  }

  std::string folder_;
};

TEST_F(SecretFile, IsReadWithoutItsNewline) {
  EXPECT_EQ(read_secret_file(write("correct horse\n", 0600)).value(), "correct horse");
  EXPECT_EQ(read_secret_file(write("correct horse\r\n", 0400)).value(), "correct horse");
  EXPECT_EQ(read_secret_file(write(" correct horse ", 0600)).value(), " correct horse ");
}

TEST_F(SecretFile, ThatOthersCanReadIsRefused) {
  for (const mode_t mode : {0644U, 0640U, 0620U, 0604U, 0601U}) {
    const std::string path = write("correct horse", mode);
    const auto secret = read_secret_file(path);
    ASSERT_FALSE(secret.has_value()) << mode;
    EXPECT_EQ(secret.error().help, "chmod 600 " + path);
    EXPECT_EQ(secret.error().message.find("correct"), std::string::npos);
  }
}

TEST_F(SecretFile, OfOtherLengthOrKindIsRefused) {
  EXPECT_EQ(read_secret_file(write("short\n", 0600)).error().code, ErrorCode::invalid_input);
  EXPECT_EQ(read_secret_file(write(std::string(longest_secret + 1, 'x'), 0600)).error().code, ErrorCode::invalid_input);
  EXPECT_TRUE(read_secret_file(write(std::string(longest_secret, 'x') + "\n", 0600)).has_value());
  EXPECT_EQ(read_secret_file(folder_).error().code, ErrorCode::invalid_input);
  EXPECT_EQ(read_secret_file(folder_ + "/none").error().code, ErrorCode::unavailable);
  const std::string fifo = folder_ + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(read_secret_file(fifo).error().code, ErrorCode::invalid_input);
}

TEST_F(SecretFile, IsFoundByTheEnvironment) {
  const std::string path = write("from the file", 0600);
  EXPECT_EQ(find_secret({{"ESPALIER_SECRET_FILE", path}}).value(), "from the file");
  EXPECT_EQ(find_secret({{"ESPALIER_SECRET", "from the variable"}}).value(), "from the variable");
  EXPECT_EQ(find_secret({}).error().code, ErrorCode::unavailable);
  EXPECT_EQ(find_secret({{"ESPALIER_SECRET", "tiny"}}).error().code, ErrorCode::invalid_input);
  EXPECT_EQ(find_secret({{"ESPALIER_SECRET", "from the variable"}, {"ESPALIER_SECRET_FILE", path}}).error().code,
            ErrorCode::invalid_input);
}

TEST(RandomSecret, Has256BitsAndIsFresh) {
  const auto one = random_secret();
  ASSERT_TRUE(one.has_value());
  EXPECT_EQ(one->size(), 64U);
  EXPECT_NE(*one, random_secret().value());
}

}  // namespace
}  // namespace espalier::engine::rendezvous
