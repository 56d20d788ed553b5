#pragma once

// Tested by: tests/unit/scenario/read/read_scenario_test.cpp

#include <string_view>

namespace espalier::scenario {

/// The codes of the scenario reader's errors; each has a row in docs/scenarios.md. What any YAML file can have wrong
/// (T001 to T024 and T051) is in topology/yaml/read_codes.h. A code never changes its meaning.
namespace scenario_codes {

using Code = std::string_view;

constexpr Code wrong_version = "N001";
constexpr Code no_topology = "N002";
constexpr Code bad_topology = "N003";
constexpr Code nothing_to_do = "N004";
constexpr Code job_refused = "N005";
constexpr Code bad_size = "N010";
constexpr Code bad_factor = "N011";
constexpr Code bad_rate = "N012";
constexpr Code unknown_name =
    "N013";  ///< Of a collective, type, algorithm, protocol, model, way of sharding, graph or compression.
constexpr Code bad_ranks = "N020";
constexpr Code bad_group = "N021";
constexpr Code unknown_group = "N022";
constexpr Code bad_root = "N023";
constexpr Code too_many = "N024";
constexpr Code bad_averaging = "N025";  ///< Gossip or compression that cannot be, or that saves nothing.
constexpr Code bad_experts = "N026";    ///< Routing to experts that cannot be, or that makes no difference.
constexpr Code unknown_link = "N030";
constexpr Code bad_event = "N031";
constexpr Code training_refused = "N040";
constexpr Code bad_trace = "N041";
constexpr Code another_gpu = "N042";  ///< A warning.

}  // namespace scenario_codes
}  // namespace espalier::scenario
