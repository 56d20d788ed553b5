#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/verbs/commands.h"

namespace espalier::cli {

struct Printed {
  ExitCode code = ExitCode::ok;
  std::string text;
  std::string errors;
};

/// What a verb prints as JSON, and on standard error.
inline Printed print_of(void (*add_verb)(CLI::App&, Session&), const std::vector<std::string>& words) {
  Session session;
  session.console.json = session.console.quiet = true;
  CLI::App app;
  add_verb(app, session);
  app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Printed printed;
  printed.code = session.run();
  printed.errors = testing::internal::GetCapturedStderr();
  printed.text = testing::internal::GetCapturedStdout();
  return printed;
}

}  // namespace espalier::cli
