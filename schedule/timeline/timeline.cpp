#include "schedule/timeline/timeline.h"

#include "base/check.h"

namespace espalier {

std::string_view to_string(Phase phase) {
  switch (phase) {
    case Phase::send: return "send";
    case Phase::wire: return "wire";
    case Phase::recv: return "recv";
    case Phase::reduce: return "reduce";
  }
  ESPALIER_CHECK(false, "a phase without a name");
}

}  // namespace espalier
