#include "engine/reduction/reduce.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "tests/support/reduce_case.h"

namespace espalier::engine::reduction {
namespace {

using test::ElementBits;
using test::ReduceCase;

using Parameters = std::tuple<ElementType, ReduceOperation, InstructionSet>;

std::string name_of(const testing::TestParamInfo<Parameters>& info) {
  const auto [type, operation, set] = info.param;
  return std::string(to_string(type)) + "_" + std::string(to_string(operation)) + "_" + std::string(to_string(set));
}

class ReduceTest : public testing::TestWithParam<Parameters> {
 protected:
  void SetUp() override {
    if (!is_supported(set_)) GTEST_SKIP() << "this CPU has no " << to_string(set_);
    kernel_ = find_reduce(type_, operation_, set_);
  }

  void check(std::size_t source_count, std::size_t elements, bool in_place, Random& random) {
    ReduceCase buffers(type_, 1 + source_count, elements, random);
    const std::vector<ElementBits> expected = buffers.expected(operation_);
    const std::vector<const void*> sources = buffers.sources();
    std::byte* target = in_place ? buffers.first() : buffers.target();
    kernel_(target, buffers.first(), sources.data(), source_count, elements);
    for (std::size_t e = 0; e < elements; ++e) {
      const ElementBits result = test::read_element(type_, target, e);
      ASSERT_TRUE(test::same_element(type_, result, expected[e]))
          << "element " << e << " of " << elements << ", " << source_count << " sources: " << std::hex << result
          << " instead of " << expected[e];
    }
    EXPECT_TRUE(buffers.guards_stand());
  }

  ElementType type_ = std::get<0>(GetParam());
  ReduceOperation operation_ = std::get<1>(GetParam());
  InstructionSet set_ = std::get<2>(GetParam());
  ReduceFunction kernel_ = nullptr;
};

TEST_P(ReduceTest, EveryLengthAroundTheRegisters) {
  Random random(1);
  for (std::size_t elements = 0; elements <= 70; ++elements) {
    check(2, elements, elements % 2 == 0, random);
    check(1, 200 + elements, elements % 2 == 1, random);
  }
}

TEST_P(ReduceTest, EverySourceCount) {
  Random random(2);
  for (std::size_t sources = 0; sources <= 9; ++sources) {
    check(sources, static_cast<std::size_t>(random.between(0, 3000)), true, random);
    check(sources, static_cast<std::size_t>(random.between(0, 3000)), false, random);
  }
}

TEST_P(ReduceTest, EveryBufferMayBeATarget) {
  Random random(4);
  const ReduceToManyFunction to_many = find_reduce_to_many(type_, operation_, set_);
  for (std::size_t source_count = 0; source_count <= 8; ++source_count) {
    ReduceCase buffers(type_, 1 + source_count, static_cast<std::size_t>(random.between(0, 700)), random);
    const std::vector<ElementBits> expected = buffers.expected(operation_);
    const std::vector<const void*> sources = buffers.sources();
    std::vector<void*> targets = {buffers.target(), buffers.first()};
    for (const void* source : sources) targets.push_back(const_cast<void*>(source));
    to_many(targets.data(), targets.size(), buffers.first(), sources.data(), source_count, buffers.elements());
    for (const void* target : targets) {
      for (std::size_t e = 0; e < buffers.elements(); ++e) {
        const ElementBits result = test::read_element(type_, static_cast<const std::byte*>(target), e);
        ASSERT_TRUE(test::same_element(type_, result, expected[e])) << source_count << " sources, element " << e;
      }
    }
    EXPECT_TRUE(buffers.guards_stand());
  }
}

INSTANTIATE_TEST_SUITE_P(All, ReduceTest,
                         testing::Combine(testing::ValuesIn(all_element_types),
                                          testing::ValuesIn(all_reduce_operations),
                                          testing::ValuesIn(all_instruction_sets)),
                         name_of);

/// Two inputs of one element each.
ElementBits reduce_two(ElementType type, ReduceOperation operation, ElementBits a, ElementBits b) {
  const void* sources[] = {&b};
  find_reduce(type, operation)(&a, &a, sources, 1, 1);
  return test::read_element(type, reinterpret_cast<const std::byte*>(&a), 0);
}

TEST(Reduce, HalvesRoundToEven) {
  // 1 + 2^-11 lies halfway between 0x3c00 and 0x3c01, 1 + 2^-10 + 2^-11 between 0x3c01 and 0x3c02.
  EXPECT_EQ(reduce_two(ElementType::float16, ReduceOperation::sum, 0x3c00, 0x1000), 0x3c00U);
  EXPECT_EQ(reduce_two(ElementType::float16, ReduceOperation::sum, 0x3c01, 0x1000), 0x3c02U);
  // 65504 is the largest; half a step (16) above it is infinite, a little less is not.
  EXPECT_EQ(reduce_two(ElementType::float16, ReduceOperation::sum, 0x7bff, 0x4c00), 0x7c00U);
  EXPECT_EQ(reduce_two(ElementType::float16, ReduceOperation::sum, 0x7bff, 0x4bff), 0x7bffU);
  // 1 + 2^-8 in bfloat16, whose mantissa has 7 bits.
  EXPECT_EQ(reduce_two(ElementType::bfloat16, ReduceOperation::sum, 0x3f80, 0x3b80), 0x3f80U);
  EXPECT_EQ(reduce_two(ElementType::bfloat16, ReduceOperation::sum, 0x3f81, 0x3b80), 0x3f82U);
}

TEST(Reduce, HalvesAreRoundedOncePerCall) {
  // 2048 + 1 + 1: float16 has steps of 2 from 2048 on, so rounding after each addition would stay at 2048.
  std::uint16_t sum = 0x6800;
  const std::uint16_t one = 0x3c00;
  const void* sources[] = {&one, &one};
  find_reduce(ElementType::float16, ReduceOperation::sum)(&sum, &sum, sources, 2, 1);
  EXPECT_EQ(sum, 0x6801);
}

TEST(Reduce, MinimumKeepsMinusZeroAndNaN) {
  const ElementBits minus_zero = 0x80000000;
  const ElementBits not_a_number = 0x7fc00000;
  for (const auto& [a, b] : {std::pair{minus_zero, ElementBits{0}}, std::pair{ElementBits{0}, minus_zero}}) {
    EXPECT_EQ(reduce_two(ElementType::float32, ReduceOperation::min, a, b), minus_zero);
    EXPECT_EQ(reduce_two(ElementType::float32, ReduceOperation::max, a, b), 0U);
  }
  for (ReduceOperation operation : {ReduceOperation::min, ReduceOperation::max}) {
    EXPECT_EQ(reduce_two(ElementType::float32, operation, not_a_number, 0x3f800000), not_a_number);
    EXPECT_EQ(reduce_two(ElementType::float32, operation, 0x3f800000, not_a_number), not_a_number);
  }
}

TEST(Reduce, TheBestInstructionSetIsSupported) {
  EXPECT_TRUE(is_supported(best_instruction_set()));
  EXPECT_EQ(find_reduce(ElementType::float32, ReduceOperation::sum),
            find_reduce(ElementType::float32, ReduceOperation::avg, best_instruction_set()));
}

}  // namespace
}  // namespace espalier::engine::reduction
