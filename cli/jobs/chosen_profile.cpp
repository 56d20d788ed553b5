#include "cli/jobs/chosen_profile.h"

#include <fmt/format.h>

#include "espalier/software.h"

namespace espalier::cli {

void ProfileFlags::add_version_to(CLI::App& command) {
  command
      .add_option(
          "--nccl-version", version,
          "Under a profile: with that version's tuner, and without the algorithms that came later, such as 2.20")
      ->option_text("VERSION");
  command
      .add_option("--profile", name,
                  "What software adds to the links: a YAML file or a shipped profile, with :LAUNCH for how calls are "
                  "started (docs/profiles.md)")
      ->option_text("NAME|FILE (the machine's)");
}

void ProfileFlags::add_to(CLI::App& command) {
  add_version_to(command);
  command
      .add_option(
          "--paths", paths,
          "Under a profile: software, the paths that NCCL takes (NVLink inside a box where there is any, no way "
          "through a NIC), or any (docs/profiles.md)")
      ->option_text("software|any (the profile's)");
}

Result<std::shared_ptr<const forecast::Software>> ProfileFlags::resolve(const ConditionFlags& conditions,
                                                                        const std::string& of_machine) const {
  const std::string& wanted = name.empty() ? of_machine : name;
  if (wanted.empty() || wanted == "ideal") {
    if (version.empty() && paths.empty()) return nullptr;
    const std::string flag = version.empty() ? "--paths" : "--nccl-version";
    return fail(ErrorCode::invalid_input, flag + " is of a profile", "such as --profile nccl-hopper");
  }
  for (const auto& [flag, value] : {std::pair{"--payload", &conditions.payload},
                                    {"--launch", &conditions.launch},
                                    {"--copy-engines", &conditions.copy_engines},
                                    {"--per-message", &conditions.per_message}}) {
    if (value->empty()) continue;
    if (name.empty()) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("{} does not apply with {}, the machine's profile: it says that itself", flag, wanted),
                  "add --profile ideal to count links alone");
    }
    return fail(ErrorCode::invalid_input, fmt::format("{} does not apply with a profile: it says that itself", flag),
                "leave it out, or write a profile of your own");
  }
  auto chosen = read_software(wanted, name.empty() ? "the machine's profile" : "--profile");
  if (!chosen) return tl::unexpected(chosen.error());
  if (!version.empty()) {
    const auto number = profile::version_number(version);
    if (!number) return fail(number.error().code, "--nccl-version: " + number.error().message, number.error().help);
    const auto restricted = chosen->profile.restrict_to(*number);
    if (!restricted) {
      return fail(restricted.error().code, "--nccl-version: " + restricted.error().message, restricted.error().help);
    }
    chosen->shown += " as of " + version;
  }
  if (!paths.empty()) {
    const auto meant = profile::parse_paths(paths);
    if (!meant) return fail(meant.error().code, "--paths: " + meant.error().message, meant.error().help);
    if (*meant != chosen->profile.paths) chosen->shown += fmt::format(" with {} paths", profile::to_string(*meant));
    chosen->profile.paths = *meant;
  }
  if (!conditions.protocol.empty()) {
    const auto protocol = sim::parse_protocol(conditions.protocol);
    if (!protocol) return fail(protocol.error().code, "--protocol: " + protocol.error().message, protocol.error().help);
    chosen->protocol = *protocol;
  }
  return std::make_shared<const forecast::Software>(*std::move(chosen));
}

}  // namespace espalier::cli
