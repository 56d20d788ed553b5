#include "schedule/json/json_cursor.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

namespace espalier {
namespace {

constexpr std::size_t deepest_nesting = 64;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/// How many bytes the UTF-8 character at the beginning of a text has; 0 when it is none (RFC 3629: no surrogates, no
/// overlong forms, at most U+10FFFF).
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xC2) return 0;
  if (first < 0xE0) return continues(1) ? 2 : 0;
  if (first < 0xF0) {
    const unsigned low = first == 0xE0 ? 0xA0 : 0x80;
    const unsigned high = first == 0xED ? 0x9F : 0xBF;
    return byte(1) >= low && byte(1) <= high && continues(2) ? 3 : 0;
  }
  if (first > 0xF4) return 0;
  const unsigned low = first == 0xF0 ? 0x90 : 0x80;
  const unsigned high = first == 0xF4 ? 0x8F : 0xBF;
  return byte(1) >= low && byte(1) <= high && continues(2) && continues(3) ? 4 : 0;
}

void append_utf8(std::string& text, std::uint32_t code) {
  const auto append = [&](std::uint32_t byte) { text += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (code < 0x80) return append(code);
  if (code < 0x800) {
    append(0xC0U | (code >> 6U));
  } else {
    if (code < 0x10000) {
      append(0xE0U | (code >> 12U));
    } else {
      append(0xF0U | (code >> 18U));
      append(0x80U | ((code >> 12U) & 0x3FU));
    }
    append(0x80U | ((code >> 6U) & 0x3FU));
  }
  append(0x80U | (code & 0x3FU));
}

}  // namespace

bool JsonCursor::fail(std::size_t offset, std::string message, std::string help) {
  if (!failed()) failure_ = {offset, std::move(message), std::move(help)};
  offset_ = text_.size();
  return false;
}

char JsonCursor::peek() {
  while (offset_ < text_.size() && is_blank(text_[offset_])) ++offset_;
  return offset_ < text_.size() ? text_[offset_] : '\0';
}

std::size_t JsonCursor::next_offset() {
  peek();
  return offset_;
}

bool JsonCursor::fail_expected(const char* what) {
  const char found = peek();
  if (failed()) return false;
  if (offset_ >= text_.size()) return fail(offset_, fmt::format("the text ends where {} is expected", what));
  const auto describe = [&]() -> std::string {
    if (found == '"') return "a string";
    if (found == '[') return "a list";
    if (found == '{') return "an object";
    if (found == 't' || found == 'f') return "a truth value";
    if (found == 'n') return "null";
    if (found == '-' || is_digit(found)) return "a number";
    const auto byte = static_cast<unsigned char>(found);
    return byte > 0x20 && byte < 0x7F ? fmt::format("'{}'", found) : fmt::format("the byte 0x{:02x}", byte);
  };
  return fail(offset_, fmt::format("{} is expected here, not {}", what, describe()));
}

bool JsonCursor::expect(char wanted, const char* what) {
  if (peek() != wanted || offset_ >= text_.size()) return fail_expected(what);
  ++offset_;
  return true;
}

bool JsonCursor::begin_object() { return fresh_ = expect('{', "an object"); }
bool JsonCursor::begin_array() { return fresh_ = expect('[', "a list"); }

bool JsonCursor::enter_next(char close, const char* container) {
  if (failed()) return false;
  const char next = peek();
  if (next == close) {
    ++offset_;
    fresh_ = false;
    return false;
  }
  if (!fresh_) {
    if (next != ',') return fail_expected(close == '}' ? "',' or '}'" : "',' or ']'");
    ++offset_;
    if (peek() == close) return fail(offset_, fmt::format("the {} ends after a comma", container), "remove the comma");
  }
  fresh_ = false;
  return true;
}

bool JsonCursor::next_key(std::string_view& key) {
  if (!enter_next('}', "object")) return false;
  if (peek() != '"') return fail_expected("a key in quotes");
  key_offset_ = offset_;
  return read_string(key) && expect(':', "':'");
}

bool JsonCursor::next_element() { return enter_next(']', "list"); }

bool JsonCursor::read_string(std::string_view& value) {
  if (!expect('"', "a string")) return false;
  const std::size_t begin = offset_;
  unescaped_.clear();
  bool escaped = false;
  std::size_t copied = begin;
  while (offset_ < text_.size()) {
    const auto byte = static_cast<unsigned char>(text_[offset_]);
    if (byte == '"') {
      if (escaped) unescaped_ += text_.substr(copied, offset_ - copied);
      value = escaped ? std::string_view(unescaped_) : text_.substr(begin, offset_ - begin);
      ++offset_;
      return true;
    }
    if (byte == '\\') {
      unescaped_ += text_.substr(copied, offset_ - copied);
      escaped = true;
      if (!take_escape()) return false;
      copied = offset_;
    } else if (byte < 0x20) {
      return fail(offset_, "a string holds a control character", fmt::format("write \\u{:04x}", byte));
    } else if (byte < 0x80) {
      ++offset_;
    } else if (!take_utf8()) {
      return false;
    }
  }
  return fail(begin - 1, "the text ends within this string");
}

bool JsonCursor::take_utf8() {
  const std::size_t length = utf8_length(text_.substr(offset_));
  if (length == 0) return fail(offset_, "a string holds bytes that are not UTF-8");
  offset_ += length;
  return true;
}

