#pragma once

// Tested by: tests/unit/topology/import/record_sysfs_test.cpp

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace espalier {

/// What sysfs shows of this machine: NUMA nodes, PCI bridges, GPUs, network adapters and their rates, in the format
/// `sysfs` of `import_topology` (docs/formats.md). `root` is where sys/ is: "/", or a copy. What cannot be read is left
/// out. Errors: unavailable when there is no sysfs; too_large past 10,000 devices.
Result<std::string> record_sysfs(const std::filesystem::path& root);

/// Whether such a record has a GPU, of NVIDIA or AMD.
bool records_gpus(std::string_view record);

}  // namespace espalier
