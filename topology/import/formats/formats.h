#pragma once

// Tested by: tests/unit/topology/import/import_test.cpp

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "topology/import/draft.h"

namespace espalier {

/// Where sniffing stops, of printouts at first: licences and other comments may come first.
inline constexpr std::size_t sniffed_bytes = 8192;

/// A format of a file about a machine.
struct FormatReader {
  std::string_view name;
  std::string_view what;
  /// Whether a text that no other format claims before is in this one: by what its beginning must hold, or that of a
  /// later part of it, if it is a printout.
  bool (*sniffs)(std::string_view text);
  Result<Draft> (*read)(std::string_view text, const std::string& file);
  bool is_printout = false;  ///< Lines of a tool, whose last one may have been cut when it was copied.
};

/// In the order in which they are tried.
std::span<const FormatReader> format_readers();

/// By name, or by the look of the text when the name is empty: several where people pasted several printouts of
/// nvidia-smi into one file. What is no machine by its beginning may have a printout further down.
/// Errors: invalid_input for an unknown name, and for a text that looks like none of them, naming the file.
Result<std::vector<const FormatReader*>> find_formats(std::string_view name, std::string_view text,
                                                      const std::string& file);

}  // namespace espalier
