#pragma once

// Tested by: tests/unit/lab/wiring_test.cpp

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "base/id.h"
#include "base/result.h"

namespace espalier::lab {

/// Where the connection of one route of a schedule begins and ends. The network sends what goes from `bind` to
/// `connect` over the links of the route, and what answers (acknowledgements) back over the same cables.
struct RouteAddresses {
  Rank src;
  Rank dst;
  std::string bind;     ///< The address that `src` binds its socket to before it connects.
  std::string connect;  ///< The address of `dst` that it connects to.
};

/// Deals out IPv4 addresses: 10.0.0.0/8 is cut into a range per rank, and every end of a route takes the next of its
/// rank's range; 172.16.0.0/12 are the control addresses.
class AddressPlan {
 public:
  /// Errors: too_large past 65,536 ranks.
  [[nodiscard]] static Result<AddressPlan> make(std::size_t rank_count);

  /// "10.64.0.0/10": all addresses of a rank.
  [[nodiscard]] std::string range_of(Rank rank) const;
  /// A rank's address for what is not data.
  [[nodiscard]] std::string control_address(Rank rank) const;
  /// The control address of the node that joins them.
  [[nodiscard]] static std::string hub_address();
  /// A new address of a rank. Errors: too_large when its range is used up.
  Result<std::string> next(Rank rank);

 private:
  explicit AddressPlan(std::size_t rank_count);

  unsigned end_bits_;
  std::vector<std::uint32_t> used_;
};

/// Writes the file that tells the ranks of a plan where to bind and connect: a JSON list with, for each route of the
/// plan by its number, `route`, `src_rank`, `dst_rank`, `bind` and `connect`.
void write_addresses(std::ostream& out, std::span<const RouteAddresses> routes);

}  // namespace espalier::lab
