#include "engine/verbs/verbs_options.h"

#include <fmt/format.h>

#include <charconv>

namespace espalier::engine {

Result<VerbsPortName> parse_verbs_port(std::string_view text) {
  const std::size_t colon = text.find(':');
  VerbsPortName name{std::string(text.substr(0, colon)), 0};
  if (colon != std::string_view::npos) {
    const std::string_view port = text.substr(colon + 1);
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), name.port);
    if (error != std::errc() || end != port.data() + port.size() || name.port == 0) {
      return fail(ErrorCode::invalid_input, fmt::format("'{}': '{}' is no port between 1 and 255", text, port),
                  "such as mlx4_0:2 for the second port of mlx4_0");
    }
  }
  if (name.device.empty()) {
    return fail(ErrorCode::invalid_input, fmt::format("'{}' names no RDMA device", text),
                "such as mlx5_0, or mlx4_0:2 for the second port of mlx4_0");
  }
  return name;
}

}  // namespace espalier::engine
