#pragma once

// Tested by: tests/unit/topology/import/record_sysfs_test.cpp

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

namespace espalier {

/// A PCI address in one spelling: lower case, without leading zeros of the domain beyond four digits.
std::string normal_bus(std::string_view bus);

/// Whether a display adapter of that vendor and device ("1002:515e") only draws the console of a server, as those of
/// board management controllers do: no GPU that computes. Source: pci.ids.
bool draws_a_console(std::string_view model);

/// The payload rate of a PCIe link, after its line coding. `speed` begins with the transfers per second of a lane in
/// GT/s
/// ("16 GT/s", "16.0 GT/s PCIe"); a width of 0 stands for 16. Nothing when the speed is none of PCIe's.
std::optional<Bandwidth> pcie_rate(std::string_view speed, std::int64_t width);

}  // namespace espalier
