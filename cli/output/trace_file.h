#pragma once

// Tested by: tests/options/options_test.py

#include <cstdint>
#include <string>

#include "cli/output/console.h"
#include "schedule/timeline/timeline.h"

namespace CLI {
class App;
}

namespace espalier::cli {

/// --trace and --trace-every.
struct TraceFlags {
  std::string file;
  std::uint32_t every = 1;

  /// `of`: what the timeline is of.
  void add_to(CLI::App& command, const std::string& of);
};

/// Warns where a trace takes more than 100 MB, and says by how much to thin it.
void warn_of_size(const Console& console, const TraceFlags& flags, std::uint64_t bytes);

/// Writes a timeline as a Chrome trace, thinned as the flags say (schedule/timeline/thin_timeline.h), and warns before
/// it is large.
Result<void> write_trace_file(const Console& console, const TraceFlags& flags, Timeline& timeline);

}  // namespace espalier::cli
