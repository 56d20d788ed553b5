#pragma once

// Tested by: tests/unit/topology/import/import_test.cpp

#include <string>

#include "base/result.h"
#include "topology/import/draft.h"

namespace espalier {

/// Takes away the NICs that the list does not name: "mlx5_[1-8]", "mlx5_0,mlx5_3". Empty: all stay.
/// Errors: invalid_input for a list that is none, and for one that names a NIC that is not there.
Result<void> keep_nics(Draft& machine, const std::string& list);

/// Warns of NICs that may be of another network than the fabric that they are about to be joined to: near no GPU, or
/// slower than the others.
void warn_of_other_networks(Draft& machine);

}  // namespace espalier
