#pragma once

// Tested by: tests/unit/engine/doctor/doctor_test.cpp

#include <string>
#include <string_view>
#include <vector>

#include "engine/doctor/machine_facts.h"
#include "engine/doctor/probes.h"

namespace espalier::engine::doctor {

/// How a thing stands.
enum class CheckState {
  ok,
  warn,     ///< There, but slower or smaller than it could be.
  missing,  ///< Not there: what needs it does not work here.
};

std::string_view to_string(CheckState state);

/// One thing that was looked at.
struct Check {
  std::string name;  ///< "processors", "nic eth0", ...
  CheckState state = CheckState::ok;
  bool is_needed = false;  ///< The engine does not run without it; the rest only makes it faster or richer.
  std::string found;       ///< What there is, in a few words.
  std::string hint;        ///< What to do about it; empty when all is well.
};

/// Judges a machine by what was read and tried. Pure: the same facts give the same checks, in the same order.
std::vector<Check> check_machine(const MachineFacts& facts, const Probes& probes);

/// Whether everything that the engine needs is there.
bool can_run_engine(const std::vector<Check>& checks);

}  // namespace espalier::engine::doctor
