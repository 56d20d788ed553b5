#pragma once

// Tested by: tests/unit/schedule/formats/nccl_log_test.cpp

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace espalier {

/// Whether a text is a log of NCCL (NCCL_DEBUG=INFO).
bool is_nccl_log(std::string_view text);

struct NcclLogRings {
  std::vector<std::vector<std::int64_t>> orders;  ///< Of ranks, a ring each.
  std::size_t channels = 0;                       ///< That the communicator has: "00/32" is one of 32; 0: not said.
};

/// The rings of a communicator of `ranks` ranks as its log lists them, "Channel 00/32 : 0 1 2 3": orders of ranks. NCCL
/// cuts such lines at 20 ranks until 2021 and at 28 since; rings of more ranks are pieced together from what each rank
/// says of its neighbours, "Ring 00 : 31 -> 0 -> 1", or of its connections, "Ring 00 : 31 -> 0 [send] via NET/IB/0":
/// the first of a rank is the ring's, as rings are connected before trees. Lines of other communicators, by their
/// number of ranks, are passed over. Errors: invalid_input with file and line where a ring has a rank twice or one that
/// is not there, where several communicators have that many ranks and different rings, where there is no ring, and
/// where a part of one is missing.
Result<NcclLogRings> read_nccl_log_rings(std::string_view text, const std::string& file, std::size_t ranks);

}  // namespace espalier
