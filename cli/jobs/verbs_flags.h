#pragma once

// Tested by: tests/unit/cli/jobs/verbs_flags_test.cpp

#include <CLI/CLI.hpp>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "engine/verbs/verbs_options.h"

namespace espalier::cli {

/// --verbs-device and the others: which RDMA device a rank uses, and how its queue pairs are set.
struct VerbsFlags {
  std::string devices;  ///< A list with commas, of lists with plus signs.
  std::optional<std::uint32_t> port;
  std::optional<std::uint32_t> gid;
  std::optional<std::uint32_t> mtu;
  std::optional<std::uint32_t> traffic_class;
  std::optional<std::uint32_t> service_level;
  std::optional<std::uint32_t> retries;
  std::optional<std::uint32_t> timeout;

  void add_to(CLI::App& command);

  /// Errors: invalid_input, naming the flag.
  [[nodiscard]] Result<engine::VerbsOptions> resolve() const;
};

/// Its options for a Mode (modes.h).
inline constexpr std::array<std::string_view, 8> verbs_options = {
    "--verbs-device",        "--verbs-port",          "--verbs-gid",     "--verbs-mtu",
    "--verbs-traffic-class", "--verbs-service-level", "--verbs-retries", "--verbs-timeout"};

}  // namespace espalier::cli
