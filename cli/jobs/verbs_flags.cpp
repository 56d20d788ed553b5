#include "cli/jobs/verbs_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

namespace espalier::cli {
namespace {

/// Sets `value` to what was given, if that is within its range.
template <typename Value>
Result<void> take(std::string_view flag, const std::optional<std::uint32_t>& given, std::uint32_t least,
                  std::uint32_t most, Value& value) {
  if (!given) return {};
  if (*given < least || *given > most) {
    return fail(ErrorCode::invalid_input, fmt::format("{}: {} is not between {} and {}", flag, *given, least, most));
  }
  value = static_cast<Value>(*given);
  return {};
}

/// The parts between separators: one at least.
std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char letter : text) {
    if (letter == separator) {
      parts.emplace_back();
    } else {
      parts.back() += letter;
    }
  }
  return parts;
}

}  // namespace

void VerbsFlags::add_to(CLI::App& command) {
  const auto add = [&](const char* flag, auto& value, const char* help, const char* shown) {
    command.add_option(flag, value, help)
        ->option_text(shown)
        ->group("RDMA: --transport shm+verbs or verbs (docs/verbs.md)");
  };
  add("--verbs-device", devices,
      "Devices dealt to the ranks in turn, + between those of one rank; else those that NICs are named after",
      "NAME[:PORT][+NAME[:PORT]...],...");
  add("--verbs-port", port, "Port of devices named without one; else the first that is active", "1..255");
  add("--verbs-gid", gid, "Index of the GID; else RoCE v2 with an IPv4 address", "0..255");
  add("--verbs-mtu", mtu, "Bytes of a packet; else as many as both ports carry", "256..4096");
  add("--verbs-traffic-class", traffic_class, "DSCP and ECN bits of the packets", "0..255 (0)");
  add("--verbs-service-level", service_level, "Priority in the fabric", "0..15 (0)");
  add("--verbs-retries", retries, "How often a packet is sent again", "0..7 (7)");
  add("--verbs-timeout", timeout, "Until it is sent again: 4.096 us times two to this", "1..31 (18)");
}

Result<engine::VerbsOptions> VerbsFlags::resolve() const {
  engine::VerbsOptions options;
  bool is_any_without_port = devices.empty();
  for (const std::string& of_rank : devices.empty() ? std::vector<std::string>() : split(devices, ',')) {
    options.devices.push_back(split(of_rank, '+'));
    for (const std::string& name : options.devices.back()) {
      if (name.empty() || std::ranges::count(options.devices.back(), name) > 1) {
        return fail(ErrorCode::invalid_input,
                    name.empty() ? fmt::format("--verbs-device: '{}' has an empty name", devices)
                                 : fmt::format("--verbs-device: '{}' has {} twice", of_rank, name),
                    "such as --verbs-device mlx5_0,mlx5_1, or mlx5_0+mlx5_1 for both on every rank");
      }
      const auto parsed = engine::parse_verbs_port(name);
      if (!parsed) return fail(parsed.error().code, "--verbs-device: " + parsed.error().message, parsed.error().help);
      is_any_without_port |= parsed->port == 0;
    }
  }
  if (port && !is_any_without_port) {
    return fail(ErrorCode::invalid_input, "--verbs-port: every device of --verbs-device is named with its own port",
                "leave one of the two out");
  }
  if (mtu && (*mtu < 256 || *mtu > 4096 || !std::has_single_bit(*mtu))) {
    return fail(ErrorCode::invalid_input, fmt::format("--verbs-mtu: {} is not 256, 512, 1024, 2048 or 4096", *mtu));
  }
  options.mtu = mtu.value_or(0);
  for (const auto& taken :
       {take("--verbs-port", port, 1, 255, options.port), take("--verbs-gid", gid, 0, 255, options.gid_index),
        take("--verbs-traffic-class", traffic_class, 0, 255, options.traffic_class),
        take("--verbs-service-level", service_level, 0, 15, options.service_level),
        take("--verbs-retries", retries, 0, 7, options.retries),
        take("--verbs-timeout", timeout, 1, 31, options.timeout)}) {
    if (!taken) return tl::unexpected(taken.error());
  }
  return options;
}

}  // namespace espalier::cli
