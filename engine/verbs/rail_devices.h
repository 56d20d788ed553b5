#pragma once

// Tested by: tests/unit/engine/verbs/rail_devices_test.cpp

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace espalier::engine {

/// A port of a device of this machine, as libibverbs lists them.
struct VerbsPort {
  std::string device;
  std::uint8_t number = 1;
  bool is_active = false;
};

/// The devices that are a rank's rails.
struct RailDevices {
  std::vector<std::string> names;          ///< NAME or NAME:PORT; one that is empty: the first with an active port.
  std::vector<std::uint32_t> rail_of_nic;  ///< By the NIC's place on its host; empty: rail i is NIC i.
  std::string reason;                      ///< Why these; empty where there is nothing to explain.
};

/// Devices for a rank whose host has these NICs in the topology. A NIC is the device that it is named after: NAME,
/// NAME.pPORT or NAME:PORT, behind its host's name and a '.' or '/', such as box1.mlx5_0. NICs that are no device with
/// an active port here share the rails of the others. If no NIC is named after a device, but there are as many active
/// ports as NICs, they are taken in order. Else one device, the first with an active port.
/// `port` is that of devices that are named without one; 0 for the first that is active.
RailDevices match_rails(std::span<const std::string> nics, std::span<const VerbsPort> ports, std::uint8_t port);

}  // namespace espalier::engine
