#pragma once

// Tested by: python/tests/behaviour.py

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/element.h"
#include "engine/communicator/communicator.h"
#include "python/bind/bindings.h"

namespace espalier::python {

/// The element type of an array that a call can work on where it lies. Raises invalid_input for one that is not
/// contiguous, unsupported for other types.
ElementType checked_type(const py::array& array);

/// The counts and displacements of an all_to_all, in elements, which live as long as the call.
struct CountArrays {
  std::array<std::vector<std::int64_t>, 4> numbers;  ///< Counts sent, displacements; counts received, displacements.
};

/// A collective as Python calls it; arrays, or None where this rank needs none.
struct CallArrays {
  std::string kind;
  py::object send, receive;
  std::string operation;
  std::uint32_t root = 0;
  /// Unequal shards: the elements of each rank, an array of int64 that lives as long as the call; or None.
  py::object shares = py::none();
  /// Of an all_to_all, in entries of the arrays' first axes: (send counts, displacements or None, receive counts,
  /// displacements or None), arrays of int64; or None.
  py::object counts = py::none();

  /// `counts` in elements; null without any. Raises invalid_input where blocks are not within the arrays.
  [[nodiscard]] std::shared_ptr<const CountArrays> count_arrays(const Communicator& ranks) const;

  /// The same for the engine, on the memory of the arrays. Raises for arrays that do not fit each other or the call.
  [[nodiscard]] CallArguments arguments(const Communicator& ranks, const CountArrays* counts) const;

 private:
  [[nodiscard]] CallArguments counted(const CountArrays& counts) const;
};

}  // namespace espalier::python
