#pragma once

// Tested by: tests/unit/engine/rendezvous/control_plane_test.cpp

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace espalier::engine::rendezvous {

/// "rank 3", "ranks 1, 2, 5", "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 56 more".
std::string ranks_text(const std::vector<std::uint32_t>& ranks);
/// "30 s", "1.5 s", "250 ms".
std::string duration_text(std::chrono::milliseconds duration);
/// This machine's name; "unknown" when it has none.
std::string host_name();
/// "host NAME, process PID" of this process.
std::string process_name();
/// What errno means, thread-safely.
std::string errno_text(int number);

}  // namespace espalier::engine::rendezvous
