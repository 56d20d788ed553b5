#pragma once

// The network: read, built, generated, changed, written.
#include "topology/boost_graph.h"          // IWYU pragma: export
#include "topology/generate/generate.h"    // IWYU pragma: export
#include "topology/slow.h"                 // IWYU pragma: export
#include "topology/topology.h"             // IWYU pragma: export
#include "topology/topology_builder.h"     // IWYU pragma: export
#include "topology/without.h"              // IWYU pragma: export
#include "topology/yaml/read_topology.h"   // IWYU pragma: export
#include "topology/yaml/write_topology.h"  // IWYU pragma: export
