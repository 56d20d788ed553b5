#include "schedule/collective.h"

#include <string>

#include "base/check.h"
#include "base/suggest.h"

namespace espalier {

std::string_view to_string(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce: return "all_reduce";
    case CollectiveKind::reduce_scatter: return "reduce_scatter";
    case CollectiveKind::all_gather: return "all_gather";
    case CollectiveKind::broadcast: return "broadcast";
    case CollectiveKind::reduce: return "reduce";
    case CollectiveKind::all_to_all: return "all_to_all";
    case CollectiveKind::gather: return "gather";
    case CollectiveKind::scatter: return "scatter";
    case CollectiveKind::send_recv: return "send_recv";
  }
  ESPALIER_CHECK(false, "a collective without a name");
}

Result<CollectiveKind> parse_collective(std::string_view name) {
  std::vector<std::string_view> names;
  for (const CollectiveKind kind : all_collective_kinds) {
    if (to_string(kind) == name) return kind;
    names.push_back(to_string(kind));
  }
  return fail(ErrorCode::invalid_input, "there is no collective '" + std::string(name) + "'", suggest(name, names));
}

bool has_root(CollectiveKind kind) {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce || kind == CollectiveKind::gather ||
         kind == CollectiveKind::scatter;
}

bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::reduce;
}

bool slices_have_rank(CollectiveKind kind) {
  return kind != CollectiveKind::all_reduce && kind != CollectiveKind::broadcast && kind != CollectiveKind::reduce;
}

bool slices_have_destination(CollectiveKind kind) {
  return kind == CollectiveKind::all_to_all || kind == CollectiveKind::send_recv;
}

std::int64_t Collective::part_count() const {
  const std::int64_t ranks = rank_count;
  if (kind == CollectiveKind::all_to_all) return ranks * ranks;
  return slices_have_rank(kind) ? ranks : 1;
}

PartRanks ranks_of_part(const Collective& collective, std::int64_t part) {
  const std::int64_t ranks = collective.rank_count;
  const auto rank = [](std::int64_t index) { return Rank(static_cast<std::size_t>(index)); };
  if (collective.kind == CollectiveKind::all_to_all) return {rank(part / ranks), rank(part % ranks)};
  if (collective.kind == CollectiveKind::send_recv) return {rank(part), rank((part + 1) % ranks)};
  return {slices_have_rank(collective.kind) ? rank(part) : Rank(), Rank()};
}

Rank bringer_of(const Collective& collective, PartRanks part) {
  switch (collective.kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::reduce: return {};
    case CollectiveKind::broadcast:
    case CollectiveKind::scatter: return collective.root;
    case CollectiveKind::all_gather:
    case CollectiveKind::gather:
    case CollectiveKind::all_to_all:
    case CollectiveKind::send_recv: return part.rank;
  }
  ESPALIER_CHECK(false, "a collective without a rule");
}

Rank receiver_of(const Collective& collective, PartRanks part) {
  switch (collective.kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::all_gather:
    case CollectiveKind::broadcast: return {};
    case CollectiveKind::reduce:
    case CollectiveKind::gather: return collective.root;
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::scatter: return part.rank;
    case CollectiveKind::all_to_all:
    case CollectiveKind::send_recv: return part.to;
  }
  ESPALIER_CHECK(false, "a collective without a rule");
}

Rational Collective::busbw_factor() const {
  const std::int64_t ranks = rank_count;
  switch (kind) {
    case CollectiveKind::all_reduce: return make_rational(2 * (ranks - 1), ranks);
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::send_recv: return make_rational(1);
    default: return make_rational(ranks - 1, ranks);
  }
}

Result<Collective> make_collective(CollectiveKind kind, std::size_t rank_count, std::optional<Rank> root) {
  Collective collective{kind, static_cast<std::uint32_t>(rank_count), Rank()};
  if (!has_root(kind)) {
    if (root)
      return fail(ErrorCode::invalid_input, std::string(to_string(kind)) + " has no root", "leave the root out");
    return collective;
  }
  collective.root = root.value_or(Rank(0));
  if (collective.root.index() >= rank_count) {
    return fail(ErrorCode::invalid_input,
                "root " + std::to_string(collective.root.index()) + " is not one of the " + std::to_string(rank_count) +
                    " ranks",
                "give a root from 0 to " + std::to_string(rank_count - 1));
  }
  return collective;
}

}  // namespace espalier
