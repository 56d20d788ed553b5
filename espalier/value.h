#pragma once

// Tested by: tests/unit/espalier/forecast_test.cpp

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/result.h"

namespace espalier {

/// The value of a result; where it is an error, prints it to standard error and ends the program with 1. For short
/// programs: what a library calls hands errors on instead.
template <class T>
T value(Result<T> result) {
  if (result) return *std::move(result);
  const Error& error = result.error();
  std::fprintf(stderr, "error: %s\n", error.message.c_str());
  if (!error.help.empty()) std::fprintf(stderr, "   = help: %s\n", error.help.c_str());
  std::exit(1);
}

}  // namespace espalier
