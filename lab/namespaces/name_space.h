#pragma once

// Tested by: tests/lab/network_test.cpp

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace espalier::lab {

/// The file that keeps a named network namespace alive, as ip-netns(8) lays it out.
std::string name_space_path(std::string_view name);

/// Names of all network namespaces that begin with `prefix`, sorted.
std::vector<std::string> list_name_spaces(std::string_view prefix);

/// Calls `work` in a thread of its own that is inside the network namespace.
/// Errors: unavailable when the namespace cannot be entered; whatever `work` returns.
Result<void> inside(const std::string& name_space, const std::function<Result<void>()>& work);

/// Bytes that each network device of a namespace has sent, in the order that the kernel lists them.
struct DeviceCount {
  std::string device;
  std::uint64_t sent_bytes = 0;
  std::uint64_t sent_packets = 0;
};
Result<std::vector<DeviceCount>> count_devices(const std::string& name_space);

}  // namespace espalier::lab
