#pragma once

// Tested by: tests/unit/topology/import/import_test.cpp

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace espalier {

/// How far two devices are apart, as the legend of `nvidia-smi topo -m` orders it.
enum Distance : int { unknown = 0, one_bridge = 1, several_bridges = 2, host_bridge = 3, numa_node = 4, sockets = 5 };

/// How one device reaches another.
struct MatrixCell {
  int distance = unknown;
  std::int64_t nvlinks = 0;
  bool is_self = false;
  bool is_given = false;
};

struct MatrixDevice {
  std::string label;
  bool is_gpu = false;
  int line = 0;               ///< Of its row; 0: it has none.
  std::string cpu_affinity;   ///< Of the CPUs next to it; may be empty.
  std::string numa_affinity;  ///< Empty where it is not known.
  bool is_numa_node = false;  ///< Its memory is a NUMA node of its own, as that of GPUs beside a Grace CPU is.

  /// Whether both are next to the same CPUs and the same NUMA nodes, by what both have.
  [[nodiscard]] bool shares_cpu_with(const MatrixDevice& other) const {
    return !cpu_affinity.empty() && cpu_affinity == other.cpu_affinity && !numa_affinity.empty() &&
           numa_affinity == other.numa_affinity;
  }
};

/// The matrix of `nvidia-smi topo -m`: a row and a column per device.
struct MatrixTable {
  std::vector<MatrixDevice> devices;
  std::vector<std::vector<MatrixCell>> cells;
  std::map<std::string, std::string> nic_names;  ///< Of the NIC legend: "NIC0" is "mlx5_0".
};

/// A GPU has at most 18 NVLinks: more than that in a row are the same links counted for each GPU behind a switch.
inline constexpr std::int64_t max_nvlinks = 18;

/// Reads the matrix out of a text; lines before, between and behind its rows that are none of it are passed over, and
/// so are labels of launchers before its rows. Rows that are there again (`topo -m` and `topo -mp` in one paste) add to
/// what is known. Both cells of a pair are filled in where one is given.
/// Errors: invalid_input with file:line:column.
Result<MatrixTable> read_matrix_table(std::string_view text, const std::string& file);

}  // namespace espalier
