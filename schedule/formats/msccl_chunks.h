#pragma once

// Tested by: tests/property/schedule/formats_test.cpp

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier {

/// A chunk of one of a rank's buffers in MSCCL: i (input), o (output), s (scratch).
struct MscclChunk {
  char buffer = 'i';
  std::int64_t offset = 0;
};

/// How MSCCL names a collective; nothing for those that it does not have, or has without their root.
std::optional<std::string_view> msccl_name(CollectiveKind kind);
std::optional<CollectiveKind> find_msccl_collective(std::string_view name);

/// A schedule in equal chunks.
struct MscclCut {
  std::int64_t unit = 0;    ///< Units of the schedule that are a chunk.
  std::int64_t chunks = 0;  ///< Of a rank's larger buffer.
};

/// The coarsest equal chunks that every slice has whole ones of. Errors: unsupported, for what `format` cannot say:
/// relays, collectives with a root, unequal shards, more than `most` chunks.
Result<MscclCut> cut_msccl_chunks(const Schedule& schedule, const Topology& topology, std::string_view format,
                                  std::int64_t most);

/// Where the chunks of a collective's buffer lie at each rank. `chunks` are those of a rank's larger buffer;
/// all_reduce, all_gather and reduce_scatter work in place, all_to_all has a scratch buffer for what only passes a
/// rank.
class MscclBuffers {
 public:
  /// Requires: chunks that divide into the parts of the collective.
  MscclBuffers(const Collective& collective, std::int64_t chunks) : collective_(collective), chunks_(chunks) {}

  /// Chunks of the buffer that the schedule's units stand for.
  [[nodiscard]] std::int64_t total() const { return chunks_ * collective_.extent_factor(); }
  /// Where a rank holds a chunk of that buffer; takes scratch for one that only passes it.
  MscclChunk at(Rank rank, std::int64_t chunk);
  /// The chunk that lies in a place of input or output; nothing beyond their ends, and for scratch.
  [[nodiscard]] std::optional<std::int64_t> find(Rank rank, MscclChunk place) const;

  [[nodiscard]] std::int64_t inputs() const;
  [[nodiscard]] std::int64_t outputs() const;
  [[nodiscard]] std::int64_t scratch(Rank rank) const;

 private:
  [[nodiscard]] std::int64_t shard() const { return chunks_ / collective_.rank_count; }

  Collective collective_;
  std::int64_t chunks_;
  std::map<Rank, std::map<std::int64_t, std::int64_t>> scratch_;
};

}  // namespace espalier
