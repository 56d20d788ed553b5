#pragma once

// Tested by: tests/unit/base/units_test.cpp

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace espalier {

/// Whose fault an error is and what kind of thing would fix it.
enum class ErrorCode {
  invalid_input,  ///< A file, flag or value that breaks its own rules.
  infeasible,     ///< A well-formed question without an answer (a rank that cannot be reached).
  unsupported,    ///< A well-formed question that this part does not answer; the message names what does.
  too_large,      ///< Past a written limit, or a number that would not fit its unit.
  unavailable,    ///< A file, device, peer or capability that is not there.
};

/// What went wrong, where, and what to do about it; never a bug of ours (that is ESPALIER_CHECK).
struct Error {
  ErrorCode code = ErrorCode::invalid_input;
  std::string message;  ///< One sentence, with the place (file:line:column, transfer, rank) where there is one.
  std::string help;     ///< What to write or do instead; may be empty.
};

template <class T>
using Result = tl::expected<T, Error>;

/// Shorthand for returning an error from a function that returns a Result.
[[nodiscard]] inline tl::unexpected<Error> fail(ErrorCode code, std::string message, std::string help = {}) {
  return tl::unexpected<Error>(Error{code, std::move(message), std::move(help)});
}

}  // namespace espalier
