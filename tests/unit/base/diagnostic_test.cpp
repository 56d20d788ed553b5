#include "base/diagnostic.h"

#include <gtest/gtest.h>

#include <array>

#include "base/suggest.h"

namespace espalier {
namespace {

Diagnostic example() {
  return {Severity::error, "T020", {"box.yaml", 12, 10}, "latency: 5 bananas", 9, "not a time", "write '5 us'"};
}

TEST(Diagnostic, ShowsPlaceLineAndMend) {
  EXPECT_EQ(render(example(), false),
            "error[T020]: not a time\n"
            "  --> box.yaml:12:10\n"
            "    |\n"
            " 12 | latency: 5 bananas\n"
            "    |          ^^^^^^^^^\n"
            "    = help: write '5 us'\n");
}

TEST(Diagnostic, MarksCharactersAndNotBytes) {
  Diagnostic diagnostic = example();
  diagnostic.excerpt = "a: \u00b5\u00b5, b: \u00b5x";
  diagnostic.place.column = 13;  // 3 + 2 x 2 bytes + 5 come before
  diagnostic.width = 3;
  const std::string text = render(diagnostic, false);
  EXPECT_NE(text.find("    |           ^^\n"), std::string::npos) << text;
}

TEST(Diagnostic, ShowsAWindowOfALongLine) {
  Diagnostic diagnostic = example();
  diagnostic.excerpt = std::string(1000, 'a').append("!").append(1000, 'b');
  diagnostic.place.column = 1001;
  diagnostic.width = 500;
  const std::string text = render(diagnostic, false);
  EXPECT_LT(text.size(), 600U);
  EXPECT_NE(text.find("a!b"), std::string::npos);
}

TEST(Diagnostic, ControlCharactersDoNotReachTheTerminal) {
  Diagnostic diagnostic = example();
  diagnostic.excerpt = diagnostic.message = diagnostic.help = "a\x1b[31m\tb\x7f";
  EXPECT_EQ(render(diagnostic, false).find('\x1b'), std::string::npos);
}

TEST(Diagnostic, AFileAsAWholeHasNoLine) {
  Diagnostic diagnostic = example();
  diagnostic.place.line = 0;
  EXPECT_EQ(render(diagnostic, false), "error[T020]: not a time\n  --> box.yaml\n   = help: write '5 us'\n");
}

TEST(Suggest, NamesWhatWasMeant) {
  constexpr std::array<std::string_view, 3> known = {"bandwidth", "latency", "gpu"};
  EXPECT_EQ(suggest("bandwith", known), "did you mean 'bandwidth'?");
  EXPECT_EQ(suggest("GPU", known), "did you mean 'gpu'?");
  EXPECT_EQ(suggest("gpus", known), "did you mean 'gpu'?");
  EXPECT_EQ(suggest("x", known), "known are bandwidth, latency, gpu");
  EXPECT_EQ(suggest("color", known), "known are bandwidth, latency, gpu");
  EXPECT_EQ(suggest(std::string(1000, 'a'), known), "known are bandwidth, latency, gpu");
}

}  // namespace
}  // namespace espalier
