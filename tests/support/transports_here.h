#pragma once

#include <vector>

#include "engine/communicator/make_transports.h"
#include "engine/communicator/transport_choice.h"

namespace espalier::test {

/// Those that work on this machine. Verbs needs a device: scripts/verbs-vm boots a machine with one.
inline std::vector<TransportChoice> transports_here() {
  std::vector<TransportChoice> here = {TransportChoice::shm, TransportChoice::tcp};
  if (engine::has_verbs()) here.push_back(TransportChoice::verbs);
  return here;
}

}  // namespace espalier::test
