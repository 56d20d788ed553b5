#include "cli/flags/missing_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/suggest.h"

namespace espalier::cli {
namespace {

constexpr std::size_t max_files = 1000;  // More are not looked at: it is only a hint.

std::vector<std::string> files_beside(const std::filesystem::path& path) {
  std::vector<std::string> names;
  std::error_code status;
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  for (auto entry = std::filesystem::directory_iterator(folder, status); !status && entry != end(entry);
       entry.increment(status)) {
    if (names.size() == max_files) break;
    if (!entry->is_directory(status)) names.push_back(entry->path().filename());
  }
  std::ranges::sort(names);
  return names;
}

std::optional<std::string> nearest_of(const std::string& name, const std::vector<std::string>& known) {
  const std::vector<std::string_view> views(known.begin(), known.end());
  const auto near = find_nearest(name, views);
  return near ? std::optional<std::string>(*near) : std::nullopt;
}

}  // namespace

Error missing_file(const std::string& argument, std::span<const std::string> shipped) {
  const std::filesystem::path path(argument);
  const std::string name = path.filename();
  const std::vector<std::string> files = files_beside(path);
  std::optional<std::string> meant;
  for (const char* const ending : {".yaml", ".yml", ".json"}) {
    if (!meant && std::ranges::binary_search(files, name + ending)) meant = name + ending;
  }
  std::vector<std::string> known = files;
  if (!path.has_parent_path()) known.insert(known.end(), shipped.begin(), shipped.end());
  if (!meant) meant = nearest_of(name, known);
  std::string help =
      shipped.empty() ? "check the path" : "check the path, or name a shipped machine (espalier topo show --list)";
  if (meant) help = fmt::format("did you mean '{}'?", (path.parent_path() / *meant).string());
  return {ErrorCode::unavailable, fmt::format("cannot read {}: there is no such file", argument), help};
}

}  // namespace espalier::cli
