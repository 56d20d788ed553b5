#pragma once

// Tested by: tests/unit/lab/wiring_test.cpp

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace espalier::lab {

/// What the namespaces of one lab have in common: "espalier-PID-START-K", the process that owns it, when that process
/// was started (so that a process id used again is told apart), and a number among its labs. Namespaces are called
/// PREFIX-nI for node I of the topology, and PREFIX-hub.
struct JobName {
  int pid = 0;
  std::uint64_t start = 0;   ///< Clock ticks after boot.
  std::uint32_t number = 0;  ///< Of the labs of one process.

  [[nodiscard]] std::string prefix() const;
  friend bool operator==(const JobName&, const JobName&) = default;
};

/// This process's, with number 0.
JobName own_job_name();

/// The job that a namespace belongs to; nothing for a namespace that is not of a lab.
std::optional<JobName> job_of(std::string_view name_space);

/// Whether the process that owns the lab is still there.
bool is_alive(const JobName& job);

}  // namespace espalier::lab
