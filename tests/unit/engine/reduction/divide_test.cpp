#include <gtest/gtest.h>

#include <vector>

#include "engine/reduction/reduce.h"
#include "tests/support/scalar_reduce.h"

namespace espalier::engine::reduction {
namespace {

using test::ElementBits;

constexpr std::uint32_t rank_counts[] = {1, 2, 3, 5, 7, 8, 127, 128, 129, 255, 256, 1000003, 0x7fffffff, 0xffffffff};

void check(ElementType type, InstructionSet set, std::uint32_t ranks, const std::vector<ElementBits>& values) {
  const auto size = static_cast<std::size_t>(size_of(type));
  std::vector<std::byte> buffer(1 + values.size() * size + 1, std::byte{0xa5});
  for (std::size_t i = 0; i < values.size(); ++i) test::write_element(type, buffer.data() + 1, i, values[i]);
  divide_by(type, buffer.data() + 1, values.size(), ranks, set);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const ElementBits result = test::read_element(type, buffer.data() + 1, i);
    const ElementBits expected = test::scalar_divide(type, values[i], ranks);
    ASSERT_TRUE(test::same_element(type, result, expected))
        << to_string(type) << " " << to_string(set) << ": " << std::hex << values[i] << " / " << ranks << " gave "
        << result << " instead of " << expected;
  }
  EXPECT_EQ(buffer.front(), std::byte{0xa5});
  EXPECT_EQ(buffer.back(), std::byte{0xa5});
}

/// The ends of the range, random numbers, and multiples of `ranks` with their neighbours, where truncation turns.
std::vector<ElementBits> make_values(ElementType type, std::uint32_t ranks, Random& random) {
  std::vector<ElementBits> values;
  if (size_of(type) <= 2) {
    for (ElementBits bits = 0; bits < ElementBits{1} << (8 * size_of(type)); ++bits) values.push_back(bits);
    return values;
  }
  for (int i = 0; i < 300; ++i) {
    values.push_back(test::random_element(type, random));
    const auto multiple = static_cast<ElementBits>(random.between(0, 0xffffffff)) * ranks;
    for (ElementBits step = 0; step < 3; ++step) values.push_back(multiple + step - 1);
  }
  for (ElementBits end : {ElementBits{0}, ElementBits{0x7fffffff}, ElementBits{0x80000000}, ElementBits{0xffffffff},
                          ElementBits{0x7fffffffffffffff}, ElementBits{0x8000000000000000}, ~ElementBits{0}}) {
    values.push_back(end);
  }
  if (size_of(type) == 4) {
    for (ElementBits& bits : values) bits &= 0xffffffff;
  }
  return values;
}

TEST(DivideBy, EveryTypeAndInstructionSet) {
  Random random(3);
  for (InstructionSet set : all_instruction_sets) {
    if (!is_supported(set)) continue;
    for (ElementType type : all_element_types) {
      for (std::uint32_t ranks : rank_counts) check(type, set, ranks, make_values(type, ranks, random));
    }
  }
}

TEST(DivideBy, NothingAndOne) {
  divide_by(ElementType::float32, nullptr, 0, 4);
  check(ElementType::float64, best_instruction_set(), 4, {0x4010000000000000});  // 4.0
  check(ElementType::int8, best_instruction_set(), 2, {0xff});                   // -1 / 2 is 0
}

}  // namespace
}  // namespace espalier::engine::reduction
