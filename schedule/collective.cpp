#include "schedule/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
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

bool has_shards(CollectiveKind kind) { return slices_have_rank(kind) && !slices_have_destination(kind); }

bool has_blocks(CollectiveKind kind) { return kind == CollectiveKind::all_to_all; }

std::int64_t Collective::share_sum() const {
  return shares.empty() ? part_count() : std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
}

std::int64_t Collective::extent_factor() const {
  ESPALIER_CHECK(!has_matrix(), "the blocks of a matrix are no whole multiple of S");
  return slices_have_destination(kind) ? rank_count : 1;
}

Rational Collective::extent() const {
  return has_matrix() ? make_rational(share_sum(), largest_line()) : make_rational(extent_factor());
}

namespace {

/// Of a traffic matrix, by rank: what it sends and what it receives, or only what goes to others.
struct Lines {
  std::vector<std::int64_t> sent;
  std::vector<std::int64_t> received;

  [[nodiscard]] std::int64_t largest() const {
    return std::max(*std::ranges::max_element(sent), *std::ranges::max_element(received));
  }
};

Lines sum_lines(const Collective& collective, bool with_own) {
  const std::size_t ranks = collective.rank_count;
  Lines lines{std::vector<std::int64_t>(ranks), std::vector<std::int64_t>(ranks)};
  for (std::size_t from = 0; from < ranks; ++from) {
    for (std::size_t to = 0; to < ranks; ++to) {
      if (from == to && !with_own) continue;
      lines.sent[from] += collective.block(Rank(from), Rank(to));
      lines.received[to] += collective.block(Rank(from), Rank(to));
    }
  }
  return lines;
}

}  // namespace

std::int64_t Collective::largest_line() const {
  return shares.empty() ? std::int64_t{rank_count} : sum_lines(*this, true).largest();
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
  if (has_matrix()) return make_rational(sum_lines(*this, false).largest(), largest_line());
  switch (kind) {
    case CollectiveKind::all_reduce: return make_rational(2 * (ranks - 1), ranks);
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::send_recv: return make_rational(1);
    case CollectiveKind::gather:
    case CollectiveKind::scatter: {
      const std::int64_t sum = share_sum();
      return make_rational(sum - share_of(root), sum);
    }
    default: return make_rational(ranks - 1, ranks);
  }
}

std::optional<std::string> why_bad_shares(const Collective& collective) {
  const std::vector<std::int64_t>& shares = collective.shares;
  if (shares.empty()) return std::nullopt;
  const bool are_blocks = has_blocks(collective.kind);
  const std::size_t ranks = collective.rank_count;
  if (!are_blocks && !has_shards(collective.kind)) {
    return fmt::format("{} has no shards that could be unequal", to_string(collective.kind));
  }
  if (are_blocks && ranks > max_matrix_ranks) {
    return fmt::format("a traffic matrix of {} ranks is past the limit of {}", ranks, max_matrix_ranks);
  }
  if (shares.size() != (are_blocks ? ranks * ranks : ranks)) {
    if (!are_blocks) return fmt::format("there are {} shares for {} ranks", shares.size(), ranks);
    return fmt::format("the traffic matrix has {} blocks, and {} ranks have {}", shares.size(), ranks, ranks * ranks);
  }
  const auto name = [&](std::size_t part) {
    return are_blocks ? fmt::format("block from rank {} to rank {}", part / ranks, part % ranks)
                      : fmt::format("share of rank {}", part);
  };
  const std::int64_t most = are_blocks ? max_matrix_sum : max_share_sum;
  std::int64_t sum = 0;
  for (std::size_t part = 0; part < shares.size(); ++part) {
    if (shares[part] < 0) return fmt::format("the {} is {}, below zero", name(part), shares[part]);
    if (shares[part] > most - sum) {
      return are_blocks ? "the blocks sum to more than 2^52" : "the shares sum to more than 2^40";
    }
    sum += shares[part];
  }
  if (sum == 0) return are_blocks ? "all blocks are zero" : "all shares are zero";
  return std::nullopt;
}

namespace {

/// The shares in lowest terms; none when all are equal.
std::vector<std::int64_t> in_lowest_terms(std::vector<std::int64_t> shares) {
  if (std::adjacent_find(shares.begin(), shares.end(), std::not_equal_to<>()) == shares.end()) return {};
  std::int64_t common = 0;
  for (const std::int64_t share : shares) common = std::gcd(common, share);
  for (std::int64_t& share : shares) share /= common;
  return shares;
}

Result<Rank> checked_root(CollectiveKind kind, std::size_t rank_count, std::optional<Rank> root) {
  if (!has_root(kind)) {
    if (!root) return Rank();
    return fail(ErrorCode::invalid_input, std::string(to_string(kind)) + " has no root", "leave the root out");
  }
  const Rank chosen = root.value_or(Rank(0));
  if (chosen.index() < rank_count) return chosen;
  return fail(ErrorCode::invalid_input,
              "root " + std::to_string(chosen.index()) + " is not one of the " + std::to_string(rank_count) + " ranks",
              "give a root from 0 to " + std::to_string(rank_count - 1));
}

}  // namespace

Result<Collective> make_collective(CollectiveKind kind, std::size_t rank_count, std::optional<Rank> root,
                                   std::vector<std::int64_t> shares) {
  const Result<Rank> checked = checked_root(kind, rank_count, root);
  if (!checked) return tl::unexpected(checked.error());
  Collective collective{kind, static_cast<std::uint32_t>(rank_count), *checked, std::move(shares)};
  if (const auto wrong = why_bad_shares(collective)) {
    return fail(ErrorCode::invalid_input, *wrong,
                has_blocks(kind)   ? "give a row of whole numbers per rank: what it sends to each rank, not all zero"
                : has_shards(kind) ? "give a whole number per rank, in the order of the ranks, not all zero"
                                   : "all_gather, reduce_scatter, gather and scatter take shares");
  }
  collective.shares = in_lowest_terms(std::move(collective.shares));
  return collective;
}

}  // namespace espalier
