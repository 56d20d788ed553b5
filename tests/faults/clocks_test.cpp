#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace espalier {
namespace {

/// Deadlines, beats and spans are by clocks that nobody can set, so that a jump of the wall clock changes nothing.
TEST(Clocks, Fault21TheEngineAsksNoClockThatJumps) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(ESPALIER_SOURCE_DIR "/engine")) {
    if (entry.path().extension() != ".cpp" && entry.path().extension() != ".h") continue;
    ++files;
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    for (const char* clock :
         {"system_clock", "CLOCK_REALTIME", "gettimeofday", "high_resolution_clock", "time(nullptr)"}) {
      EXPECT_EQ(text.str().find(clock), std::string::npos) << entry.path() << " uses " << clock;
    }
  }
  EXPECT_GT(files, 50U);
}

}  // namespace
}  // namespace espalier
