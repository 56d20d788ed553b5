#pragma once

// Tested by: tests/unit/espalier/forecast_test.cpp

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/result.h"

namespace espalier {

/// Prints an error to standard error and ends the program with 1.
[[noreturn]] inline void end_with(const Error& error) {
  std::fprintf(stderr, "error: %s\n", error.message.c_str());
  if (!error.help.empty()) std::fprintf(stderr, "   = help: %s\n", error.help.c_str());
  std::exit(1);
}

/// The value of a result; where it is an error, the program ends with it (`end_with`). For short programs: what a
/// library calls hands errors on instead.
template <class T>
T value(Result<T> result) {
  if (!result) end_with(result.error());
  return *std::move(result);
}
inline void value(const Result<void>& result) {
  if (!result) end_with(result.error());
}

}  // namespace espalier
