#pragma once

// Tested by: tests/unit/topology/import/nvml_test.cpp

#include <string>

#include "base/result.h"

namespace espalier {

/// What NVIDIA's management library says of this machine's GPUs, as a text that import_topology reads: a line per GPU
/// with its place on PCIe, per NVLink with its rate and what it leads to, per pair of GPUs with what is between them on
/// PCIe. Errors: unavailable, with the reason.
Result<std::string> record_nvml(const std::string& library = "libnvidia-ml.so.1");

}  // namespace espalier
