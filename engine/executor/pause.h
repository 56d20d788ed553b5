#pragma once

// Tested by: tests/unit/engine/executor/waiting_test.cpp

namespace espalier::engine {

/// A moment, some 10 to 50 ns, in which a core that spins leaves its execution units to others.
inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace espalier::engine
