#pragma once

// Tested by: tests/unit/cli/flags/modes_test.cpp

#include <span>
#include <string>

#include "base/result.h"

namespace espalier::cli {

/// That there is no such file, with the file beside it or the shipped name that it seems to mean; "cluster" means
/// "cluster.yaml". `shipped` are the names that stand for files themselves, such as those of the shipped machines.
Error missing_file(const std::string& argument, std::span<const std::string> shipped = {});

}  // namespace espalier::cli
