#pragma once

#include <functional>
#include <ostream>
#include <string>

#include "base/result.h"

namespace espalier::cli {

/// Writes a file whole or not at all: into a temporary file beside it, which replaces it at the end. "-" is standard
/// output. An interrupt removes the temporary file.
/// Errors: unavailable, when the file cannot be written; whatever `write` returns.
Result<void> write_file(const std::string& path, const std::function<Result<void>(std::ostream&)>& write);

/// Makes an interrupt (SIGINT, SIGTERM) remove an unfinished file and end the process with code 130.
void install_interrupt_handler();

}  // namespace espalier::cli
