#pragma once

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
/// all_gather, reduce_scatter, gather and scatter cut S into a shard per rank; only these may have unequal shards.
bool has_shards(CollectiveKind kind);

/// The largest sum of the shares of a collective.
inline constexpr std::int64_t max_share_sum = std::int64_t{1} << 40;

/// A collective on a number of ranks.
struct Collective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::uint32_t rank_count = 0;
  Rank root;  ///< none where the kind has no root.
  /// Unequal shards: rank r's is shares[r] of the sum of all shares. Empty: all shards are equal.
  std::vector<std::int64_t> shares = {};

  friend bool operator==(const Collective&, const Collective&) = default;

  /// The bytes that a schedule's units stand for: the buffer of S bytes, or, for all_to_all and send_recv, all ranks'
  /// send buffers one after the other (N x S bytes).
  [[nodiscard]] std::int64_t extent_factor() const { return slices_have_destination(kind) ? rank_count : 1; }

  /// How many parts the buffer has by the collective's promise: N shards, N x N blocks (all_to_all), N whole buffers
  /// (send_recv), or one. They are equal but for shards with shares (schedule/parts.h). Part p of all_to_all goes from
  /// rank p / N to rank p % N.
  [[nodiscard]] std::int64_t part_count() const;

  /// A rank's share of S, as a whole number of `share_sum()`. Requires: has_shards(kind).
  [[nodiscard]] std::int64_t share_of(Rank rank) const { return shares.empty() ? 1 : shares[rank.index()]; }
  /// Cost: O(ranks) where shares are given.
  [[nodiscard]] std::int64_t share_sum() const;

  /// The factor from algbw to busbw of nccl-tests: all_reduce 2(N-1)/N; all_gather, reduce_scatter, all_to_all, gather,
  /// scatter (N-1)/N; the others 1. With unequal shards it stays (N-1)/N for all_gather and reduce_scatter, what a rank
  /// receives or sends of S in the mean, and is one less the root's share for gather and scatter, what passes the root.
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

/// What is wrong with the shares of a collective, or nothing: a number per rank, none negative, some positive, of a sum
/// up to max_share_sum, for a kind with shards.
std::optional<std::string> why_bad_shares(const Collective& collective);

/// A checked collective; a root that is not given is rank 0. Shares are divided by their common factor, and left out
/// when all are equal.
/// Errors: invalid_input when a root is out of range or given where there is none, or when shares are wrong.
Result<Collective> make_collective(CollectiveKind kind, std::size_t rank_count, std::optional<Rank> root,
                                   std::vector<std::int64_t> shares = {});

}  // namespace espalier
