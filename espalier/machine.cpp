#include "espalier/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "espalier/shipped.h"

namespace espalier {
namespace {

Error missing_machine(const std::string& name) {
  return {ErrorCode::unavailable, fmt::format("there is no machine or file '{}'", name), suggest_shipped(name, "")};
}

}  // namespace

void find_profile_beside(TopologyReading& reading, const std::string& folder) {
  const bool is_file =
      reading.profile.find('/') != std::string::npos || reading.profile.find(".y") != std::string::npos;
  if (is_file && reading.profile.front() != '/') {
    reading.profile = (std::filesystem::path(folder) / reading.profile).string();
  }
}

Result<Machine> read_machine(const std::string& name_or_file, const TopologyParameters& parameters) {
  const ShippedFile file = find_shipped(name_or_file, "");
  std::error_code status;
  if (!std::filesystem::exists(file.path, status)) return tl::unexpected(missing_machine(name_or_file));
  TopologyReading reading = read_topology_file(file.path, parameters);
  if (!reading.topology) {
    const auto first = std::ranges::find(reading.diagnostics, Severity::error, &Diagnostic::severity);
    const Diagnostic& fault = first != reading.diagnostics.end() ? *first : reading.diagnostics.front();
    return fail(ErrorCode::invalid_input,
                fmt::format("{}:{}:{}: {}", file.shown, fault.place.line, fault.place.column, fault.message),
                fault.help);
  }
  const std::string folder = std::filesystem::path(file.path).parent_path().string();
  find_profile_beside(reading, folder.empty() ? "." : folder);
  return Machine{*std::move(reading.topology), std::move(reading.profile)};
}

}  // namespace espalier
