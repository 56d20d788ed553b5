#pragma once

// Tested by: tests/unit/cli/flags/address_file_test.cpp

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/communicator/job.h"

namespace espalier::cli {

/// Reads a JSON list of {"route": 0, "bind": "10.0.0.1", "connect": "10.0.0.2"}, each route once; "bind" may be left
/// out. `name` stands for the file. Errors: invalid_input, naming the file and the entry.
Result<std::vector<engine::RouteAddress>> read_addresses(std::string_view text, const std::string& name);

}  // namespace espalier::cli
