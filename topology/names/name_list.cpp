#include "topology/names/name_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>

#include "topology/names/letters.h"

namespace espalier {

namespace {

using Texts = std::vector<std::string>;

/// "box3.gpu07" as the words "box", ".gpu", "" and the numbers "3", "07".
struct NameParts {
  Texts words;
  Texts numbers;
};

NameParts split(const std::string& name) {
  NameParts parts{{""}, {}};
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (!is_digit(name[i])) {
      parts.words.back() += name[i];
      continue;
    }
    if (i == 0 || !is_digit(name[i - 1])) {
      parts.numbers.emplace_back();
      parts.words.emplace_back();
    }
    parts.numbers.back() += name[i];
  }
  return parts;
}

std::optional<std::int64_t> value_of(const std::string& number) {
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (status != std::errc() || end != number.data() + number.size()) return {};
  return value;
}

/// True when `next` is what a range counts to after `number`.
bool counts_on(const std::string& number, const std::string& next) {
  const auto first = value_of(number);
  const auto second = value_of(next);
  if (!first || !second || *second != *first + 1) return false;
  return number.size() == next.size() || (number.front() != '0' || number == "0");
}

/// "[0-3,8]", or the number itself; nothing when it would be a long list.
std::optional<std::string> bracket(const Texts& numbers) {
  constexpr std::size_t max_items = 4;
  if (numbers.size() == 1) return numbers.front();
  Texts items;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && counts_on(numbers[last], numbers[last + 1])) ++last;
    items.push_back(first == last ? numbers[first] : fmt::format("{}-{}", numbers[first], numbers[last]));
    first = last + 1;
  }
  if (items.size() > max_items) return {};
  return fmt::format("[{}]", fmt::join(items, ","));
}

/// Joins names that differ in one number only, from the last number to the first, so that what is left is few patterns.
std::vector<Texts> join_numbers(std::vector<Texts> names) {
  for (std::size_t position = names.front().size(); position-- > 0;) {
    std::map<Texts, std::size_t> index;
    std::vector<Texts> rests, values;
    for (const Texts& name : names) {
      Texts rest = name;
      rest[position].clear();
      const auto [place, is_new] = index.emplace(rest, rests.size());
      if (is_new) {
        rests.push_back(std::move(rest));
        values.emplace_back();
      }
      values[place->second].push_back(name[position]);
    }
    names.clear();
    for (std::size_t i = 0; i < rests.size(); ++i) {
      const auto joined = bracket(values[i]);
      for (const std::string& value : joined ? Texts{*joined} : values[i]) {
        names.push_back(rests[i]);
        names.back()[position] = value;
      }
    }
  }
  return names;
}

}  // namespace

std::string summarize_names(const Texts& names) {
  constexpr std::size_t max_terms = 5;
  if (names.empty()) return "none";
  std::map<Texts, std::size_t> index;
  std::vector<std::pair<Texts, std::vector<Texts>>> shapes;  // words, and the numbers of each name with these words
  for (const std::string& name : names) {
    NameParts parts = split(name);
    const auto [place, is_new] = index.emplace(parts.words, shapes.size());
    if (is_new) shapes.emplace_back(parts.words, std::vector<Texts>());
    shapes[place->second].second.push_back(std::move(parts.numbers));
  }
  Texts terms;
  for (const auto& [words, numbers] : shapes) {
    for (const Texts& term : join_numbers(numbers)) {
      std::string text = words.front();
      for (std::size_t i = 0; i < term.size(); ++i) text += term[i] + words[i + 1];
      terms.push_back(std::move(text));
    }
  }
  if (terms.size() <= max_terms) return fmt::format("{}", fmt::join(terms, ", "));
  return fmt::format("{} .. {} ({})", names.front(), names.back(), names.size());
}

}  // namespace espalier
