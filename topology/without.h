#pragma once

// Tested by: tests/unit/topology/without_test.cpp

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topology/topology.h"

namespace espalier {

/// Some nodes and links of a topology.
struct Parts {
  std::vector<NodeId> nodes;
  std::vector<LinkId> links;
};

/// What a name stands for: a node ("gpu0"), a host with all its nodes ("box3"), all links between two nodes
/// ("gpu0-gpu3"), one of several cables between them ("gpu0-gpu3#1", see cables.h), all links one way ("gpu0>gpu3") or
/// one of them ("gpu0>gpu3#0"). Numbers may be ranges of the topology format: "gpu[0-3]", "box[*].nic0".
/// Errors: invalid_input, with the nearest name or what there is instead.
Result<Parts> find_parts(const Topology& topology, std::string_view name);

/// What is left when these parts fail, called "NAME without WHAT". Links of failing nodes fail too; ranks are numbered
/// anew.
/// Errors: infeasible when no rank is left or a rank cannot reach another any more, naming them.
Result<Topology> without(const Topology& topology, const Parts& parts, std::string_view what);

/// The nodes and links that are left when these parts fail, by their ids in `without`'s topology: what each was before.
Parts what_is_left(const Topology& topology, const Parts& parts);

/// As above, by names: "dgx1v without gpu0-gpu1, nic3". Without names, the topology itself.
/// Errors: as find_parts and without.
Result<Topology> without(const Topology& topology, std::span<const std::string> names);

}  // namespace espalier
