#pragma once

// Tested by: tests/unit/engine/doctor/doctor_test.cpp

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace espalier::engine::doctor {

/// A resource limit of this process; nothing means unlimited.
struct Limit {
  std::optional<std::uint64_t> soft;
  std::optional<std::uint64_t> hard;
};

/// What only trying shows: whether the kernel and this process's rights allow a thing.
struct Probes {
  std::int64_t allowed_processors = 0;  ///< By this process's affinity.
  Limit open_files;
  Limit locked_memory;
  std::optional<std::int64_t> shared_memory_size;  ///< Bytes of /dev/shm; nothing when it is not there.
  std::int64_t shared_memory_free = 0;
  bool has_futex = false;
  bool has_memfd = false;
  bool has_pidfd = false;
  bool has_peer_reads = false;  ///< process_vm_readv from another process of this user that is no ancestor's tracer.
  bool has_network_namespaces = false;  ///< This user can make one, as root or within a user namespace.
  bool has_ip = false;                  ///< iproute2's commands on the PATH.
  bool has_tc = false;
  bool has_veth = false;                                      ///< Made in a fresh network namespace.
  bool has_tbf = false;                                       ///< Token-bucket shaping, tried there.
  bool has_netem = false;                                     ///< Delay emulation, tried there.
  std::map<std::string, std::vector<std::string>> addresses;  ///< By interface.
  /// By verbs device: whether its driver registers dma-bufs, such as a GPU's memory. Those that cannot be opened are
  /// not there.
  std::map<std::string, bool> takes_dma_buf;
};

/// Tries them on this machine. What it makes on the way lives in namespaces of child processes and ends with them.
/// Cost: some tens of milliseconds, most of it for starting `ip` and `tc`.
Probes probe_machine();

}  // namespace espalier::engine::doctor
