#include "engine/doctor/pseudo_files.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace espalier::engine::doctor {

std::string read_pseudo_file(const std::string& path) {
  constexpr std::size_t longest = std::size_t{4} << 20U;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  char letter = 0;
  while (text.size() < longest && file.get(letter)) text += letter;
  return text;
}

std::string first_line_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string line;
  std::getline(file, line);
  return line;
}

std::optional<std::int64_t> number_in(const std::string& path) {
  const std::string line = first_line_of(path);
  std::int64_t number = 0;
  const auto result = std::from_chars(line.data(), line.data() + line.size(), number);
  if (result.ec != std::errc()) return std::nullopt;
  return number;
}

std::vector<std::string> entries_of(const std::string& folder, const std::string& prefix) {
  std::vector<std::string> names;
  std::error_code status;
  std::filesystem::directory_iterator at(folder, status);
  for (const std::filesystem::directory_iterator end; !status && at != end; at.increment(status)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with(prefix)) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

std::string value_after(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t colon = line.find(':', key.size());
    if (colon == std::string::npos || line.find_first_not_of(" \t", key.size()) != colon) continue;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? std::string() : line.substr(begin);
  }
  return {};
}

}  // namespace espalier::engine::doctor
