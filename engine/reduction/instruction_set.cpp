#include "engine/reduction/instruction_set.h"

#include <cstddef>

#ifdef ESPALIER_X86_KERNELS
#include <cpuid.h>
#endif

namespace espalier::engine::reduction {

#ifdef ESPALIER_X86_KERNELS
namespace {

/// clang's __builtin_cpu_supports does not know "f16c". Source: Intel SDM volume 2, CPUID leaf 1, ECX bit 29.
bool has_f16c() {
  unsigned int eax = 0;
  unsigned int ebx = 0;
  unsigned int ecx = 0;
  unsigned int edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & (1U << 29U)) != 0;
}

}  // namespace
#endif

bool is_supported(InstructionSet set) {
  if (set == InstructionSet::plain) return true;
#ifdef ESPALIER_X86_KERNELS
  // These ask the CPU and whether the system saves the wide registers.
  static const bool f16c = has_f16c();  // Asked once: in a virtual machine the instruction takes microseconds.
  const bool avx2 = __builtin_cpu_supports("avx2") && f16c;
  if (set == InstructionSet::avx2) return avx2;
  return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

InstructionSet best_instruction_set() {
  if (is_supported(InstructionSet::avx512)) return InstructionSet::avx512;
  if (is_supported(InstructionSet::avx2)) return InstructionSet::avx2;
  return InstructionSet::plain;
}

std::string_view to_string(InstructionSet set) {
  constexpr std::array<std::string_view, all_instruction_sets.size()> names = {"plain", "avx2", "avx512"};
  return names[static_cast<std::size_t>(set)];
}

}  // namespace espalier::engine::reduction
