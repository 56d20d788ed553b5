#pragma once

// Tested by: tests/unit/schedule/traffic/traffic_matrix_test.cpp

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace espalier {

/// What every rank sends to every rank, for an all_to_all of unequal blocks (docs/traffic-matrices.md).
struct TrafficMatrix {
  std::size_t ranks = 0;
  std::vector<std::int64_t> blocks;  ///< Row by row: rank i sends blocks[i ranks + j] to rank j. Not all zero.
  bool are_bytes = false;            ///< Whether the numbers are bytes; else only their ratio counts.

  /// The most that a rank sends or receives, its own block included: S where blocks are bytes.
  [[nodiscard]] std::int64_t largest_line() const;
};

/// Reads a matrix of any of three forms, told apart by how the text begins: .npy (versions 1 to 3), JSON (a list of
/// lists, or an object with one as "matrix"), else CSV (numbers parted by commas, semicolons, tabs or blanks; # begins
/// a comment). Whole numbers are bytes; where one has a fraction, numbers are weights: only their ratio counts, to a
/// part of 2^40 of their sum, and none that is not zero vanishes. Errors: invalid_input, "NAME:LINE:COLUMN: ..." (of
/// .npy "NAME: byte B: ..."); too_large past max_matrix_ranks and max_matrix_sum.
Result<TrafficMatrix> parse_traffic(std::string_view text, std::string_view name);

/// Who is how popular: the ranks' experts, `experts` of each, stand in an order drawn by `seed`; the k-th is chosen in
/// proportion to k^-exponent, and a rank is as popular as its experts together. Every rank sends the same in all, to
/// each rank, itself included, in proportion to that one's popularity.
/// Source: G. K. Zipf, "Human behavior and the principle of least effort", 1949.
struct ZipfTraffic {
  double exponent = 1;
  std::uint64_t seed = 0;
  std::uint32_t experts = 1;
};
/// Requires: ranks from 1 to max_matrix_ranks; an exponent from 0 to 10; 1 to 1,024 experts.
TrafficMatrix zipf_traffic(std::size_t ranks, const ZipfTraffic& law);

/// Rank i sends to rank j in proportion to how far behind it j is, (j - i) mod N, mixed with equal blocks: `spread` 1
/// is distance alone, 0 equal blocks. Every rank sends and receives the same in all. Source: nccl-tests,
/// src/alltoallv.cu (NCCL_TESTS_ALLTOALLV_SPREAD). Requires: ranks from 1 to max_matrix_ranks, spread from 0 to 1.
TrafficMatrix spread_traffic(std::size_t ranks, double spread);

/// Which experts tokens go to. A line is one token: its rank, then the experts that it is sent to, each a copy. A first
/// line with words, "token,rank,expert,expert", names columns; only then a column "token" is left out. Expert e is on
/// rank e / (experts / ranks).
struct RoutedTraffic {
  std::uint32_t experts = 0;         ///< 0: as many as the largest number says, up to a multiple of the ranks.
  std::int64_t bytes_per_token = 0;  ///< 0: blocks are counts of copies, and only their ratio counts.
  bool deduplicated = false;         ///< A token goes once to each rank that has experts of its.
};
/// Errors: as parse_traffic.
Result<TrafficMatrix> parse_routing(std::string_view text, std::string_view name, std::size_t ranks,
                                    const RoutedTraffic& how);

/// The matrix that a text describes: "zipf:0.7,seed=3,experts=8", "spread:1",
/// "routing:FILE,experts=256,bytes=7168,dedup", or a matrix's file of at most 512 MiB. Errors: unavailable where it
/// cannot be read; too_large; invalid_input, what is wrong and where, also where it is for another number of ranks.
Result<TrafficMatrix> load_traffic(const std::string& described, std::size_t ranks);

}  // namespace espalier
