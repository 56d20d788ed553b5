#pragma once

// Tested by: tests/unit/schedule/json/schedule_json_test.cpp

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/suggest.h"
#include "schedule/json/json_cursor.h"

namespace espalier {

/// A text from a file for a message: at most 60 characters, without control characters.
std::string shown(std::string_view text);

/// A JsonCursor over a plan: objects with known keys, numbers with limits, messages that say which item they are about.
class PlanCursor {
 public:
  PlanCursor(std::string_view text, std::string name) : json(text), text_(text), name_(std::move(name)) {}

  JsonCursor json;

  /// Messages from here on begin with "transfer 12: ".
  void set_item(std::string_view kind, std::size_t index) {
    item_kind_ = kind;
    item_index_ = index;
  }
  void clear_item() {
    if (!json.failed()) item_kind_ = {};
  }

  /// The failure with its place. Requires: json.failed().
  [[nodiscard]] Error error() const;
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::string_view text() const { return text_; }
  [[nodiscard]] TextPosition position(std::size_t offset) const { return position_of(text_, offset); }
  /// What kind of error the failure is; invalid_input unless something says otherwise.
  ErrorCode code = ErrorCode::invalid_input;

  /// A whole number from low to high; `what` names it in messages ("'src'").
  bool read_ranged(std::string_view what, std::int64_t low, std::int64_t high, std::int64_t& value);

  /// Reads an object of known keys: calls read_member(index of the key) for each member. `required` has a bit per key.
  template <std::size_t key_count, class ReadMember>
  bool read_object(const std::array<std::string_view, key_count>& keys, std::uint32_t required,
                   const ReadMember& read_member) {
    const std::size_t begin = json.next_offset();
    if (!json.begin_object()) return false;
    std::uint32_t seen = 0;
    std::size_t guess = 0;  // Members mostly come in the order of `keys`.
    std::string_view key;
    while (json.next_key(key)) {
      std::size_t index = guess;
      if (index >= key_count || keys[index] != key) {
        for (index = 0; index < key_count && keys[index] != key; ++index) {
        }
      }
      if (index == key_count) {
        return json.fail(json.key_offset(), "there is no key '" + shown(key) + "'", suggest(key, keys));
      }
      if ((seen >> index & 1U) != 0) {
        return json.fail(json.key_offset(), "the key '" + std::string(key) + "' is given twice", "remove one of them");
      }
      seen |= 1U << index;
      guess = index + 1;
      if (!read_member(index)) return false;
    }
    for (std::size_t index = 0; index < key_count && !json.failed(); ++index) {
      if ((required & ~seen) >> index & 1U) {
        return json.fail(begin, "the key '" + std::string(keys[index]) + "' is missing", "add it");
      }
    }
    return !json.failed();
  }

 private:
  std::string_view text_;
  std::string name_;
  std::string_view item_kind_;
  std::size_t item_index_ = 0;
};

}  // namespace espalier
