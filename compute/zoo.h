#pragma once

// Tested by: tests/unit/compute/zoo_test.cpp

#include <span>
#include <string_view>

#include "compute/model.h"

namespace espalier::compute {

/// A published model.
struct NamedModel {
  std::string_view name;
  std::int64_t sequence = 0;  ///< Tokens that it was trained with.
  ModelShape shape;
};

std::span<const NamedModel> models();

/// Errors: invalid_input with the names there are.
Result<const NamedModel*> find_model(std::string_view name);

}  // namespace espalier::compute
