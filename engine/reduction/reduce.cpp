#include "engine/reduction/reduce.h"

#include "base/check.h"
#include "engine/reduction/kernel_table.h"

namespace espalier::engine::reduction {
namespace {

static_assert(all_element_types.size() == element_types);
static_assert(all_reduce_operations.size() == operations + 1);
static_assert(static_cast<std::size_t>(ReduceOperation::avg) == operations);

const KernelTable& kernels_for(InstructionSet set) {
  ESPALIER_CHECK(is_supported(set), "kernels for instructions that this CPU lacks");
#ifdef ESPALIER_X86_KERNELS
  if (set == InstructionSet::avx2) return avx2_kernels();
  if (set == InstructionSet::avx512) return avx512_kernels();
#endif
  return plain_kernels();
}

std::size_t column_of(ReduceOperation operation) {
  return static_cast<std::size_t>(operation == ReduceOperation::avg ? ReduceOperation::sum : operation);
}

}  // namespace

ReduceFunction find_reduce(ElementType type, ReduceOperation operation, InstructionSet set) {
  return kernels_for(set).reduce[static_cast<std::size_t>(type)][column_of(operation)];
}

ReduceToManyFunction find_reduce_to_many(ElementType type, ReduceOperation operation, InstructionSet set) {
  return kernels_for(set).reduce_to_many[static_cast<std::size_t>(type)][column_of(operation)];
}

void divide_by(ElementType type, void* data, std::size_t element_count, std::uint32_t ranks, InstructionSet set) {
  ESPALIER_CHECK(ranks > 0, "an average over no ranks");
  kernels_for(set).divide[static_cast<std::size_t>(type)](data, element_count, ranks);
}

}  // namespace espalier::engine::reduction
