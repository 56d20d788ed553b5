#include "tests/support/recorded_messages.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace espalier::test {

std::string contents(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::vector<std::string> stems_of(const std::filesystem::path& folder, const std::string& extension) {
  std::vector<std::string> stems;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == extension) stems.push_back(entry.path().stem().string());
  }
  std::ranges::sort(stems);
  return stems;
}

std::string test_name(const testing::TestParamInfo<std::string>& stem) {
  std::string name = stem.param;
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

std::string lines_of(const Error& error) {
  std::string lines = error.message + "\n";
  if (!error.help.empty()) lines += "help: " + error.help + "\n";
  return lines;
}

void expect_recorded(const std::filesystem::path& folder, const std::string& stem, const std::string& text) {
  const std::filesystem::path expected = folder / (stem + ".expected");
  if (std::getenv("ESPALIER_RECORD") != nullptr) std::ofstream(expected, std::ios::binary) << text;
  EXPECT_EQ(text, contents(expected));
}

}  // namespace espalier::test
