#pragma once

// Tested by: tests/unit/topology/draw/topology_svg_test.cpp

#include <string>
#include <vector>

namespace espalier {

/// A name within a scope: "gpu0" of "box1.gpu0" in "box1".
std::string own_name(const std::string& name, const std::string& scope);

/// What a drawn node of these names says: "gpu0"; "gpu[0-7]", or "gpu0 x8", of several. Of a long name both ends, as
/// they tell it from others.
std::string node_label(const std::vector<std::string>& names);

/// How wide a node with a label is, in pixels.
double node_width(const std::string& label);

}  // namespace espalier
