#include "sim/core/endpoints.h"

#include <array>
#include <charconv>
#include <string>

#include "base/parse_units.h"
#include "base/suggest.h"
#include "sim/limits.h"

namespace espalier::sim {
namespace {

constexpr std::array<std::string_view, 4> protocol_names = {"none", "simple", "ll", "ll128"};

}  // namespace

std::string_view to_string(Protocol protocol) { return protocol_names[static_cast<std::size_t>(protocol)]; }

Result<Protocol> parse_protocol(std::string_view name) {
  for (std::size_t i = 0; i < protocol_names.size(); ++i) {
    if (protocol_names[i] == name) return static_cast<Protocol>(i);
  }
  return fail(ErrorCode::invalid_input, "there is no protocol '" + std::string(name.substr(0, 60)) + "'",
              suggest(name, protocol_names));
}

Endpoints preset(Protocol protocol) {
  switch (protocol) {
    case Protocol::plain: break;
    case Protocol::simple: return {.payload_ppm = 1'000'000, .launch = {8'400'000}};
    case Protocol::ll: return {.payload_ppm = 500'000, .launch = {6'600'000}};
    case Protocol::ll128: return {.payload_ppm = 937'500, .launch = {14'000'000}};
  }
  return {};
}

Result<std::uint32_t> parse_copy_engines(std::string_view text) {
  std::uint32_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, status] = std::from_chars(text.data(), end, count);
  if (status == std::errc() && rest == end && count <= max_copy_engines) return count;
  return fail(
      ErrorCode::invalid_input,
      "'" + std::string(text.substr(0, 60)) + "' is not a whole number from 0 to " + std::to_string(max_copy_engines),
      "give how many chunks a rank sends at once; 0: as many as its links carry");
}

Result<std::int32_t> parse_payload(std::string_view text) {
  const auto part = parse_part(text);
  if (!part) return part;
  if (*part >= min_payload_ppm) return part;
  return fail(ErrorCode::invalid_input, "'" + std::string(text.substr(0, 60)) + "' of the wire is below 1 %",
              "write 0.5 for LL");
}

}  // namespace espalier::sim
