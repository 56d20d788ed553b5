#pragma once

// Tested by: tests/unit/sweep/spec_values_test.cpp

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "sim/model.h"
#include "sweep/spec.h"

// How the values of a sweep are written, in flags as in files. Every function takes a list parted by commas and fails
// with invalid_input, naming what is wrong with which value.
namespace espalier::sweep {

/// "a,b" as {"a", "b"}; empty text has no values.
std::vector<std::string> split_list(std::string_view text);

/// "1K,64M", rounded down to whole elements.
Result<std::vector<Bytes>> parse_size_list(std::string_view text, std::int64_t element_size);
/// "auto,64K": nothing for "auto".
Result<std::vector<std::optional<Bytes>>> parse_chunks(std::string_view text, std::int64_t element_size);
/// "all_reduce,all_gather", or "all".
Result<std::vector<CollectiveKind>> parse_collectives(std::string_view text);
/// "link,fair", or "all".
Result<std::vector<sim::ModelKind>> parse_models(std::string_view text);
/// "none,simple,ll,ll128", or "all".
Result<std::vector<sim::Protocol>> parse_protocols(std::string_view text);
/// "0,1,4": of a rank.
Result<std::vector<std::uint32_t>> parse_copy_engine_counts(std::string_view text);
/// "0,2%,0.05" in millionths.
Result<std::vector<std::int32_t>> parse_jitters(std::string_view text);
/// "1,2,7-9".
Result<std::vector<std::uint64_t>> parse_seeds(std::string_view text);
/// "links,nodes,hosts,ranks".
Result<FailureKinds> parse_failure_kinds(std::string_view text);

}  // namespace espalier::sweep
