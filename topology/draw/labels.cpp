#include "topology/draw/labels.h"

#include <fmt/format.h>

#include <algorithm>

#include "topology/names/name_list.h"

namespace espalier {

std::string own_name(const std::string& name, const std::string& scope) {
  return !scope.empty() && name.starts_with(scope + ".") ? name.substr(scope.size() + 1) : name;
}

std::string node_label(const std::vector<std::string>& names) {
  constexpr std::size_t longest = 18;
  if (names.size() > 1) {
    const std::string all = summarize_names(names);
    if (all.size() <= longest) return all;
  }
  const std::string times = names.size() > 1 ? fmt::format(" x{}", names.size()) : "";
  std::string name = names.front();
  const std::size_t room = longest - times.size();
  if (name.size() > room) name = name.substr(0, (room - 2) / 2) + ".." + name.substr(name.size() - (room - 1) / 2);
  return name + times;
}

double node_width(const std::string& label) {
  constexpr double letter_width = 6.9, least = 44, room = 14;
  return std::max(least, letter_width * static_cast<double>(label.size()) + room);
}

}  // namespace espalier
