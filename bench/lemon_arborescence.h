#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace espalier::bench {

/// LEMON's cheapest arborescence on a complete graph whose prices are given row by row. LEMON 1.3 is C++17: so is the
/// source of this, and its header has no more than C++17.
class LemonArborescence {
 public:
  LemonArborescence(const std::vector<std::int64_t>& prices, std::uint32_t vertices);
  ~LemonArborescence();
  LemonArborescence(const LemonArborescence&) = delete;
  LemonArborescence& operator=(const LemonArborescence&) = delete;

  /// The price of the cheapest one from vertex 0.
  std::int64_t find();

 private:
  struct Graph;
  std::unique_ptr<Graph> graph_;
};

}  // namespace espalier::bench
