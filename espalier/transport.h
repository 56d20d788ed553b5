#pragma once

// What carries messages between ranks; own transports.
#include "engine/transport/transport.h"  // IWYU pragma: export
