// The element operations that a GPU would run give the same bits as the reference, element by element.
#include "engine/cuda/elements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "engine/cuda/kernels/host_kernels.h"
#include "tests/support/scalar_reduce.h"

namespace espalier::engine::cuda {
namespace {

constexpr std::size_t count = 3000;

std::vector<std::byte> random_elements(ElementType type, Random& random) {
  std::vector<std::byte> elements(count * static_cast<std::size_t>(size_of(type)));
  for (std::size_t i = 0; i < count; ++i) {
    test::write_element(type, elements.data(), i, test::random_element(type, random));
  }
  return elements;
}

TEST(Elements, CombineAsTheReferenceDoes) {
  Random random(5);
  for (const ElementType type : all_element_types) {
    for (const ReduceOperation operation : all_reduce_operations) {
      const auto a = random_elements(type, random);
      const auto b = random_elements(type, random);
      std::vector<std::byte> target(a.size());
      combine_on_host(type, operation, target.data(), a.data(), b.data(), count);
      for (std::size_t i = 0; i < count; ++i) {
        const auto left = test::read_element(type, a.data(), i);
        const auto right = test::read_element(type, b.data(), i);
        const auto expected = test::scalar_reduce(type, operation, {left, right});
        const auto actual = test::read_element(type, target.data(), i);
        ASSERT_TRUE(test::same_element(type, actual, expected))
            << to_string(type) << " " << to_string(operation) << std::hex << ": " << left << " and " << right
            << " give " << actual << ", not " << expected;
      }
    }
  }
}

TEST(Elements, DivideAsTheReferenceDoes) {
  Random random(6);
  for (const ElementType type : all_element_types) {
    for (const std::uint32_t ranks : {1U, 2U, 3U, 7U, 8U, 1000U}) {
      const auto before = random_elements(type, random);
      auto after = before;
      divide_on_host(type, {reinterpret_cast<unsigned char*>(after.data()), count, ranks});
      for (std::size_t i = 0; i < count; ++i) {
        const auto value = test::read_element(type, before.data(), i);
        const auto expected = test::scalar_divide(type, value, ranks);
        const auto actual = test::read_element(type, after.data(), i);
        ASSERT_TRUE(test::same_element(type, actual, expected))
            << to_string(type) << std::hex << ": " << value << " by " << ranks << " gives " << actual << ", not "
            << expected;
      }
    }
  }
}

TEST(Elements, EveryHalfWidensAndNarrowsBack) {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const Float16 half{static_cast<std::uint16_t>(bits)};
    const Bfloat16 brain{static_cast<std::uint16_t>(bits)};
    const float wide_half = Float16::widen(half);
    const float wide_brain = Bfloat16::widen(brain);
    if (!std::isnan(wide_half)) {
      ASSERT_EQ(Float16::narrow(wide_half).bits, bits);
    }
    if (!std::isnan(wide_brain)) {
      ASSERT_EQ(Bfloat16::narrow(wide_brain).bits, bits);
    }
  }
}

}  // namespace
}  // namespace espalier::engine::cuda
