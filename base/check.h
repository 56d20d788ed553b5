#pragma once

// Tested by: tests/unit/sweep/guarded/guarded_items_test.cpp

#include <cstdio>
#include <cstdlib>

namespace espalier {

/// Reports a bug of this program and ends it. Never for what a user or the world can cause.
[[noreturn]] inline void check_failed(const char* file, int line, const char* condition, const char* why) {
  std::fprintf(stderr, "espalier: internal error at %s:%d: %s (%s)\n", file, line, why, condition);
  std::abort();
}

}  // namespace espalier

/// A condition that only a bug of ours can break; checked in every build.
#define ESPALIER_CHECK(condition, why) \
  (static_cast<bool>(condition) ? static_cast<void>(0) : ::espalier::check_failed(__FILE__, __LINE__, #condition, why))
