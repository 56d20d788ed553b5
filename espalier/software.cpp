#include "espalier/software.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "espalier/shipped.h"
#include "profile/read_profile.h"

namespace espalier {
namespace {

constexpr const char* profile_folder = "profiles";

/// The file and the launch of "nccl-hopper:one-process", "my/own.yaml" and "own.yaml:graph".
struct Named {
  ShippedFile file;
  std::string launch;
};

Named take_apart(const std::string& name) {
  const std::size_t colon = name.rfind(':');
  const std::string file = name.substr(0, colon);
  return {find_shipped(file, profile_folder), colon == std::string::npos ? std::string() : name.substr(colon + 1)};
}

Error unknown(const ShippedFile& file, const std::string& who) {
  return {ErrorCode::invalid_input, who + ": there is no profile or file '" + file.shown + "'",
          suggest_shipped(file.shown, profile_folder)};
}

}  // namespace

Result<forecast::Software> read_software(const std::string& name, const std::string& who) {
  const Named named = take_apart(name);
  std::error_code status;
  if (!std::filesystem::exists(named.file.path, status)) return tl::unexpected(unknown(named.file, who));
  profile::ProfileReading reading = profile::read_profile_file(named.file.path);
  if (!reading.profile) {
    const Diagnostic& first = reading.diagnostics.front();
    return fail(ErrorCode::invalid_input,
                fmt::format("{}:{}:{}: {}", named.file.shown, first.place.line, first.place.column, first.message),
                first.help);
  }
  forecast::Software chosen{reading.profile->name, *std::move(reading.profile), {}, {}};
  const auto launch = chosen.profile.launch(named.launch);
  if (!launch) return fail(launch.error().code, who + ": " + launch.error().message, launch.error().help);
  chosen.launch = *launch;
  if (!named.launch.empty()) chosen.shown += ":" + named.launch;
  return chosen;
}

}  // namespace espalier
