#pragma once

// Tested by: tests/unit/schedule/json/json_cursor_test.cpp

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace espalier {

/// Reads a JSON text (RFC 8259) value by value, without building a document: a schedule of millions of transfers needs
/// no memory beside itself. The caller says what it expects; the first thing that is otherwise is kept as the failure,
/// every later call returns false, and so a reader may check once at the end of a stretch.
///
///     if (cursor.begin_array()) while (cursor.next_element()) cursor.read_integer(value);
class JsonCursor {
 public:
  struct Failure {
    std::size_t offset = 0;  ///< Byte of the text that is to blame.
    std::string message;     ///< Empty while nothing failed.
    std::string help;
  };

  /// The text must outlive the cursor and what it returns.
  explicit JsonCursor(std::string_view text) : text_(text) {}

  [[nodiscard]] bool failed() const { return !failure_.message.empty(); }
  [[nodiscard]] const Failure& failure() const { return failure_; }
  /// Keeps the first failure; returns false.
  bool fail(std::size_t offset, std::string message, std::string help = {});

  /// Where the next value, key or bracket begins.
  [[nodiscard]] std::size_t next_offset();
  /// Goes on at another value of the same text.
  void seek(std::size_t offset) { offset_ = offset; }

  bool begin_object();
  /// True when the object has another member; its key is then read. The view lives until the next string is read.
  bool next_key(std::string_view& key);
  /// Where the key that was read last begins.
  [[nodiscard]] std::size_t key_offset() const { return key_offset_; }
  bool begin_array();
  /// True when the array has another element.
  bool next_element();

  bool read_string(std::string_view& value);
  /// Whole numbers of 64 bits without fraction or exponent.
  bool read_integer(std::int64_t& value);
  bool read_number(double& value);
  /// True and read when the next value is null.
  bool take_null();
  bool read_bool(bool& value);
  /// Any one value, checked in full, as the text that it is written with.
  bool read_raw(std::string_view& text);
  /// Only blanks may be left.
  bool at_end();

 private:
  /// The next character that is not blank, not yet taken; '\0' at the end.
  char peek();
  bool expect(char wanted, const char* what);
  bool fail_expected(const char* what);
  bool enter_next(char close, const char* container);
  bool take_word(std::string_view word);
  bool take_escape();
  bool take_utf8();
  bool scan_number(std::string_view& number, bool& whole);
  bool skip_scalar();

  std::string_view text_;
  std::size_t offset_ = 0;
  std::size_t key_offset_ = 0;
  bool fresh_ = false;  ///< Just behind an opening bracket.
  std::string unescaped_;
  Failure failure_;
};

/// The line and column of a byte, both from 1; columns count characters.
struct TextPosition {
  std::size_t line = 1;
  std::size_t column = 1;
};
TextPosition position_of(std::string_view text, std::size_t offset);

}  // namespace espalier
