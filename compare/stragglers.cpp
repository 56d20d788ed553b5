#include "compare/stragglers.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace espalier::compare {
namespace {

using CallKey = std::tuple<std::string, std::string, std::int64_t>;

struct Seen {
  std::uint32_t rank = 0;
  double seconds = 0;
};

/// The calls of a record with their numbers: those that they have, or how many of their kind come after, negated.
std::vector<CallKey> keys_of(const RankCalls& record) {
  std::map<std::pair<std::string, std::string>, std::int64_t> counted;
  std::vector<CallKey> keys(record.calls.size());
  for (std::size_t i = record.calls.size(); i-- > 0;) {
    const RankCall& call = record.calls[i];
    std::int64_t& number = counted[{call.group, call.collective}];
    keys[i] = {call.group, call.collective, call.number.value_or(--number)};
  }
  return keys;
}

double span_of(const RankCalls& record) {
  if (record.calls.empty()) return 0;
  double begin = record.calls.front().begin, end = begin;
  for (const RankCall& call : record.calls) {
    begin = std::min(begin, call.begin);
    end = std::max(end, call.begin + call.seconds);
  }
  return end - begin;
}

/// Sums by rank of one kind of call.
struct Sums {
  std::size_t calls = 0;
  double cost = 0;
  std::map<std::uint32_t, double> by_rank;
};

}  // namespace

Stragglers find_stragglers(std::span<const RankCalls> records) {
  Stragglers found;
  std::map<CallKey, std::vector<Seen>> calls;
  std::map<std::uint32_t, Straggler> ranks;
  for (const RankCalls& record : records) {
    found.span = std::max(found.span, span_of(record));
    ranks[record.rank].rank = record.rank;
    const std::vector<CallKey> keys = keys_of(record);
    for (std::size_t i = 0; i < keys.size(); ++i) calls[keys[i]].push_back({record.rank, record.calls[i].seconds});
  }
  std::map<std::pair<std::string, std::string>, Sums> kinds;
  for (auto& [key, seen] : calls) {
    if (seen.size() < 2) continue;
    ++found.calls;
    std::ranges::partial_sort(seen, seen.begin() + 2, {}, &Seen::seconds);
    const double cost = seen[1].seconds - seen[0].seconds;
    Straggler& last = ranks[seen[0].rank];
    ++last.last;
    last.cost += cost;
    found.cost += cost;
    Sums& sums = kinds[{std::get<0>(key), std::get<1>(key)}];
    ++sums.calls;
    sums.cost += cost;
    sums.by_rank[seen[0].rank] += cost;
  }
  for (const auto& [rank, straggler] : ranks) found.ranks.push_back(straggler);
  std::ranges::stable_sort(found.ranks, std::ranges::greater(), &Straggler::cost);
  for (const auto& [kind, sums] : kinds) {
    const auto most = std::ranges::max_element(sums.by_rank, {}, [](const auto& each) { return each.second; });
    found.kinds.push_back({kind.first, kind.second, sums.calls, sums.cost, most->first, most->second});
  }
  std::ranges::stable_sort(found.kinds, std::ranges::greater(), &LateCalls::cost);
  return found;
}

}  // namespace espalier::compare
