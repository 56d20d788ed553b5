#pragma once

// Tested by: tests/unit/topology/import/formats/others_test.cpp

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topology/import/draft.h"

namespace espalier {

/// Payload of one lane of InfiniBand, "HDR", in Mbit/s: after 8b/10b up to QDR, 64b/66b up to EDR, and net of error
/// correction beyond. Nothing for what is no generation.
std::optional<std::int64_t> infiniband_lane_rate(std::string_view generation);

/// A switch, adapter or router.
struct FabricDevice {
  std::string guid;         ///< "S-...", "H-..." or "R-...".
  std::string description;  ///< Of its own block, else of a port that leads to it.
  std::string image;        ///< The system image of its block: one for all devices of a chassis.
  std::string model;        ///< The device id of its block.
};

/// What joins two of them, by their numbers.
struct FabricCable {
  std::size_t tail = 0;
  std::size_t head = 0;
  Known<Bandwidth> rate;
};

/// An InfiniBand fabric as a tool of infiniband-diags prints it.
struct Fabric {
  std::vector<FabricDevice> devices;
  std::vector<FabricCable> cables;
  std::vector<int> self_cables;  ///< Lines of cables that lead back to their own device.
};

/// Its hosts and switches: adapters below their hosts, without what holds no ranks, with warnings of what is odd.
Draft draft_of(const Fabric& fabric, const std::string& file);

}  // namespace espalier
