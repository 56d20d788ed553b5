#pragma once

// Tested by: tests/options/options_test.py

namespace espalier::cli {

/// Keeps memory once taken: a command simulates again and again with memory of the same size. Given back in between,
/// all of it would be cleared page by page each time; in huge pages there are few pages to clear
/// (docs/decisions/0015-memory-in-huge-pages.md).
void keep_memory();

/// Makes memory that runs out where nothing can catch it (a destructor, a thread of a library) end the process with a
/// word and the code of `run_command`, not with SIGABRT.
void name_lack_of_memory();

}  // namespace espalier::cli
