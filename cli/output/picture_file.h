#pragma once

// Tested by: tests/options/options_test.py

#include <CLI/CLI.hpp>
#include <string>

#include "base/result.h"
#include "cli/output/console.h"

namespace espalier::cli {

enum class PictureForm { svg, png };

/// Writes an SVG, or the PNG of it, and says so. Errors: as write_file and report::png_of_svg.
Result<void> write_picture(const Console& console, const std::string& path, PictureForm form, const std::string& svg);

/// Where a verb's one picture goes.
struct PictureFlags {
  std::string svg, png;  ///< Files; empty: none.

  /// --svg and --png. `what` completes "Draw ... into this file".
  void add_to(CLI::App& command, const std::string& what);
  [[nodiscard]] bool are_given() const { return !svg.empty() || !png.empty(); }
  /// Whether standard output is taken.
  [[nodiscard]] bool take_output() const { return svg == "-" || png == "-"; }
  [[nodiscard]] Result<void> write(const Console& console, const std::string& picture) const;
};

}  // namespace espalier::cli
