#include "base/printable.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace espalier {
namespace {

TEST(Printable, KeepsTextAndLayout) {
  const std::string text = "gpu0>gpu1\t\u00b5s \u4e2d\u6587 \U0001F600\n";
  EXPECT_EQ(printable(text), text);
  EXPECT_EQ(printable_line(text), "gpu0>gpu1\\t\u00b5s \u4e2d\u6587 \U0001F600\\n");
}

TEST(Printable, EscapesWhatSteersATerminal) {
  EXPECT_EQ(printable("a\x1b[31m\rb\x7f\x08"), "a\\x1b[31m\\x0db\\x7f\\x08");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(printable("\xc2\x9b"), "\\u009b");                   // CSI as one character
  EXPECT_EQ(printable("\u202egnp\u2066"), "\\u202egnp\\u2066");  // text that reads backwards
  EXPECT_EQ(printable("\u2028"), "\\u2028");
}

TEST(Printable, EscapesBytesThatAreNotUtf8) {
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("\x9b"), "\\x9b");                             // CSI in an 8-bit terminal
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b");                    // overlong
  EXPECT_EQ(printable("\xe0\x80\x9b"), "\\xe0\\x80\\x9b");           // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // past U+10FFFF
  EXPECT_EQ(printable("\xe4\xb8"), "\\xe4\\xb8");                    // cut off
}

TEST(Printable, AnExcerptKeepsItsColumns) { EXPECT_EQ(printable_excerpt("a\tb\u202ec\x1b"), "a b c "); }

// Whatever the bytes are, what is shown stays as it is when it is shown again, and no byte of it is a control.
TEST(Printable, IsHarmlessForAnyBytes) {
  Random random(3);
  for (int round = 0; round < 2'000; ++round) {
    std::string bytes;
    for (std::uint64_t left = random.below(40); left > 0; --left) bytes += static_cast<char>(random.below(256));
    const std::string shown = printable(bytes);
    EXPECT_EQ(printable(shown), shown);
    for (const char letter : printable_line(bytes)) {
      const auto byte = static_cast<unsigned char>(letter);
      EXPECT_TRUE(byte >= 0x20 && byte != 0x7f);
    }
  }
}

}  // namespace
}  // namespace espalier
