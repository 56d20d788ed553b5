#include "espalier/shipped.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/suggest.h"

namespace espalier {
namespace {

bool has_configs(const std::filesystem::path& folder) {
  std::error_code status;
  return std::filesystem::exists(folder / "espalier.schema.json", status);
}

}  // namespace

std::string shipped_folder() {
  // What was told counts, also where nothing is there: then names are not found, rather than others' files taken.
  if (const char* const told = std::getenv("ESPALIER_CONFIGS"); told != nullptr && *told != '\0') return told;
  std::error_code status;
  const auto binary = std::filesystem::read_symlink("/proc/self/exe", status).parent_path();
  for (const char* relative : {"../share/espalier/configs", "../../configs", "../configs"}) {
    const auto folder = (binary / relative).lexically_normal();
    if (has_configs(folder)) return folder.string();
  }
  return has_configs(ESPALIER_INSTALLED_CONFIGS) ? ESPALIER_INSTALLED_CONFIGS : "";
}

ShippedFile find_shipped(const std::string& argument, const std::string& folder) {
  std::error_code status;
  if (argument.find('/') != std::string::npos || std::filesystem::exists(argument, status)) return {argument, argument};
  const auto shipped = std::filesystem::path(shipped_folder()) / folder / (argument + ".yaml");
  if (!std::filesystem::exists(shipped, status)) return {argument, argument};
  return {shipped.string(), (std::filesystem::path("configs") / folder / (argument + ".yaml")).string()};
}

std::string shipped_file(const std::string& name) { return (std::filesystem::path(shipped_folder()) / name).string(); }

std::vector<std::string> shipped_names(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code status;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(shipped_folder()) / folder, status)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem());
  }
  std::ranges::sort(names);
  return names;
}

std::string suggest_shipped(const std::string& written, const std::string& folder) {
  std::vector<std::string> names = shipped_names(folder);
  if (names.empty()) return "give a file, or set ESPALIER_CONFIGS to the folder PREFIX/share/espalier/configs";
  if (folder == "profiles") names.emplace_back("ideal");
  const std::vector<std::string_view> views(names.begin(), names.end());
  return suggest(written, views);
}

}  // namespace espalier
