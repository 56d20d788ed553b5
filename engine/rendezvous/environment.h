#pragma once

// Tested by: tests/unit/engine/rendezvous/secret_test.cpp

#include <functional>
#include <map>
#include <string>

namespace espalier::engine::rendezvous {

/// Environment variables by name: a value, so that what reads them can be tried on any.
using Environment = std::map<std::string, std::string, std::less<>>;

/// This process's environment, as it is now.
Environment process_environment();

}  // namespace espalier::engine::rendezvous
