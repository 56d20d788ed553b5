#pragma once

// Tested by: tests/unit/topology/import/import_test.cpp

#include <optional>
#include <string_view>

namespace espalier {

/// A kind of file of another tool that some verb reads, or none does.
struct KnownFile {
  std::string_view what;     ///< "a schedule of MSCCL": after "this is".
  std::string_view help;     ///< What to do with it.
  bool is_schedule = false;  ///< `espalier import` reads it.
  bool is_run = false;       ///< `espalier compare` reads it.
};

/// What a text is, by what its beginning must hold; nothing for files of machines and for what is not known.
std::optional<KnownFile> recognise_file(std::string_view text);

}  // namespace espalier
