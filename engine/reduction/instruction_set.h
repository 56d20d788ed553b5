#pragma once

// Tested by: tests/unit/engine/reduction/reduce_test.cpp

#include <array>
#include <cstdint>
#include <string_view>

namespace espalier::engine::reduction {

/// For which vector instructions a kernel was compiled. `plain` runs on every CPU that the program runs on.
enum class InstructionSet : std::uint8_t { plain, avx2, avx512 };

inline constexpr std::array all_instruction_sets = {InstructionSet::plain, InstructionSet::avx2,
                                                    InstructionSet::avx512};

/// Whether this build has kernels for it and this CPU and system can run them.
bool is_supported(InstructionSet set);

/// The widest supported one.
InstructionSet best_instruction_set();

/// "plain", "avx2", "avx512".
std::string_view to_string(InstructionSet set);

}  // namespace espalier::engine::reduction
