#include "engine/launch/endpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace espalier::engine::launch {

Result<Endpoint> parse_endpoint(std::string_view text) {
  const auto wrong = [text] {
    return fail(ErrorCode::invalid_input, fmt::format("'{}' is no HOST:PORT", text),
                "such as node0:29510 or [::1]:29510");
  };
  Endpoint endpoint;
  std::string_view rest;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return wrong();
    endpoint.host = text.substr(1, end - 1);
    rest = text.substr(end + 1);
  } else if (std::ranges::count(text, ':') > 1) {
    endpoint.host = text;  // A bare IPv6 address.
  } else {
    const std::size_t colon = std::min(text.find(':'), text.size());
    endpoint.host = text.substr(0, colon);
    rest = text.substr(colon);
  }
  const bool has_blanks = endpoint.host.find_first_of(" \t\n/") != std::string::npos;
  if (endpoint.host.empty() || has_blanks) return wrong();
  if (rest.empty()) return endpoint;
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), port);
  if (rest[0] != ':' || error != std::errc() || end != rest.data() + rest.size() || port == 0) return wrong();
  endpoint.port = port;
  return endpoint;
}

std::string first_host(std::string_view node_list) {
  std::string host;
  for (std::size_t i = 0; i < node_list.size() && node_list[i] != ','; ++i) {
    if (node_list[i] != '[') {
      host += node_list[i];
      continue;
    }
    // The first of the range: up to its end, with its zeros; the rest up to the bracket does not matter.
    const std::size_t close = std::min(node_list.find(']', i), node_list.size());
    const std::string_view range = node_list.substr(i + 1, close - i - 1);
    host += range.substr(0, range.find_first_of(",-"));
    i = close;
  }
  return host;
}

}  // namespace espalier::engine::launch
