#pragma once

// Tested by: tests/unit/engine/rendezvous/rendezvous_faults_test.cpp

#include <sys/types.h>

#include <csignal>

namespace espalier {

/// Sends a signal to one process, and tells whether it was sent. The numbers that mean many processes (0, -1, those of
/// groups) and process 1 are refused: a fork that failed gives -1, and kill(-1) hits everybody.
inline bool send_signal(pid_t process, int number) { return process > 1 && ::kill(process, number) == 0; }

/// The same for the process group that a process leads.
inline bool send_signal_to_group(pid_t leader, int number) { return leader > 1 && ::kill(-leader, number) == 0; }

}  // namespace espalier
