#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "python/bind/engine_api.h"

namespace espalier::python {

/// Throws std::runtime_error, which PyTorch makes a RuntimeError of, where a call of the engine went wrong.
inline void expect(Outcome outcome) {
  if (outcome == nullptr) return;
  const std::string text = outcome;
  // As whoever knows other backends looks for it.
  const bool is_late = text.find("nothing moved for") != std::string::npos;
  throw std::runtime_error(is_late ? "the timeout passed in " + text : text);
}

struct EndsItself {
  void operator()(Endable* what) const { what->end(); }
};
template <class T>
using Owned = std::unique_ptr<T, EndsItself>;

}  // namespace espalier::python
