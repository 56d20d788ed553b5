#include "engine/verbs/rail_devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace espalier::engine {
namespace {

/// Whether a node's id is this name, with or without its host before it.
bool is_named(std::string_view id, std::string_view name) {
  if (!id.ends_with(name)) return false;
  const std::string_view host = id.substr(0, id.size() - name.size());
  return host.empty() || host.ends_with('.') || host.ends_with('/');
}

/// What to open for a NIC that is named after this port or its device; empty for others.
std::string name_for(std::string_view nic, const VerbsPort& port) {
  std::string with_port = fmt::format("{}:{}", port.device, port.number);
  if (is_named(nic, with_port) || is_named(nic, fmt::format("{}.p{}", port.device, port.number))) return with_port;
  return is_named(nic, port.device) ? port.device : "";
}

/// "nic0, nic1, nic2, nic3 and 4 more".
std::string list(std::span<const std::string> names) {
  constexpr std::size_t shown = 4;
  if (names.size() <= shown) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} and {} more", fmt::join(names.first(shown), ", "), names.size() - shown);
}

}  // namespace

RailDevices match_rails(std::span<const std::string> nics, std::span<const VerbsPort> ports, std::uint8_t port) {
  RailDevices rails;
  if (nics.empty()) return {.names = {""}, .rail_of_nic = {}, .reason = ""};
  const auto is_usable = [&](const VerbsPort& one) { return one.is_active && (port == 0 || one.number == port); };
  std::vector<std::string> others;
  for (std::uint32_t place = 0; place < nics.size(); ++place) {
    std::string name;
    for (const VerbsPort& one : ports) {
      std::string found = name_for(nics[place], one);
      // A NIC that names its port has that one, whatever the port of the others.
      const bool is_open = found == one.device ? is_usable(one) : one.is_active;
      if (name.empty() && is_open) name = std::move(found);
    }
    const auto known = std::ranges::find(rails.names, name);
    rails.rail_of_nic.push_back(name.empty() ? place : static_cast<std::uint32_t>(known - rails.names.begin()));
    if (name.empty()) {
      others.push_back(nics[place]);
    } else if (known == rails.names.end()) {
      rails.names.push_back(std::move(name));
    }
  }
  if (!rails.names.empty()) {
    for (std::uint32_t& rail : rails.rail_of_nic) rail %= static_cast<std::uint32_t>(rails.names.size());
    rails.reason = "named as the topology's NICs";
    if (!others.empty()) rails.reason += fmt::format(", of which these have no active port here: {}", list(others));
    return rails;
  }
  rails.rail_of_nic.clear();
  if (const auto count = std::ranges::count_if(ports, is_usable); std::cmp_equal(count, nics.size())) {
    for (const VerbsPort& one : ports) {
      if (is_usable(one)) rails.names.push_back(fmt::format("{}:{}", one.device, one.number));
    }
    rails.reason = "in order the topology's NICs " + list(nics);
    return rails;
  }
  rails.names = {""};
  rails.reason = fmt::format("the first that is active, as no device here has the name of a NIC ({})", list(nics));
  return rails;
}

}  // namespace espalier::engine
