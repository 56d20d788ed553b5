#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace espalier {

/// Whether a text is a log of NCCL (NCCL_DEBUG=INFO).
bool is_nccl_log(std::string_view text);

/// The rings of a communicator of `ranks` ranks as its log lists them, "Channel 00/32 : 0 1 2 3": orders of ranks.
/// Lines of other communicators, by their number of ranks, are passed over. Errors: invalid_input with file and line
/// where a ring has a rank twice or one that is not there, where several communicators have that many ranks and
/// different rings, and where there is no ring.
Result<std::vector<std::vector<std::int64_t>>> read_nccl_log_rings(std::string_view text, const std::string& file,
                                                                   std::size_t ranks);

}  // namespace espalier
