#pragma once

// Tested by: tests/unit/compare/read/port_counters_test.cpp

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace espalier::compare {

/// A port that its counters set apart from others in the same text.
struct PortTrouble {
  std::optional<std::uint32_t> gpu;  ///< Whose link it is, by nvidia-smi's number.
  std::string device;                ///< As the text names it: "node1 mlx5_0", "leaf-3"; empty where it has no name.
  std::optional<std::uint32_t> port;
  bool is_slower = false;  ///< It is down, or at a lower rate than others.
  std::string says;        ///< "link 5: 891 CRC Errors", "link 2: down".
  std::size_t line = 0;

  friend bool operator==(const PortTrouble&, const PortTrouble&) = default;
};

/// Whether a text is of the counters of ports that read_port_counters reads.
bool has_port_counters(std::string_view text);

/// What `nvidia-smi nvlink -e` and `-s`, `perfquery`, `ibqueryerrors` and the port counters of `ibdiagnet` say: ports
/// whose errors of cables (symbols, recoveries, replays, CRC, links down; no congestion) are over ten times the median
/// of all ports in the text, ports that are down, and links below the rate of most. `name` stands for the file.
/// Errors: invalid_input with file:line for a text without a port. Cost: linear in the text.
Result<std::vector<PortTrouble>> read_port_counters(std::string_view text, std::string_view name);

}  // namespace espalier::compare
