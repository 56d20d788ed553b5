#include <gtest/gtest.h>

#include "engine/reduction/reduce.h"
#include "tests/support/reduce_case.h"

namespace espalier {
namespace {

using test::ElementBits;
using test::ReduceCase;

template <typename Values>
auto pick(const Values& values, Random& random) {
  return values[static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(values.size()) - 1))];
}

TEST(ReductionProperty, CuttingTheBufferChangesNothing) {
  Random random(11);
  for (int round = 0; round < 600; ++round) {
    const ElementType type = pick(all_element_types, random);
    const engine::reduction::ReduceFunction kernel =
        engine::reduction::find_reduce(type, pick(all_reduce_operations, random));
    ReduceCase buffers(type, 1 + static_cast<std::size_t>(random.between(1, 8)),
                       static_cast<std::size_t>(random.between(1, 2000)), random);
    const std::size_t elements = buffers.elements();
    const auto size = static_cast<std::size_t>(size_of(type));
    std::vector<const void*> sources = buffers.sources();
    kernel(buffers.target(), buffers.first(), sources.data(), sources.size(), elements);

    // The same in place, piece by piece from the end.
    for (std::size_t end = elements; end > 0;) {
      const auto begin = static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(end) - 1));
      std::vector<const void*> piece = sources;
      for (const void*& source : piece) source = static_cast<const std::byte*>(source) + begin * size;
      std::byte* at = buffers.first() + begin * size;
      kernel(at, at, piece.data(), piece.size(), end - begin);
      end = begin;
    }
    for (std::size_t e = 0; e < elements; ++e) {
      ASSERT_TRUE(test::same_element(type, test::read_element(type, buffers.first(), e),
                                     test::read_element(type, buffers.target(), e)))
          << "round " << round << ", element " << e;
    }
  }
}

TEST(ReductionProperty, MinimumAndMaximumTakeSourcesInAnyOrder) {
  Random random(12);
  for (int round = 0; round < 400; ++round) {
    const ElementType type = pick(all_element_types, random);
    const bool least = random.between(0, 1) == 0;
    const engine::reduction::ReduceFunction kernel =
        engine::reduction::find_reduce(type, least ? ReduceOperation::min : ReduceOperation::max);
    ReduceCase buffers(type, 5, static_cast<std::size_t>(random.between(1, 500)), random);
    std::vector<const void*> sources = buffers.sources();
    kernel(buffers.target(), buffers.first(), sources.data(), sources.size(), buffers.elements());
    const std::vector<const void*> reversed(sources.rbegin(), sources.rend());
    kernel(buffers.first(), buffers.first(), reversed.data(), reversed.size(), buffers.elements());
    for (std::size_t e = 0; e < buffers.elements(); ++e) {
      ASSERT_TRUE(test::same_element(type, test::read_element(type, buffers.first(), e),
                                     test::read_element(type, buffers.target(), e)))
          << "round " << round << ", element " << e;
    }
  }
}

TEST(ReductionProperty, IntegersTakeSourcesInAnyOrder) {
  Random random(13);
  for (ElementType type : {ElementType::int8, ElementType::uint8, ElementType::int32, ElementType::uint64}) {
    for (ReduceOperation operation : {ReduceOperation::sum, ReduceOperation::prod}) {
      const engine::reduction::ReduceFunction kernel = engine::reduction::find_reduce(type, operation);
      ReduceCase buffers(type, 9, 1000, random);
      std::vector<const void*> sources = buffers.sources();
      kernel(buffers.target(), buffers.first(), sources.data(), sources.size(), buffers.elements());
      // One call per source, last one first.
      for (std::size_t i = sources.size(); i-- > 0;) {
        kernel(buffers.first(), buffers.first(), &sources[i], 1, buffers.elements());
      }
      for (std::size_t e = 0; e < buffers.elements(); ++e) {
        ASSERT_EQ(test::read_element(type, buffers.first(), e), test::read_element(type, buffers.target(), e));
      }
    }
  }
}

}  // namespace
}  // namespace espalier
