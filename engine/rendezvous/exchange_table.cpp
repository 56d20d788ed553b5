#include "engine/rendezvous/exchange_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "engine/rendezvous/control_plane.h"
#include "engine/rendezvous/names.h"

namespace espalier::engine::rendezvous {
namespace {

ExchangeTable::Answer answer_one(std::uint32_t rank, std::uint64_t id, Error error) {
  return {{{rank, id}}, std::make_shared<const Blobs>(tl::unexpected<Error>(std::move(error)))};
}

}  // namespace

std::optional<Error> ExchangeTable::refuse(std::uint32_t rank, const Put& put) const {
  std::vector<std::uint32_t> sorted = put.members;
  std::ranges::sort(sorted);
  const bool is_distinct = std::ranges::adjacent_find(sorted) == sorted.end();
  if (!is_distinct || sorted.empty() || sorted.back() >= world_ || !std::ranges::binary_search(sorted, rank)) {
    return Error{ErrorCode::invalid_input,
                 fmt::format("exchange '{}': its members must be distinct ranks below {}, among them rank {}", put.tag,
                             world_, rank),
                 {}};
  }
  for (const std::uint32_t member : sorted) {
    if (left_.contains(member)) {
      return Error{ErrorCode::unavailable, fmt::format("exchange '{}': rank {} has left the job", put.tag, member),
                   "a rank may leave only when nobody needs it any more: put a barrier before its leaving"};
    }
  }
  const auto found = exchanges_.find(Key{put.tag, put.members});
  if (found != exchanges_.end() && found->second.parts.contains(rank)) {
    return Error{ErrorCode::invalid_input, fmt::format("exchange '{}': rank {} is in it already", put.tag, rank),
                 "give exchanges that run at once tags of their own"};
  }
  return std::nullopt;
}

ExchangeTable::Answer ExchangeTable::finish(const Key& key, Exchange exchange) const {
  Answer answer;
  for (const auto& [rank, part] : exchange.parts) answer.to.emplace_back(rank, part.id);
  if (exchange.size > largest_exchange) {
    answer.blobs = std::make_shared<const Blobs>(
        fail(ErrorCode::too_large, fmt::format("exchange '{}': {} bytes in all, at most {} are passed on", key.first,
                                               exchange.size, largest_exchange)));
    return answer;
  }
  std::vector<std::string> blobs;
  blobs.reserve(key.second.size());
  for (const std::uint32_t member : key.second) blobs.push_back(std::move(exchange.parts.at(member).blob));
  answer.blobs = std::make_shared<const Blobs>(std::move(blobs));
  return answer;
}

std::optional<ExchangeTable::Answer> ExchangeTable::put(std::uint32_t rank, Put put, Time now) {
  if (auto error = refuse(rank, put)) return answer_one(rank, put.id, std::move(*error));
  // Past a year a deadline would only risk overflow.
  constexpr std::uint64_t longest_timeout_ms = std::uint64_t{365} * 24 * 3600 * 1000;
  const std::chrono::milliseconds timeout(std::min(put.timeout_ms, longest_timeout_ms));
  const auto place = exchanges_.try_emplace(Key{std::move(put.tag), std::move(put.members)}).first;
  Exchange& exchange = place->second;
  exchange.size += put.blob.size();
  if (exchange.size > largest_exchange) {
    put.blob.clear();  // It ends in an error anyway; the memory is not kept.
  }
  exchange.parts.emplace(rank, Part{put.id, now + timeout, timeout, std::move(put.blob)});
  if (exchange.parts.size() < place->first.second.size()) return std::nullopt;
  Answer answer = finish(place->first, std::move(exchange));
  exchanges_.erase(place);
  return answer;
}

std::vector<ExchangeTable::Answer> ExchangeTable::expire(Time now) {
  std::vector<Answer> answers;
  for (auto at = exchanges_.begin(); at != exchanges_.end();) {
    auto& [key, exchange] = *at;
    std::vector<std::uint32_t> missing;
    for (const std::uint32_t member : key.second) {
      if (!exchange.parts.contains(member)) missing.push_back(member);
    }
    std::erase_if(exchange.parts, [&](const auto& entry) {
      const Part& part = entry.second;
      if (part.deadline > now) return false;
      exchange.size -= part.blob.size();
      answers.push_back(answer_one(entry.first, part.id,
                                   {ErrorCode::unavailable,
                                    fmt::format("exchange '{}': {} did not come within {}", key.first,
                                                ranks_text(missing), duration_text(part.timeout)),
                                    "look at what those ranks are doing, or allow more time"}));
      return true;
    });
    at = exchange.parts.empty() ? exchanges_.erase(at) : std::next(at);
  }
  return answers;
}

void ExchangeTable::postpone(Time::duration time) {
  for (auto& [key, exchange] : exchanges_) {
    for (auto& [rank, part] : exchange.parts) part.deadline += time;
  }
}

std::vector<ExchangeTable::Answer> ExchangeTable::leave(std::uint32_t rank) {
  left_.insert(rank);
  std::vector<Answer> answers;
  for (auto at = exchanges_.begin(); at != exchanges_.end();) {
    const auto& [key, exchange] = *at;
    if (std::ranges::find(key.second, rank) == key.second.end()) {
      ++at;
      continue;
    }
    Answer answer;
    for (const auto& [member, part] : exchange.parts) answer.to.emplace_back(member, part.id);
    answer.blobs = std::make_shared<const Blobs>(
        fail(ErrorCode::unavailable, fmt::format("exchange '{}': rank {} left the job", key.first, rank),
             "a rank may leave only when nobody needs it any more: put a barrier before its leaving"));
    answers.push_back(std::move(answer));
    at = exchanges_.erase(at);
  }
  return answers;
}

std::optional<ExchangeTable::Time> ExchangeTable::next_deadline() const {
  std::optional<Time> next;
  for (const auto& [key, exchange] : exchanges_) {
    for (const auto& [rank, part] : exchange.parts) {
      if (!next || part.deadline < *next) next = part.deadline;
    }
  }
  return next;
}

}  // namespace espalier::engine::rendezvous
