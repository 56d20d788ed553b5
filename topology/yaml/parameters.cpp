#include "topology/yaml/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "base/suggest.h"
#include "topology/names/letters.h"
#include "topology/yaml/read_codes.h"
#include "topology/yaml/read_limits.h"

namespace espalier {
namespace {

bool is_letter(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || letter == '_';
}

std::string_view name_at_front(std::string_view text) {
  if (text.empty() || !is_letter(text.front())) return {};
  const auto* const end = std::ranges::find_if_not(text, [](char c) { return is_letter(c) || is_digit(c); });
  return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

tl::expected<std::string_view, Problem> look_up(std::string_view name, const Environment& environment) {
  if (const std::string* found = environment.find(name)) return *found;
  const std::vector<std::string_view> names = environment.names();
  return tl::unexpected(
      Problem{read_codes::unknown_parameter, fmt::format("there is no parameter '{}'", name.substr(0, 60)),
              names.empty() ? "add it under 'parameters:', or write '$$' for a dollar sign" : suggest(name, names)});
}

/// Evaluates one expression by recursive descent; the first problem ends it.
class Expression {
 public:
  Expression(std::string_view text, const Environment& environment)
      : whole_(text), rest_(text), environment_(environment) {}

  tl::expected<std::int64_t, Problem> evaluate() {
    const std::int64_t value = sum(0);
    skip_blanks();
    if (!rest_.empty()) refuse(fmt::format("'{}' is not expected here", rest_.substr(0, 20)));
    if (failed_) return tl::unexpected(problem_);
    return value;
  }

 private:
  std::int64_t sum(int depth) {
    std::int64_t value = product(depth);
    while (!failed_) {
      if (take('+')) {
        const std::int64_t right = product(depth);
        if (__builtin_add_overflow(value, right, &value)) refuse("the result is too large");
      } else if (take('-')) {
        const std::int64_t right = product(depth);
        if (__builtin_sub_overflow(value, right, &value)) refuse("the result is too large");
      } else {
        break;
      }
    }
    return value;
  }

  std::int64_t product(int depth) {
    std::int64_t value = factor(depth);
    while (!failed_) {
      if (take('*')) {
        const std::int64_t right = factor(depth);
        if (__builtin_mul_overflow(value, right, &value)) refuse("the result is too large");
      } else if (take('/')) {
        value = divided(value, factor(depth), false);
      } else if (take('%')) {
        value = divided(value, factor(depth), true);
      } else {
        break;
      }
    }
    return value;
  }

  std::int64_t divided(std::int64_t value, std::int64_t divisor, bool remainder) {
    if (divisor <= 0 || value < 0) {
      refuse("division needs a number from zero up and a divisor above zero");
      return 0;
    }
    return remainder ? value % divisor : value / divisor;
  }

  std::int64_t factor(int depth) {
    constexpr int deepest = 32;
    if (depth > deepest) refuse("there are too many parentheses");
    if (failed_) return 0;
    if (take('(')) {
      const std::int64_t value = sum(depth + 1);
      if (!take(')')) refuse("a ')' is missing");
      return value;
    }
    skip_blanks();
    if (const std::string_view name = name_at_front(rest_); !name.empty()) {
      rest_.remove_prefix(name.size());
      const auto text = look_up(name, environment_);
      if (!text) {
        problem_ = text.error();
        failed_ = true;
        return 0;
      }
      return number(*text, fmt::format("the parameter '{}' is '{}', not a whole number", name, text->substr(0, 40)));
    }
    const auto* const end = std::ranges::find_if_not(rest_, is_digit);
    const std::string_view digits = rest_.substr(0, static_cast<std::size_t>(end - rest_.begin()));
    rest_.remove_prefix(digits.size());
    return number(digits, digits.empty() ? "a number or a parameter is missing" : "a number is too large");
  }

  std::int64_t number(std::string_view text, std::string why_not) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) refuse(std::move(why_not));
    return value;
  }

  void skip_blanks() {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
  }
  bool take(char wanted) {
    skip_blanks();
    if (!rest_.starts_with(wanted)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void refuse(std::string why) {
    if (failed_) return;
    failed_ = true;
    problem_ = {read_codes::bad_expression, fmt::format("cannot compute '${{{}}}': {}", whole_.substr(0, 60), why),
                "write whole numbers and parameters with + - * / % ( ), such as '${boxes * 8}'"};
  }

  std::string_view whole_;
  std::string_view rest_;
  const Environment& environment_;
  bool failed_ = false;
  Problem problem_;
};

}  // namespace

const std::string* Environment::find(std::string_view name) const {
  for (const Environment* place = this; place != nullptr; place = place->outer_) {
    for (const auto& [own, text] : place->values_) {
      if (own == name) return &text;
    }
  }
  return nullptr;
}

bool Environment::has_own(std::string_view name) const {
  return std::ranges::any_of(values_, [&](const auto& value) { return value.first == name; });
}

std::vector<std::string_view> Environment::names() const {
  std::vector<std::string_view> names;
  for (const Environment* place = this; place != nullptr; place = place->outer_) {
    for (const auto& [own, text] : place->values_) names.push_back(own);
  }
  return names;
}

bool is_parameter_name(std::string_view text) { return !text.empty() && name_at_front(text).size() == text.size(); }

tl::expected<std::string, Problem> substitute(std::string_view text, const Environment& environment) {
  std::string result;
  while (true) {
    const std::size_t dollar = text.find('$');
    result += text.substr(0, dollar);
    if (dollar == std::string_view::npos) return result;
    text.remove_prefix(dollar + 1);
    if (text.starts_with('$')) {
      result += '$';
      text.remove_prefix(1);
    } else if (text.starts_with('{')) {
      const std::size_t end = text.find('}');
      if (end == std::string_view::npos) {
        return tl::unexpected(
            Problem{read_codes::bad_expression, "a '}' is missing after '${'", "write '${name + 1}'"});
      }
      const auto value = Expression(text.substr(1, end - 1), environment).evaluate();
      if (!value) return tl::unexpected(value.error());
      result += std::to_string(*value);
      text.remove_prefix(end + 1);
    } else if (const std::string_view name = name_at_front(text); !name.empty()) {
      const auto value = look_up(name, environment);
      if (!value) return tl::unexpected(value.error());
      result += *value;
      text.remove_prefix(name.size());
    } else {
      return tl::unexpected(Problem{read_codes::unknown_parameter, "a '$' stands without a parameter's name",
                                    "write '$$' for a dollar sign"});
    }
    if (result.size() > read_limits::substituted_bytes) {
      return tl::unexpected(Problem{read_codes::bad_expression, "the text is too long with its parameters filled in",
                                    "shorten the parameters"});
    }
  }
}

}  // namespace espalier
