#pragma once

// Tested by: tests/unit/topology/import/record_sysfs_test.cpp

#include <filesystem>
#include <string>

namespace espalier {

/// The xGMI links of one hop between GPUs that a sysfs shows, a line each: "xgmi ADDRESS to=ADDRESS count=N rate=MB/s",
/// the rate that of one of them; count and rate are missing where the driver says none. Nothing without AMD's driver.
std::string record_kfd(const std::filesystem::path& sys);

}  // namespace espalier
