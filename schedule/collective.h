#pragma once

// Tested by: tests/unit/schedule/traffic/traffic_matrix_test.cpp

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "base/rational.h"
#include "base/result.h"
#include "base/units.h"

namespace espalier {

/// What a collective promises; the buffer conventions are those of NCCL, the size S that of nccl-tests:
/// S = max(send buffer, receive buffer) of one rank.
enum class CollectiveKind : std::uint8_t {
  all_reduce,      ///< All ranks end with the sum of all ranks' buffers of S bytes.
  reduce_scatter,  ///< Rank r ends with the r-th shard (S/N bytes) of the sum of all buffers of S bytes.
  all_gather,      ///< Every rank ends with all shards; rank r brings the r-th shard of S/N bytes.
  broadcast,       ///< Every rank ends with the root's S bytes.
  reduce,          ///< The root ends with the sum of all buffers of S bytes.
  all_to_all,      ///< Every rank sends a block of S/N bytes to every rank (its own stays).
  gather,          ///< The root ends with all shards of S/N bytes.
  scatter,         ///< Rank r ends with the r-th shard (S/N bytes) of the root's S bytes.
  send_recv,       ///< Every rank sends S bytes to the next rank and receives S bytes from the previous one.
};

inline constexpr std::array all_collective_kinds = {
    CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::all_gather,
    CollectiveKind::broadcast,  CollectiveKind::reduce,         CollectiveKind::all_to_all,
    CollectiveKind::gather,     CollectiveKind::scatter,        CollectiveKind::send_recv};

/// "all_reduce", ...
std::string_view to_string(CollectiveKind kind);
/// Errors: invalid_input, listing the collectives and the nearest name.
Result<CollectiveKind> parse_collective(std::string_view name);

/// broadcast, reduce, gather and scatter have a root.
bool has_root(CollectiveKind kind);
/// all_reduce, reduce_scatter and reduce add contributions.
bool reduces(CollectiveKind kind);
/// The slices of all_gather, reduce_scatter, gather and scatter carry a rank; those of all_to_all and send_recv also a
/// destination; those of all_reduce, broadcast and reduce carry none.
bool slices_have_rank(CollectiveKind kind);
bool slices_have_destination(CollectiveKind kind);
/// all_gather, reduce_scatter, gather and scatter cut S into a shard per rank; these may have unequal shards.
bool has_shards(CollectiveKind kind);
/// all_to_all has a block from every rank to every rank; these may be unequal, by a traffic matrix.
bool has_blocks(CollectiveKind kind);

/// The largest sum of the shares of a collective, and of all blocks of a traffic matrix.
inline constexpr std::int64_t max_share_sum = std::int64_t{1} << 40;
inline constexpr std::int64_t max_matrix_sum = std::int64_t{1} << 52;
/// The most ranks of a traffic matrix: N x N numbers are kept.
inline constexpr std::size_t max_matrix_ranks = 4096;

/// A collective on a number of ranks.
struct Collective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::uint32_t rank_count = 0;
  Rank root;  ///< none where the kind has no root.
  /// Of unequal parts, by part. Unequal shards: rank r's is shares[r] of the sum of all shares. A traffic matrix
  /// (all_to_all): rank i sends shares[i N + j] to rank j, of `largest_line()`, which is S. Empty: all are equal.
  std::vector<std::int64_t> shares = {};

  friend bool operator==(const Collective&, const Collective&) = default;

  /// Whether it is an all_to_all of unequal blocks.
  [[nodiscard]] bool has_matrix() const { return !shares.empty() && has_blocks(kind); }

  /// The bytes that a schedule's units stand for, for each byte of S: the buffer of S bytes, or, for all_to_all and
  /// send_recv, all ranks' send buffers one after the other (N x S bytes; with a traffic matrix the sum of all blocks).
  /// Cost: O(ranks^2) with a matrix.
  [[nodiscard]] Rational extent() const;
  /// The same where parts are equal or shards. Requires: no traffic matrix.
  [[nodiscard]] std::int64_t extent_factor() const;

  /// How many parts the buffer has by the collective's promise: N shards, N x N blocks (all_to_all), N whole buffers
  /// (send_recv), or one. They are equal where no shares are given (schedule/parts.h). Part p of all_to_all goes from
  /// rank p / N to rank p % N.
  [[nodiscard]] std::int64_t part_count() const;

  /// What of the sum of all shares a part has: one where all are equal.
  [[nodiscard]] std::int64_t share_of_part(std::int64_t part) const {
    return shares.empty() ? 1 : shares[static_cast<std::size_t>(part)];
  }
  /// The share of the block from one rank to another. Requires: has_blocks(kind).
  [[nodiscard]] std::int64_t block(Rank from, Rank to) const {
    return shares.empty() ? 1 : shares[from.index() * rank_count + to.index()];
  }
  /// Of blocks, in shares: the most that a rank sends or receives, its own block included. That is S.
  /// Requires: has_blocks(kind). Cost: O(ranks^2) with a matrix.
  [[nodiscard]] std::int64_t largest_line() const;

  /// A rank's share of S, as a whole number of `share_sum()`. Requires: has_shards(kind).
  [[nodiscard]] std::int64_t share_of(Rank rank) const { return shares.empty() ? 1 : shares[rank.index()]; }
  /// Requires: has_shards(kind) or has_blocks(kind). Cost: O(shares) where these are given.
  [[nodiscard]] std::int64_t share_sum() const;

  /// The factor from algbw to busbw of nccl-tests: all_reduce 2(N-1)/N; all_gather, reduce_scatter, all_to_all, gather,
  /// scatter (N-1)/N; the others 1. With unequal shards it stays (N-1)/N for all_gather and reduce_scatter, what a rank
  /// receives or sends of S in the mean, and is one less the root's share for gather and scatter, what passes the root.
  /// With a traffic matrix it is the most of S that a rank sends to others or receives from them.
  /// Source: nccl-tests, doc/PERFORMANCE.md.
  [[nodiscard]] Rational busbw_factor() const;
};

/// The ranks that a part of the buffer belongs to, as its slices carry them: `rank` for the kinds of slices_have_rank,
/// `to` for those of slices_have_destination, none otherwise.
struct PartRanks {
  Rank rank;
  Rank to;
  friend bool operator==(const PartRanks&, const PartRanks&) = default;
};
/// Requires: 0 <= part < part_count().
PartRanks ranks_of_part(const Collective& collective, std::int64_t part);

/// Who brings data for a part before the collective runs: one rank, or none for all of them (a contribution each).
Rank bringer_of(const Collective& collective, PartRanks part);
/// Whom the collective promises that part, all contributions counted: one rank, or none for all of them.
Rank receiver_of(const Collective& collective, PartRanks part);

/// What is wrong with the shares of a collective, or nothing: a number per part, none negative, some positive, of a sum
/// up to max_share_sum (shards) or max_matrix_sum (blocks), for a kind with shards or blocks.
std::optional<std::string> why_bad_shares(const Collective& collective);

/// A checked collective; a root that is not given is rank 0. Shares (of all_to_all: the traffic matrix, row by row) are
/// divided by their common factor, and left out when all are equal.
/// Errors: invalid_input when a root is out of range or given where there is none, or when shares are wrong.
Result<Collective> make_collective(CollectiveKind kind, std::size_t rank_count, std::optional<Rank> root,
                                   std::vector<std::int64_t> shares = {});

}  // namespace espalier
