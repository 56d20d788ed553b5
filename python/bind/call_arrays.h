#pragma once

#include <string>

#include "base/element.h"
#include "engine/communicator/communicator.h"
#include "python/bind/bindings.h"

namespace espalier::python {

/// The element type of an array that a call can work on where it lies. Raises invalid_input for one that is not
/// contiguous, unsupported for other types.
ElementType checked_type(const py::array& array);

/// A collective as Python calls it; arrays, or None where this rank needs none.
struct CallArrays {
  std::string kind;
  py::object send, receive;
  std::string operation;
  std::uint32_t root = 0;
  /// Unequal shards: the elements of each rank, an array of int64 that lives as long as the call; or None.
  py::object shares = py::none();

  /// The same for the engine, on the memory of the arrays. Raises for arrays that do not fit each other or the call.
  [[nodiscard]] CallArguments arguments(const Communicator& ranks) const;
};

}  // namespace espalier::python
