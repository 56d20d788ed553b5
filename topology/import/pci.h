#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

namespace espalier {

/// A PCI address in one spelling: lower case, without leading zeros of the domain beyond four digits.
std::string normal_bus(std::string_view bus);

/// The payload rate of a PCIe link, after its line coding. `speed` begins with the transfers per second of a lane in
/// GT/s
/// ("16 GT/s", "16.0 GT/s PCIe"); a width of 0 stands for 16. Nothing when the speed is none of PCIe's.
std::optional<Bandwidth> pcie_rate(std::string_view speed, std::int64_t width);

}  // namespace espalier
