#include "cli/jobs/chosen_profile.h"

#include <fmt/format.h>

#include "base/suggest.h"
#include "cli/flags/inputs.h"
#include "profile/read_profile.h"

namespace espalier::cli {
namespace {

constexpr const char* folder = "profiles";

/// The file and the launch of "nccl-hopper/one-process", "my/own.yaml" and "own.yaml:graph".
struct Named {
  ShippedFile file;
  std::string launch;
};

Named take_apart(const std::string& name) {
  const std::size_t colon = name.rfind(':');
  const std::string file = name.substr(0, colon);
  return {find_shipped(file, folder), colon == std::string::npos ? std::string() : name.substr(colon + 1)};
}

Error unknown(const ShippedFile& file) {
  std::vector<std::string> names = shipped_names(folder);
  names.emplace_back("ideal");
  std::vector<std::string_view> views(names.begin(), names.end());
  return {ErrorCode::invalid_input, "--profile: there is no profile or file '" + file.shown + "'",
          suggest(file.shown, views)};
}

}  // namespace

void ProfileFlags::add_to(CLI::App& command) {
  command
      .add_option("--profile", name,
                  "What software adds to the links: a YAML file or a shipped profile, with :LAUNCH for how calls are "
                  "started (docs/profiles.md)")
      ->option_text("NAME|FILE (ideal)");
}

Result<std::shared_ptr<const ChosenProfile>> ProfileFlags::resolve(const ConditionFlags& conditions) const {
  if (name.empty() || name == "ideal") return nullptr;
  for (const auto& [flag, value] : {std::pair{"--payload", &conditions.payload},
                                    {"--launch", &conditions.launch},
                                    {"--copy-engines", &conditions.copy_engines}}) {
    if (value->empty()) continue;
    return fail(ErrorCode::invalid_input, fmt::format("{} does not apply with a profile: it says that itself", flag),
                "leave it out, or write a profile of your own");
  }
  const Named named = take_apart(name);
  std::error_code status;
  if (!std::filesystem::exists(named.file.path, status)) return tl::unexpected(unknown(named.file));
  profile::ProfileReading reading = profile::read_profile_file(named.file.path);
  if (!reading.profile) {
    const Diagnostic& first = reading.diagnostics.front();
    return fail(ErrorCode::invalid_input,
                fmt::format("{}:{}:{}: {}", named.file.shown, first.place.line, first.place.column, first.message),
                first.help);
  }
  ChosenProfile chosen{reading.profile->name, *std::move(reading.profile), {}, {}};
  const auto launch = chosen.profile.launch(named.launch);
  if (!launch) return fail(launch.error().code, "--profile: " + launch.error().message, launch.error().help);
  chosen.launch = *launch;
  if (!named.launch.empty()) chosen.shown += ":" + named.launch;
  if (!conditions.protocol.empty()) {
    const auto protocol = sim::parse_protocol(conditions.protocol);
    if (!protocol) return fail(protocol.error().code, "--protocol: " + protocol.error().message, protocol.error().help);
    chosen.protocol = *protocol;
  }
  return std::make_shared<const ChosenProfile>(std::move(chosen));
}

}  // namespace espalier::cli
