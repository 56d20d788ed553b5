#pragma once

// Tested by: tests/unit/schedule/schedule_test.cpp

#include <string>
#include <vector>

#include "base/id.h"
#include "base/rational.h"

namespace espalier {

/// A proven limit: on this graph no schedule (of the class that `what` names) finishes S bytes in less than
/// S x time_per_byte seconds.
struct Bound {
  Rational time_per_byte;   ///< Seconds per byte of the message size S; zero when nothing has to move.
  std::vector<NodeId> cut;  ///< The node set whose leaving (or entering) bandwidth proves it; empty when the proof is a
                            ///< linear program.
  std::string what;         ///< One sentence: what the cut has to let through, or which program it is.
  bool is_floor = false;    ///< Whether it is not known to be reached: the optimum may take longer. `what` says why.
};

/// A bound that is not known to be reached, and why.
inline Bound as_floor(Bound bound, const std::string& why) {
  bound.is_floor = true;
  bound.what += " (a floor: " + why + ")";
  return bound;
}

}  // namespace espalier
