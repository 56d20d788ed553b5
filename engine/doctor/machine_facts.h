#pragma once

// Tested by: tests/unit/engine/doctor/doctor_test.cpp

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace espalier::engine::doctor {

/// A network interface.
struct NetworkInterface {
  std::string name;
  std::string state;  ///< operstate: "up", "down", "unknown".
  std::optional<std::int64_t> speed_mbit;
  std::int64_t mtu = 0;
  bool is_device = false;  ///< Backed by hardware (or what a virtual machine takes for it).
  bool is_loopback = false;
  std::vector<std::string> addresses;
};

/// A port of a verbs device.
struct VerbsPort {
  std::string device;
  int port = 1;
  std::string state;       ///< "ACTIVE", "DOWN", ...
  std::string rate;        ///< "100 Gb/sec (4X EDR)".
  std::string link_layer;  ///< "InfiniBand", "Ethernet".
};

/// What /proc, /sys and /dev say. Empty and nothing: not there, or not readable.
struct MachineFacts {
  std::string architecture_flags;  ///< The first processor's flags, each between blanks; x86 flags or arm features.
  std::string processor_model;
  std::int64_t online_processors = 0;
  std::int64_t numa_nodes = 0;
  std::optional<double> processor_quota;  ///< The control group's limit, in processors.
  std::int64_t memory_total = 0;          ///< Bytes.
  std::int64_t memory_available = 0;      ///< Bytes.
  std::string kernel_release;
  std::string clock_source;
  std::string huge_pages;  ///< The chosen mode of transparent huge pages: "always", "madvise", "never".
  std::string huge_pages_shared_memory;
  std::optional<std::int64_t> socket_send_limit;     ///< tcp_wmem's maximum, in bytes.
  std::optional<std::int64_t> socket_receive_limit;  ///< tcp_rmem's maximum, in bytes.
  std::vector<NetworkInterface> interfaces;          ///< By name; addresses are not in /sys, and stay empty.
  std::vector<VerbsPort> verbs_ports;
  bool has_verbs_character_devices = false;   ///< /dev/infiniband/uverbs*.
  std::string nvidia_driver;                  ///< Its version.
  bool has_open_nvidia_modules = false;       ///< The driver's open kernel modules, which export dma-bufs.
  bool has_nvidia_peermem = false;            ///< The module by which adapters reach GPU memory without dma-bufs.
  std::vector<std::string> nvidia_gpus;       ///< Their models.
  bool has_nvidia_character_devices = false;  ///< /dev/nvidia0 ...
};

/// Reads the facts below a root folder: "" for this machine, another one for a copy of its /proc, /sys and /dev.
MachineFacts read_machine_facts(const std::string& root);

}  // namespace espalier::engine::doctor
