#include "topology/draw/groups.h"

#include <algorithm>
#include <utility>

namespace espalier {

std::vector<Group> one_each(const Group& things) {
  std::vector<Group> groups;
  groups.reserve(things.size());
  for (const std::size_t thing : things) groups.push_back({thing});
  return groups;
}

void unfold_small(std::vector<Group>& groups, std::size_t max_groups) {
  constexpr std::size_t max_unfolded = 4;
  std::size_t most = 0;
  for (const Group& group : groups) most = std::max(most, group.size());
  std::vector<Group> unfolded;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::size_t size = groups[i].size(), all = unfolded.size() + groups.size() - i + size - 1;
    if (size > max_unfolded || 2 * size > most || all > max_groups) {
      unfolded.push_back(groups[i]);
    } else {
      for (const std::size_t member : groups[i]) unfolded.push_back({member});
    }
  }
  groups = std::move(unfolded);
}

}  // namespace espalier
