#pragma once

// Tested by: tests/unit/topology/import/import_test.cpp

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "topology/import/draft.h"

namespace espalier {

/// NVLinks that tools saw down, for one warning per kind of loss rather than one per link.
class InactiveLinks {
 public:
  /// A GPU's links: how many are up, and the numbers of those that are not.
  void add(const std::string& gpu, std::size_t up, std::vector<std::int64_t> down);

  /// Adds the warnings: GPUs that have lost the same links, together; GPUs without any link beside others that have
  /// some.
  void warn(Draft& draft) const;

 private:
  std::map<std::vector<std::int64_t>, std::vector<std::string>> by_links_;
  std::vector<std::string> without_;  // GPUs none of whose links is up.
  std::size_t gpus_ = 0;
};

}  // namespace espalier
