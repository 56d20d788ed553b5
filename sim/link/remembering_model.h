#pragma once

// Tested by: tests/unit/sim/link/lone_runs_test.cpp

#include <memory>

#include "sim/model.h"

namespace espalier::sim {

/// As make_model, for jobs that make the same calls again and again: runs that are alone on their resources are
/// simulated once, in the model `link`. All is answered as by the other, but links(), which counts a run that is alone
/// only once it is over.
[[nodiscard]] std::unique_ptr<Model> make_remembering_model(ModelKind kind, const Network& network,
                                                            const Conditions& conditions);

}  // namespace espalier::sim
