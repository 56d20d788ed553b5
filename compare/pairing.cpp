#include "compare/pairing.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "schedule/timeline/thin_timeline.h"

namespace espalier::compare {
namespace {

/// For each name of b its number among the names of a, to which those are appended that a lacks.
std::vector<std::uint32_t> match_names(std::vector<std::string>& a, const std::vector<std::string>& b, bool& renamed) {
  std::unordered_map<std::string, std::uint32_t> numbers;
  for (std::size_t i = 0; i < a.size(); ++i) numbers.emplace(a[i], static_cast<std::uint32_t>(i));
  const bool share_names = std::ranges::any_of(b, [&](const std::string& name) { return numbers.contains(name); });
  std::vector<std::uint32_t> lanes(b.size());
  if (!share_names && a.size() == b.size()) {
    renamed = !a.empty();
    std::iota(lanes.begin(), lanes.end(), 0U);
    return lanes;
  }
  for (std::size_t i = 0; i < b.size(); ++i) {
    const auto [found, is_new] = numbers.emplace(b[i], static_cast<std::uint32_t>(a.size()));
    if (is_new) a.push_back(b[i]);
    lanes[i] = found->second;
  }
  return lanes;
}

void align_lanes(AlignedTimelines& aligned) {
  bool ranks_renamed = false;
  bool links_renamed = false;
  const auto ranks = match_names(aligned.a.rank_names, aligned.b.rank_names, ranks_renamed);
  const auto links = match_names(aligned.a.link_names, aligned.b.link_names, links_renamed);
  for (Span& span : aligned.b.spans) span.lane = (span.phase == Phase::wire ? links : ranks)[span.lane];
  aligned.b.rank_names = aligned.a.rank_names;
  aligned.b.link_names = aligned.a.link_names;
  if (ranks_renamed) aligned.notes.emplace_back("the ranks have other names in the two timelines; paired by number");
  if (links_renamed) aligned.notes.emplace_back("the links have other names in the two timelines; paired by number");
}

/// One more than the largest chunk of each transfer.
std::map<TransferId, std::uint64_t> chunk_counts(const Timeline& timeline) {
  std::map<TransferId, std::uint64_t> counts;
  for (const Span& span : timeline.spans) {
    std::uint64_t& count = counts[span.transfer];
    count = std::max(count, std::uint64_t{span.chunk} + 1);
  }
  return counts;
}

bool chunks_differ(const Timeline& a, const Timeline& b) {
  const auto counts = chunk_counts(a);
  return std::ranges::any_of(chunk_counts(b), [&](const auto& entry) {
    const auto other = counts.find(entry.first);
    return other != counts.end() && other->second != entry.second;
  });
}

auto kind_of(const Span& span) { return std::tuple(span.transfer, span.chunk, span.phase, span.lane); }

/// One span per transfer, phase and lane, from the first chunk's begin to the last one's end.
void merge_chunks(Timeline& timeline) {
  std::map<std::tuple<TransferId, Phase, std::uint32_t>, Span> merged;
  for (const Span& span : timeline.spans) {
    const auto [found, is_new] = merged.emplace(std::tuple(span.transfer, span.phase, span.lane), span);
    Span& whole = found->second;
    whole.chunk = 0;
    whole.begin = std::min(whole.begin, span.begin);
    whole.end = std::max(whole.end, span.end);
  }
  timeline.spans.clear();
  for (const auto& [key, span] : merged) timeline.spans.push_back(span);
  std::ranges::stable_sort(timeline.spans, {},
                           [](const Span& span) { return std::tuple(span.begin, span.lane, span.phase); });
}

std::vector<std::uint32_t> sorted_spans(const Timeline& timeline) {
  std::vector<std::uint32_t> order(timeline.spans.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t index) {
    const Span& span = timeline.spans[index];
    return std::tuple_cat(kind_of(span), std::tuple(span.begin, span.end));
  });
  return order;
}

}  // namespace

AlignedTimelines align(Timeline a, Timeline b) {
  AlignedTimelines aligned{std::move(a), std::move(b), false, {}};
  align_lanes(aligned);
  if (const std::uint32_t every = thin_alike(aligned.a, aligned.b); every > 1) {
    aligned.notes.push_back(fmt::format(
        "timelines are thinned: 1 chunk in {} is compared, and totals are from the first to the last of them", every));
  }
  if (chunks_differ(aligned.a, aligned.b)) {
    aligned.by_transfer = true;
    aligned.notes.emplace_back(
        "transfers are cut into other chunks in the two timelines; whole transfers are compared");
    merge_chunks(aligned.a);
    merge_chunks(aligned.b);
  }
  return aligned;
}

Pairing pair_spans(const Timeline& a, const Timeline& b) {
  const std::vector<std::uint32_t> left = sorted_spans(a);
  const std::vector<std::uint32_t> right = sorted_spans(b);
  Pairing pairing;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < left.size() || j < right.size()) {
    if (j == right.size()) {
      pairing.only_a.push_back(left[i++]);
    } else if (i == left.size()) {
      pairing.only_b.push_back(right[j++]);
    } else {
      const auto kind_a = kind_of(a.spans[left[i]]);
      const auto kind_b = kind_of(b.spans[right[j]]);
      if (kind_a == kind_b) {
        pairing.pairs.push_back({left[i++], right[j++]});
      } else if (kind_a < kind_b) {
        pairing.only_a.push_back(left[i++]);
      } else {
        pairing.only_b.push_back(right[j++]);
      }
    }
  }
  return pairing;
}

Extent extent_of(const Timeline& timeline) {
  if (timeline.spans.empty()) return {};
  Extent extent{timeline.spans.front().begin, timeline.spans.front().end};
  for (const Span& span : timeline.spans) {
    extent.begin = std::min(extent.begin, span.begin);
    extent.end = std::max(extent.end, span.end);
  }
  return extent;
}

}  // namespace espalier::compare
