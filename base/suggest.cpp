#include "base/suggest.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace espalier {
namespace {

char lower(char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter; }

/// The least number of insertions, deletions and substitutions between two words, capitals set aside.
std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t substituted = diagonal + (lower(from[i]) == lower(to[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j + 1] + 1, row[j] + 1, substituted});
    }
  }
  return row.back();
}

}  // namespace

std::optional<std::string_view> find_nearest(std::string_view written, std::span<const std::string_view> known) {
  constexpr std::size_t longest_word = 64;  // Longer words are not typing slips, and the distance costs length squared.
  if (written.size() > longest_word) return std::nullopt;
  std::optional<std::string_view> nearest;
  // One slip in three letters; two in words of four or five. A single letter resembles nothing.
  std::size_t nearest_distance =
      std::max<std::size_t>(written.size() / 3, std::min<std::size_t>(written.size() / 2, 2)) + 1;
  for (const std::string_view candidate : known) {
    const std::size_t distance = edit_distance(written, candidate);
    if (distance >= nearest_distance) continue;
    nearest = candidate;
    nearest_distance = distance;
  }
  return nearest;
}

std::string suggest(std::string_view written, std::span<const std::string_view> known) {
  if (const auto nearest = find_nearest(written, known)) return "did you mean '" + std::string(*nearest) + "'?";
  std::string list = "known are ";
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (i > 0) list += ", ";
    list += known[i];
  }
  return list;
}

}  // namespace espalier
