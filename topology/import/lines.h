#pragma once

// Tested by: tests/unit/topology/import/import_test.cpp

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace espalier {

/// A word of a line, and its column from 1.
struct Word {
  std::string_view text;
  int column = 1;
};

/// One line of a text, without its newline, with its number from 1.
struct TextLine {
  std::string_view text;
  int number = 1;

  /// Its words between blanks and tabs.
  [[nodiscard]] std::vector<Word> words() const;
};

/// The lines of a text; a carriage return before the newline is dropped.
std::vector<TextLine> lines_of(std::string_view text);

/// The text with blanks where web pages have those that do not break (U+00A0).
std::string with_plain_blanks(std::string_view text);

/// The text without the escape sequences that underline and colour it in terminals.
std::string without_escapes(std::string_view text);

/// The line behind what mpirun puts there: "[1,0]<stdout>:".
std::string_view without_stream_tag(std::string_view line);

/// The line behind the label of its process that a launcher put there without a blank: "[1,0]<stdout>:", "[0]",
/// "[rank0]:".
std::string_view without_label(std::string_view line);

/// A decimal number at the beginning of a word, with a point or, as some locales have it, a comma.
std::optional<double> decimal_number(std::string_view word);

/// "gpu0", "gpu0 and gpu1", "gpu0, gpu1, gpu2 and 5 more".
std::string listed(const std::vector<std::string>& names);

/// An error at a place of a file: "file:line:column: ...".
tl::unexpected<Error> fail_at(const std::string& file, int line, int column, const std::string& message,
                              const std::string& help);

/// A whole number of at most 18 digits; nothing for any other text.
std::optional<std::int64_t> whole_number(std::string_view digits);

/// "gpu12" behind "gpu" as 12; nothing when the text is anything else.
std::optional<std::int64_t> number_behind(std::string_view text, std::string_view prefix);

/// The text for a message: short, and printable as far as quotes go.
std::string cited(std::string_view text);

}  // namespace espalier
