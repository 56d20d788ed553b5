#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "topology/import/draft.h"

namespace espalier {

/// Where sniffing stops: licences and other comments may come first.
inline constexpr std::size_t sniffed_bytes = 8192;

/// A format of a file about a machine.
struct FormatReader {
  std::string_view name;
  std::string_view what;
  /// Whether a text that no other format claims before is in this one: by what its beginning must hold.
  bool (*sniffs)(std::string_view text);
  Result<Draft> (*read)(std::string_view text, const std::string& file);
};

/// In the order in which they are tried.
std::span<const FormatReader> format_readers();

/// By name, or by the look of the text when the name is empty.
/// Errors: invalid_input for an unknown name, and for a text that looks like none of them, naming the file.
Result<const FormatReader*> find_format(std::string_view name, std::string_view text, const std::string& file);

}  // namespace espalier
