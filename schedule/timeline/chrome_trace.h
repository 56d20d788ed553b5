#pragma once

// Tested by: tests/unit/schedule/timeline/timeline_test.cpp

#include <iosfwd>
#include <string_view>

#include "base/result.h"
#include "schedule/timeline/timeline.h"

namespace espalier {

/// Writes a timeline as Chrome trace JSON, which ui.perfetto.dev opens (docs/timeline.md), as a stream. Spans of one
/// lane that overlap go to threads of their own, since viewers draw a thread as a stack. Times are exact to the
/// picosecond. Requires: spans in begin order, on named lanes, none ending before it begins; names in UTF-8. Errors:
/// unavailable when the stream does not take it all.
Result<void> write_chrome_trace(std::ostream& out, const Timeline& timeline);

/// Reads back what `write_chrome_trace` wrote, also after another tool has written it anew; events and keys that are
/// not ours are passed over. `name` stands for the file in messages.
/// Errors: invalid_input with file:line:column.
/// Cost: linear in the text; memory for the timeline, none for a document.
Result<Timeline> read_chrome_trace(std::string_view text, std::string_view name);

}  // namespace espalier
