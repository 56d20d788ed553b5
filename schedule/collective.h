#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

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

/// A collective on a number of ranks.
struct Collective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::uint32_t rank_count = 0;
  Rank root;  ///< none where the kind has no root.

  friend bool operator==(const Collective&, const Collective&) = default;

  /// The bytes that a schedule's units stand for: the buffer of S bytes, or, for all_to_all and send_recv, all ranks'
  /// send buffers one after the other (N x S bytes).
  [[nodiscard]] std::int64_t extent_factor() const { return slices_have_destination(kind) ? rank_count : 1; }

  /// How many equal parts the buffer has by the collective's promise: N shards, N x N blocks (all_to_all), N whole
  /// buffers (send_recv), or one. Part p of all_to_all goes from rank p / N to rank p % N.
  [[nodiscard]] std::int64_t part_count() const;

  /// The factor from algbw to busbw of nccl-tests: all_reduce 2(N-1)/N; all_gather, reduce_scatter, all_to_all, gather,
  /// scatter (N-1)/N; the others 1. Source: nccl-tests, doc/PERFORMANCE.md.
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

/// A checked collective; a root that is not given is rank 0.
/// Errors: invalid_input when a root is out of range or given where there is none.
Result<Collective> make_collective(CollectiveKind kind, std::size_t rank_count, std::optional<Rank> root);

}  // namespace espalier
