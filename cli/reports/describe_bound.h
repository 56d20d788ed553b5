#pragma once

// Tested by: tests/unit/cli/reports/describe_bound_test.cpp

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planners/bounds/bound.h"
#include "schedule/bound.h"
#include "schedule/collective.h"
#include "topology/topology.h"

namespace espalier::cli {

/// S / time in bytes per second for a time per byte; infinity does not occur: a zero bound gives nothing.
std::optional<double> algbw_of(const Rational& time_per_byte);

/// "132.0" for bytes per second, or "-" when nothing has to move.
std::string gigabytes_per_second(std::optional<double> bytes_per_second);

/// What says how a collective's parts are unequal: "shares", a number per rank, or "matrix", a row of blocks per rank,
/// in lowest terms. Nothing where they are equal.
void add_shares(nlohmann::ordered_json& document, const Collective& collective);

/// "99.5" for 0.995.
std::string percent(double share);

/// So many of the busiest links are named.
inline constexpr std::size_t shown_links = 4;

/// " (a floor)" behind the rate of a bound that is not known to be reached; empty for others.
std::string_view floor_mark(const Bound& bound);

/// {"time_per_byte": "p/q", "algbw", "busbw", "cut": [...], "what", "floor"}; rates are null when nothing has to move.
nlohmann::ordered_json bound_json(const Bound& bound, const Collective& collective, const Topology& topology);

/// `bound_json` with "binding": what prices that prove the bound say, by class and most first.
nlohmann::ordered_json bound_json(const planners::PricedBound& priced, const Collective& collective,
                                  const Topology& topology);

/// The first few, and how many more there are: "a, b and 3 more".
std::string first_names(const std::vector<std::string>& names, std::size_t most, std::string_view separator = ", ");

/// The cut by its smaller side, at most `most` nodes: "{g0, g1 and 14 more}", or "all but {g7}".
std::string cut_text(const Bound& bound, const Topology& topology, std::size_t most = 8);

}  // namespace espalier::cli
