#include "cli/flags/address_file.h"

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

namespace espalier::cli {
namespace {

/// An entry's address; empty where it may be left out and is; nothing where it is no text.
std::optional<std::string> address_in(const nlohmann::json& entry, const char* key) {
  if (!entry.contains(key)) return std::string();
  if (!entry[key].is_string()) return std::nullopt;
  return entry[key].get<std::string>();
}

}  // namespace

Result<std::vector<engine::RouteAddress>> read_addresses(std::string_view text, const std::string& name) {
  const auto document = nlohmann::json::parse(text, nullptr, false);
  if (!document.is_array()) return fail(ErrorCode::invalid_input, name + ": not a JSON list of addresses");
  std::vector<engine::RouteAddress> routes;
  std::set<std::uint32_t> seen;
  for (const auto& entry : document) {
    const auto bad = [&](std::string_view why) {
      return fail(ErrorCode::invalid_input, fmt::format("{}: entry {}: {}", name, routes.size(), why),
                  R"(write {"route": 0, "bind": "10.0.0.1", "connect": "10.0.0.2"})");
    };
    if (!entry.is_object() || !entry.contains("route") || !entry["route"].is_number_unsigned()) {
      return bad("it has no route's number");
    }
    const auto route = entry["route"].get<std::uint64_t>();
    // The last number is that of no route.
    if (route >= std::numeric_limits<std::uint32_t>::max()) return bad(fmt::format("there is no route {}", route));
    auto bind = address_in(entry, "bind");
    auto connect = address_in(entry, "connect");
    if (!bind) return bad("'bind' is no address");
    if (!connect || connect->empty()) return bad("it has no address to connect to");
    if (!seen.insert(static_cast<std::uint32_t>(route)).second)
      return bad(fmt::format("route {} is there twice", route));
    routes.push_back({static_cast<std::uint32_t>(route), *std::move(bind), *std::move(connect)});
  }
  return routes;
}

}  // namespace espalier::cli
