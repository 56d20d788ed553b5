#include "compare/read/others/line_labels.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "compare/read/nccl_tests_line.h"

namespace espalier::compare {
namespace {

constexpr std::array<std::string_view, 7> title_parts = {
    "# OSU ",    "#bytes", "# Benchmarking", "[P2P (Peer-to-Peer)", "Unidirectional P2P=", "nvbandwidth Version",
    "memcpy CE "};

/// A word with one 0 for each number in it, by which labels of one kind are alike.
std::string shape_of(std::string_view word) {
  std::string shape;
  for (const char c : word) {
    const bool is_digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!is_digit || shape.empty() || shape.back() != '0') shape += is_digit ? '0' : c;
  }
  return shape;
}

std::vector<std::string> shapes_of(const std::vector<std::string_view>& words) {
  std::vector<std::string> shapes;
  std::ranges::transform(words, std::back_inserter(shapes), shape_of);
  return shapes;
}

/// The words before the first title, up to as many as labels have; none where it begins its line.
std::vector<std::string> label_in(std::string_view text) {
  constexpr std::size_t max_words = 8;
  for (const std::string_view part : title_parts) {
    const std::size_t at = text.find(part);
    if (at == std::string_view::npos || at == 0) continue;
    const std::size_t begin = text.rfind('\n', at) + 1;  // npos + 1 is 0.
    const std::string_view before = text.substr(begin, at - begin);
    const auto words = nccl_tests::split_words(before);
    const bool is_apart = !before.empty() && (before.back() == ' ' || before.back() == '\t');
    if (is_apart && !words.empty() && words.size() <= max_words) return shapes_of(words);
  }
  return {};
}

/// The line behind such a label.
std::string_view behind_label(std::string_view line, const std::vector<std::string>& label) {
  auto words = nccl_tests::split_words(line);
  if (words.size() < label.size()) return line;
  const std::string_view last = words[label.size() - 1];
  words.resize(label.size());
  if (shapes_of(words) != label) return line;
  return line.substr(static_cast<std::size_t>(last.data() - line.data()) + last.size());
}

}  // namespace

std::string without_labels(std::string_view text) {
  const std::vector<std::string> label = label_in(text);
  if (label.empty()) return std::string(text);
  std::string rest;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    rest += behind_label(text.substr(0, end), label);
    if (end < text.size()) rest += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return rest;
}

}  // namespace espalier::compare
