#pragma once

// Tested by: tests/unit/topology/draw/topology_svg_test.cpp

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace espalier {

/// Numbers of nodes or parts that are drawn as one.
using Group = std::vector<std::size_t>;

/// Things by their keys, in the order of first ones.
template <class Key>
std::vector<Group> grouped(const Group& things, Key key) {
  std::vector<Group> groups;
  std::map<std::uint64_t, std::size_t> places;
  for (const std::size_t thing : things) {
    const auto [place, is_new] = places.emplace(key(thing), groups.size());
    if (is_new) groups.emplace_back();
    groups[place->second].push_back(thing);
  }
  return groups;
}

std::vector<Group> one_each(const Group& things);

/// Parts the members of small groups, where others are many more: these are what differs. At most `max_groups` are
/// there then, if there were no more before.
void unfold_small(std::vector<Group>& groups, std::size_t max_groups);

}  // namespace espalier
