#include "schedule/formats/msccl_chunks.h"

#include <fmt/format.h>

#include <array>
#include <numeric>

#include "schedule/formats/writers.h"

namespace espalier {
namespace {

constexpr std::array<std::pair<CollectiveKind, std::string_view>, 4> msccl_names = {
    {{CollectiveKind::all_reduce, "allreduce"},
     {CollectiveKind::all_gather, "allgather"},
     {CollectiveKind::reduce_scatter, "reducescatter"},
     {CollectiveKind::all_to_all, "alltoall"}}};

}  // namespace

std::optional<std::string_view> msccl_name(CollectiveKind kind) {
  for (const auto& [known, name] : msccl_names) {
    if (known == kind) return name;
  }
  return std::nullopt;
}

std::optional<CollectiveKind> find_msccl_collective(std::string_view name) {
  for (const auto& [kind, known] : msccl_names) {
    if (known == name) return kind;
  }
  return std::nullopt;
}

Result<MscclCut> cut_msccl_chunks(const Schedule& schedule, const Topology& topology, std::string_view format,
                                  std::int64_t most) {
  if (auto refused = refuse_relays(schedule, topology, format); !refused) return tl::unexpected(refused.error());
  const Collective& collective = schedule.collective;
  if (!msccl_name(collective.kind)) {
    return fail(ErrorCode::unsupported,
                fmt::format("{} has no {} with a root or peer of its own", format, to_string(collective.kind)),
                "it has all_reduce, all_gather, reduce_scatter and all_to_all");
  }
  if (!collective.shares.empty()) {
    const bool are_blocks = collective.has_matrix();
    return fail(ErrorCode::unsupported, fmt::format("{} has no unequal {}", format, are_blocks ? "blocks" : "shards"),
                are_blocks ? "plan without --matrix" : "plan without --shares");
  }
  std::int64_t unit = schedule.units / collective.part_count();
  for (const Slice& slice : schedule.slices) unit = std::gcd(std::gcd(unit, slice.offset), slice.length);
  const std::int64_t chunks = schedule.units / unit / collective.extent_factor();
  if (chunks > most) {
    return fail(ErrorCode::unsupported,
                fmt::format("the plan cuts the buffer into {} equal chunks, more than {}", chunks, most),
                "plan with fewer trees (--max-trees), or another algorithm");
  }
  return MscclCut{unit, chunks};
}

MscclChunk MscclBuffers::at(Rank rank, std::int64_t chunk) {
  switch (collective_.kind) {
    case CollectiveKind::all_gather: return {'o', chunk};
    case CollectiveKind::all_to_all: break;
    default: return {'i', chunk};
  }
  // Block p of the whole goes from rank p / N to rank p mod N.
  const std::int64_t ranks = collective_.rank_count, own = static_cast<std::int64_t>(rank.index());
  const std::int64_t from = chunk / shard() / ranks, to = chunk / shard() % ranks;
  if (to == own) return {'o', from * shard() + chunk % shard()};
  if (from == own) return {'i', to * shard() + chunk % shard()};
  auto& places = scratch_[rank];
  return {'s', places.emplace(chunk, static_cast<std::int64_t>(places.size())).first->second};
}

std::optional<std::int64_t> MscclBuffers::find(Rank rank, MscclChunk place) const {
  const std::int64_t own = static_cast<std::int64_t>(rank.index()), ranks = collective_.rank_count;
  const std::int64_t limit = place.buffer == 'i' ? inputs() : place.buffer == 'o' ? outputs() : 0;
  if (place.offset < 0 || place.offset >= limit) return std::nullopt;
  if (collective_.kind == CollectiveKind::all_to_all) {
    const std::int64_t other = place.offset / shard(), within = place.offset % shard();
    const std::int64_t block = place.buffer == 'i' ? own * ranks + other : other * ranks + own;
    return block * shard() + within;
  }
  const bool is_shard = (collective_.kind == CollectiveKind::all_gather && place.buffer == 'i') ||
                        (collective_.kind == CollectiveKind::reduce_scatter && place.buffer == 'o');
  return is_shard ? own * shard() + place.offset : place.offset;
}

std::int64_t MscclBuffers::inputs() const { return collective_.kind == CollectiveKind::all_gather ? shard() : chunks_; }

std::int64_t MscclBuffers::outputs() const {
  return collective_.kind == CollectiveKind::reduce_scatter ? shard() : chunks_;
}

std::int64_t MscclBuffers::scratch(Rank rank) const {
  const auto found = scratch_.find(rank);
  return found == scratch_.end() ? 0 : static_cast<std::int64_t>(found->second.size());
}

}  // namespace espalier
