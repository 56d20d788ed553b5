#pragma once

// Tested by: tests/unit/engine/verbs/completion_text_test.cpp

#include <infiniband/verbs.h>

#include <string>

namespace espalier::engine {

/// What happened to a connection whose work completed so, in words to act on: "the connection to rank 3 ...".
std::string describe_completion(ibv_wc_status status);

}  // namespace espalier::engine
