#include "cli/output/trace_file.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/format_units.h"
#include "cli/output/output_file.h"
#include "schedule/timeline/chrome_trace.h"
#include "schedule/timeline/thin_timeline.h"

namespace espalier::cli {

void TraceFlags::add_to(CLI::App& command, const std::string& of) {
  CLI::Option* const trace =
      command.add_option("--trace", file, "Write the timeline of " + of + " as a Chrome trace")->option_text("FILE");
  command.add_option("--trace-every", every, "Thin the trace: one chunk in N; of a scenario one task in N")
      ->needs(trace)
      ->check(CLI::Range(1, 1'000'000))
      ->option_text("N (1)");
}

void warn_of_size(const Console& console, const TraceFlags& flags, std::uint64_t bytes) {
  constexpr std::uint64_t large = 100'000'000;
  if (bytes <= large) return;
  const std::uint64_t every = flags.every * ((bytes + large - 1) / large);
  console.warn(fmt::format("the trace takes about {:.1f} GB; --trace-every {} writes less than 100 MB of it",
                           static_cast<double>(bytes) / 1e9, every));
}

Result<void> write_trace_file(const Console& console, const TraceFlags& flags, Timeline& timeline) {
  if (flags.every > 1) thin_timeline(timeline, flags.every);
  warn_of_size(console, flags, chrome_trace_bytes(timeline));
  return write_file(flags.file, [&](std::ostream& stream) { return write_chrome_trace(stream, timeline); });
}

}  // namespace espalier::cli
