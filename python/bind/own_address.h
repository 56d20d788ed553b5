#pragma once

// Tested by: python/tests/behaviour.py

#include <string>

namespace espalier::python {

inline constexpr const char* loopback_address = "127.0.0.1";

/// The same on ranks that reach each other by loopback, and only there.
std::string machine_id();

/// Where the ranks of other machines reach this one: ESPALIER_ADDRESS, else the interface towards MASTER_ADDR, else the
/// host's name.
std::string own_address();

}  // namespace espalier::python
