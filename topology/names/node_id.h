#pragma once

// Tested by: tests/unit/topology/import/import_test.cpp

#include <string_view>

namespace espalier {

/// Why a text cannot be a node's id ("is empty", "holds a '>'"), or an empty text when it can. An id is UTF-8 of at
/// most 256 bytes without control characters, without blanks at its ends and without > # [ ], which link names and
/// ranges use.
std::string_view why_bad_node_id(std::string_view id);

}  // namespace espalier