bool JsonCursor::take_escape() {
  const std::size_t begin = offset_;
  const auto hex = [&](std::uint32_t& code) {
    const std::string_view digits = text_.substr(std::min(offset_, text_.size()), 4);
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    offset_ += 4;
    return digits.size() == 4 && status == std::errc() && end == digits.data() + 4;
  };
  constexpr std::string_view letters = "\"\\/bfnrt";
  constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
  const char letter = begin + 1 < text_.size() ? text_[begin + 1] : '\0';
  offset_ = begin + 2;
  if (const std::size_t known = letters.find(letter); known != std::string_view::npos && letter != '\0') {
    unescaped_ += meanings[known];
    return true;
  }
  std::uint32_t code = 0;
  if (letter != 'u' || !hex(code)) return fail(begin, "a string holds an escape that JSON does not have");
  if (code >= 0xD800 && code < 0xDC00) {
    std::uint32_t low = 0;
    const bool follows = text_.substr(std::min(offset_, text_.size()), 2) == "\\u";
    offset_ += 2;
    if (!follows || !hex(low) || low < 0xDC00 || low > 0xDFFF) return fail(begin, "half of a surrogate pair");
    code = 0x10000 + ((code - 0xD800) << 10U) + (low - 0xDC00);
  } else if (code >= 0xDC00 && code < 0xE000) {
    return fail(begin, "half of a surrogate pair");
  }
  append_utf8(unescaped_, code);
  return true;
}

bool JsonCursor::scan_number(std::string_view& number, bool& whole) {
  const char first = peek();
  if (first != '-' && !is_digit(first)) return fail_expected("a number");
  std::size_t end = offset_;
  const auto at = [&](std::size_t i) { return i < text_.size() ? text_[i] : '\0'; };
  const auto skip_digits = [&] {
    const std::size_t begin = end;
    while (is_digit(at(end))) ++end;
    return end > begin;
  };
  if (at(end) == '-') ++end;
  bool valid = true;
  if (at(end) == '0') {
    ++end;
    valid = !is_digit(at(end));
  } else {
    valid = skip_digits();
  }
  whole = true;
  if (valid && at(end) == '.') {
    whole = false;
    ++end;
    valid = skip_digits();
  }
  if (valid && (at(end) == 'e' || at(end) == 'E')) {
    whole = false;
    ++end;
    if (at(end) == '+' || at(end) == '-') ++end;
    valid = skip_digits();
  }
  if (!valid) return fail(offset_, "a number that JSON does not have");
  number = text_.substr(offset_, end - offset_);
  offset_ = end;
  return true;
}

bool JsonCursor::read_integer(std::int64_t& value) {
  const char first = peek();
  if (first != '-' && !is_digit(first)) return fail_expected("a whole number");
  const std::size_t begin = offset_;
  std::string_view number;
  bool whole = true;
  if (!scan_number(number, whole)) return false;
  if (!whole) return fail(begin, "a whole number is expected here", "write it without point and exponent");
  const auto [end, status] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (status != std::errc()) return fail(begin, "a number that does not fit 64 bits");
  return true;
}

bool JsonCursor::read_number(double& value) {
  const std::size_t begin = next_offset();
  std::string_view number;
  bool whole = true;
  if (!scan_number(number, whole)) return false;
  const auto [end, status] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (status != std::errc()) return fail(begin, "a number that is too large or too small");
  return true;
}

bool JsonCursor::take_word(std::string_view word) {
  peek();
  if (text_.substr(std::min(offset_, text_.size()), word.size()) != word) return false;
  offset_ += word.size();
  return true;
}

bool JsonCursor::take_null() { return !failed() && take_word("null"); }

bool JsonCursor::read_bool(bool& value) {
  if (failed()) return false;
  value = take_word("true");
  return value || take_word("false") || fail_expected("true or false");
}

bool JsonCursor::skip_scalar() {
  std::string_view ignored;
  bool whole = false;
  const char next = peek();
  if (next == '"') return read_string(ignored);
  if (next == '-' || is_digit(next)) return scan_number(ignored, whole);
  if (take_word("null") || take_word("true") || take_word("false")) return true;
  return fail_expected("a value");
}

bool JsonCursor::read_raw(std::string_view& text) {
  const std::size_t begin = next_offset();
  std::vector<bool> in_object;  // A level each; begins empty: one value, no brackets open.
  std::string_view key;
  do {
    if (!in_object.empty() && !(in_object.back() ? next_key(key) : next_element())) {
      if (failed()) return false;
      in_object.pop_back();
      continue;
    }
    const char next = peek();
    if (next == '{' || next == '[') {
      if (in_object.size() == deepest_nesting) {
        return fail(offset_, fmt::format("more than {} lists and objects inside each other", deepest_nesting));
      }
      in_object.push_back(next == '{');
      ++offset_;
      fresh_ = true;
    } else if (!skip_scalar()) {
      return false;
    }
  } while (!in_object.empty());
  text = text_.substr(begin, offset_ - begin);
  return true;
}

bool JsonCursor::at_end() {
  if (failed()) return false;
  peek();
  return offset_ >= text_.size() || fail(offset_, "something follows after the end of the document");
}

TextPosition position_of(std::string_view text, std::size_t offset) {
  TextPosition position;
  for (const char c : text.substr(0, offset)) {
    if (c == '\n') {
      ++position.line;
      position.column = 1;
    } else if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U) {
      ++position.column;
    }
  }
  return position;
}

}  // namespace espalier
