#pragma once

// Tested by: tests/property/forecast/divide_path_test.cpp

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/critical_path/critical_path.h"
#include "topology/topology.h"

namespace espalier::sim {

/// One use of a critical path's time on links of one class, or at nodes.
struct PathTime {
  PathUse use = PathUse::moving;
  std::string where;  ///< The links' class or rate; "ranks" and "switches" for nodes.
  Picoseconds time;
  std::string max_at;    ///< The link or node with the largest part of it.
  Picoseconds max_time;  ///< That part.
};

/// What links are called together: their class, or where they have none their rate.
std::string class_of(const Link& link);

/// Where a part of a path was: a class and the link or node of it.
struct PathPlace {
  std::string where;
  std::string at;
};
PathPlace place_of(const PathPart& part, const Topology& topology);

/// Adds up times by use and class, and within these by link or node.
class PathTimes {
 public:
  explicit PathTimes(const Topology& topology) : topology_(topology) {}

  void add(const PathPart& part);

  /// Most first.
  [[nodiscard]] std::vector<PathTime> shares() const;

 private:
  struct Sum {
    std::int64_t time = 0;
    std::map<std::string, std::int64_t> parts;
  };
  const Topology& topology_;
  std::map<std::pair<PathUse, std::string>, Sum> sums_;
};

}  // namespace espalier::sim
