#include "planners/planner.h"

namespace espalier {

std::span<const Planner> all_planners() { return {}; }

}  // namespace espalier
