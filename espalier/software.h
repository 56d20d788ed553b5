#pragma once

// Tested by: tests/unit/espalier/forecast_test.cpp

#include <string>

#include "base/result.h"
#include "forecast/software.h"

namespace espalier {

/// The profile of a name as --profile takes it: a shipped one or a file, with how calls are started,
/// "nccl-hopper:one-process" or "own.yaml:graph". `who` stands before messages.
/// Requires: a name that is not empty and not "ideal". Errors: invalid_input when there is no such profile, naming
/// those there are, or when its file is wrong.
Result<forecast::Software> read_software(const std::string& name, const std::string& who = "profile");

}  // namespace espalier
