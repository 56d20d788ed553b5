#pragma once

// Tested by: tests/unit/topology/yaml/read_topology_test.cpp

#include <string_view>

namespace espalier {

/// The codes of the topology reader's errors; each has a row in docs/topology.md. A code never changes its meaning.
namespace read_codes {

using Code = std::string_view;

// The file and its YAML.
constexpr Code cannot_read = "T001";
constexpr Code file_too_large = "T002";
constexpr Code not_text = "T003";
constexpr Code bad_yaml = "T004";
constexpr Code empty_document = "T005";
constexpr Code several_documents = "T006";
constexpr Code too_deep = "T007";
constexpr Code alias_misuse = "T008";
constexpr Code duplicate_key = "T009";
constexpr Code too_many_values = "T010";

// Keys and their values.
constexpr Code wrong_version = "T011";
constexpr Code unknown_key = "T012";
constexpr Code missing_key = "T013";
constexpr Code wrong_type = "T014";
constexpr Code keys_conflict = "T015";
constexpr Code bad_bandwidth = "T020";
constexpr Code bad_time = "T021";
constexpr Code bad_efficiency = "T022";
constexpr Code bad_integer = "T023";
constexpr Code bad_boolean = "T024";
constexpr Code unknown_kind = "T025";
constexpr Code bad_provenance = "T026";
constexpr Code another_form = "T027";

// Nodes.
constexpr Code bad_id = "T030";
constexpr Code duplicate_id = "T031";
constexpr Code cannot_be_rank = "T032";
constexpr Code not_a_switch = "T033";
constexpr Code no_ranks = "T034";
constexpr Code unreachable = "T035";
constexpr Code not_a_rank = "T036";
constexpr Code has_no_model = "T037";
constexpr Code unknown_gpu = "T038";

// Links.
constexpr Code unknown_node = "T040";
constexpr Code self_link = "T041";
constexpr Code zip_lengths = "T042";
constexpr Code several_nodes = "T043";
constexpr Code unknown_class = "T044";

// The compact form.
constexpr Code bad_range = "T050";
constexpr Code unknown_parameter = "T051";
constexpr Code bad_expression = "T052";
constexpr Code too_many_nodes = "T053";
constexpr Code too_many_links = "T054";
constexpr Code too_much_work = "T055";
constexpr Code include_not_found = "T060";
constexpr Code include_cycle = "T061";
constexpr Code include_too_deep = "T062";
constexpr Code include_outside = "T063";

constexpr Code more_errors = "T099";

}  // namespace read_codes
}  // namespace espalier
