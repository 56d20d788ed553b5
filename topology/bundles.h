#pragma once

// Tested by: tests/unit/schedule/trees/strands_test.cpp

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "topology/topology.h"

namespace espalier {

/// The links of a topology by bundle: links from one node to another whose latencies and overheads are the same do what
/// one link with the sum of their rates does. Links are numbered in id order of their bundles' first ones.
class Bundles {
 public:
  /// Cost: O(links log links).
  explicit Bundles(const Topology& topology);

  /// Whether some bundle has several links.
  [[nodiscard]] bool any() const { return strands_.size() < bundle_of_.size(); }
  [[nodiscard]] std::size_t count() const { return strands_.size(); }
  /// The links of a bundle, in id order.
  [[nodiscard]] const std::vector<LinkId>& strands(std::size_t bundle) const { return strands_[bundle]; }
  [[nodiscard]] std::size_t bundle_of(LinkId link) const { return bundle_of_[link.index()]; }

 private:
  std::vector<std::vector<LinkId>> strands_;
  std::vector<std::uint32_t> bundle_of_;  ///< By link.
};

/// The same network with one link for each bundle: link i is bundle i, with the rates of its strands added up and the
/// class of the first. Nodes are the same.
Topology bundled(const Topology& topology, const Bundles& bundles);

/// "tail>head" where all links between the two are one bundle; else the name of the bundle's first link.
std::string bundle_name(const Topology& topology, const Bundles& bundles, std::size_t bundle);

}  // namespace espalier
