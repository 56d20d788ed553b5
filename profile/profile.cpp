#include "profile/profile.h"

#include <array>
#include <charconv>

#include "base/suggest.h"

namespace espalier::profile {

std::string_view to_string(planners::Paths paths) { return paths == planners::Paths::any ? "any" : "software"; }

Result<planners::Paths> parse_paths(std::string_view text) {
  for (const planners::Paths paths : {planners::Paths::any, planners::Paths::software}) {
    if (to_string(paths) == text) return paths;
  }
  return fail(ErrorCode::invalid_input, "there are no paths '" + std::string(text.substr(0, 60)) + "'",
              "write software, for those that NCCL takes, or any");
}

std::string_view to_string(Shape shape) {
  switch (shape) {
    case Shape::ring: return "ring";
    case Shape::tree: return "tree";
    case Shape::nvls: return "nvls";
    case Shape::nvls_tree: return "nvls_tree";
    case Shape::collnet_direct: return "collnet_direct";
    case Shape::collnet_chain: return "collnet_chain";
    case Shape::pat: return "pat";
    case Shape::pxn: return "pxn";
    case Shape::p2p: return "p2p";
  }
  return "";
}

std::string_view to_string(Generation generation) {
  switch (generation) {
    case Generation::volta: return "volta";
    case Generation::ampere: return "ampere";
    case Generation::hopper: return "hopper";
    case Generation::blackwell: return "blackwell";
  }
  return "";
}

Result<std::uint32_t> version_number(std::string_view text) {
  constexpr std::uint32_t most = 999, per_major = 1000;
  std::array<std::uint32_t, 2> numbers{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::uint32_t& number : numbers) {
    const auto [rest, status] = std::from_chars(at, end, number);
    const bool is_last = &number == &numbers[1];
    const bool goes_on = rest != end && *rest == '.';
    if (status != std::errc() || number > most || (is_last ? rest != end && !goes_on : !goes_on)) {
      return fail(ErrorCode::invalid_input, "'" + std::string(text.substr(0, 60)) + "' is no version",
                  "write one such as 2.27");
    }
    at = rest + (rest == end ? 0 : 1);
  }
  return numbers[0] * per_major + numbers[1];
}

std::string version_text(std::uint32_t number) {
  constexpr std::uint32_t per_major = 1000;
  return std::to_string(number / per_major) + "." + std::to_string(number % per_major);
}

Result<void> Profile::restrict_to(std::uint32_t version) {
  std::erase_if(ways, [&](const auto& way) { return way.second.since > version; });
  if (tuner) tuner->version = version;
  if (!ways.empty()) return {};
  return fail(ErrorCode::invalid_input, "profile " + name + " has nothing that old", "name a later version");
}

Result<Launch> Profile::launch(std::string_view launch_name) const {
  if (launch_name.empty()) return launches.front().second;
  std::vector<std::string_view> names;
  for (const auto& [known, launch] : launches) {
    if (known == launch_name) return launch;
    names.push_back(known);
  }
  return fail(ErrorCode::invalid_input,
              "profile " + name + " has no launch '" + std::string(launch_name.substr(0, 60)) + "'",
              suggest(launch_name, names));
}

}  // namespace espalier::profile
