#pragma once

// Tested by: tests/unit/topology/import/import_test.cpp

#include "base/units.h"

namespace espalier {

/// What an NVLink carries each way at the signalling rate that NVIDIA's tools tell, in GB/s: 16 of 17 parts from
/// NVLink 4 on, and rounded values before. Source: the payload rates in the data sheets of V100, A100, H100, B200
/// beside what the tools tell on them.
Bandwidth nvlink_payload(double signalled);

}  // namespace espalier
