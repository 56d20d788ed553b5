#include "engine/reduction/copy.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace espalier::engine::reduction {
namespace {

using Copy = void (*)(void*, const void*, std::size_t);

void check(Copy copy, std::size_t bytes, std::size_t to_offset, std::size_t from_offset) {
  constexpr std::byte guard{0xa5};
  Random random(bytes + to_offset);
  std::vector<std::byte> from(bytes + from_offset);
  for (std::byte& byte : from) byte = static_cast<std::byte>(random.next());
  std::vector<std::byte> expected(bytes + to_offset + 80, guard);
  std::vector<std::byte> to = expected;
  for (std::size_t i = 0; i < bytes; ++i) expected[to_offset + i] = from[from_offset + i];
  copy(to.data() + to_offset, from.data() + from_offset, bytes);
  EXPECT_EQ(to == expected, true) << bytes << " bytes to offset " << to_offset;
}

TEST(CopyBytes, EveryLengthAndAlignment) {
  for (Copy copy : {copy_bytes, copy_bytes_uncached}) {
    for (std::size_t bytes = 0; bytes < 300; ++bytes) {
      check(copy, bytes, bytes % 67, (3 * bytes) % 71);
      check(copy, bytes, 0, 1);
    }
    check(copy, 100000, 13, 7);
  }
}

TEST(CopyBytes, LargeOnesGoPastTheCaches) { check(copy_bytes, uncached_copy_bytes + 17, 5, 3); }

TEST(CopyBytes, NothingToCopy) {
  copy_bytes(nullptr, nullptr, 0);
  copy_bytes_uncached(nullptr, nullptr, 0);
}

}  // namespace
}  // namespace espalier::engine::reduction
