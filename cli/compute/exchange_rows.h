#pragma once

// Tested by: tests/options/options_test.py

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "experts/exchange.h"

namespace espalier::cli {

/// An exchange that was asked about, and of how many of the machine's ranks; 0: of all.
struct ExchangeRow {
  experts::Exchange exchange;
  std::size_t ranks = 0;
  std::string where = {};  ///< "FILE:LINE: ", or nothing.
};

/// Reads CSV whose first line names columns: software, ranks, tokens, hidden, top_k, experts, sms, max_boxes, dispatch,
/// combine, each at most once; a column that is not there is as in `usual`. Errors: invalid_input, "FILE:LINE: ...".
Result<std::vector<ExchangeRow>> read_exchange_rows(const std::string& text, const std::string& name,
                                                    const ExchangeRow& usual);

}  // namespace espalier::cli
