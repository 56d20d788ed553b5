#pragma once

// Tested by: tests/unit/cli/output/output_file_test.cpp

#include <functional>
#include <ostream>
#include <string>

#include "base/result.h"

namespace espalier::cli {

/// Writes a file whole or not at all: into a new file of a random name in its folder, which replaces it at the end.
/// A file that is there keeps its permissions and, as far as this process may give it, its owner; a symbolic link
/// stays, and what it leads to is replaced. "-" is standard output. Devices, pipes and descriptors (/dev/stdout) are
/// written straight. A signal that ends the process removes the unfinished file. Errors: unavailable, when the file
/// cannot be written or did not take all of it; whatever `write` returns.
Result<void> write_file(const std::string& path, const std::function<Result<void>(std::ostream&)>& write);

/// Whether `write_file` writes there straight, so that nothing can be read back or replaced.
bool is_written_straight(const std::string& path);

/// Makes every signal that ends the process remove an unfinished file before: SIGINT and SIGTERM then end it with code
/// 130, the others as they would have (SIGHUP of a terminal that goes away, SIGPIPE ...).
void install_interrupt_handler();

}  // namespace espalier::cli
