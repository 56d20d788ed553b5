#include "compare/critical_chain.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <tuple>

namespace espalier {
namespace {

using Index = std::uint32_t;

/// Runs of spans, one per lane, each in the order in which they end.
class LaneLists {
 public:
  template <class Belongs>
  LaneLists(const Timeline& timeline, std::size_t lanes, const Belongs& belongs)
      : timeline_(timeline), begins_(lanes + 1) {
    for (const Span& span : timeline.spans) {
      if (belongs(span)) ++begins_[span.lane + 1];
    }
    std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
    spans_.resize(begins_.back());
    std::vector<std::size_t> next(begins_.begin(), begins_.end() - 1);
    for (std::size_t i = 0; i < timeline.spans.size(); ++i) {
      if (belongs(timeline.spans[i])) spans_[next[timeline.spans[i].lane]++] = static_cast<Index>(i);
    }
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      std::sort(spans_.begin() + static_cast<std::ptrdiff_t>(begins_[lane]),
                spans_.begin() + static_cast<std::ptrdiff_t>(begins_[lane + 1]),
                [&](Index a, Index b) { return rank(a) < rank(b); });
    }
  }

  /// The last span of a lane that ended at `time` or before and that `accept` takes.
  template <class Accept>
  [[nodiscard]] std::optional<Index> last_before(std::uint32_t lane, Picoseconds time, const Accept& accept) const {
    const auto first = spans_.begin() + static_cast<std::ptrdiff_t>(begins_[lane]);
    const auto last = spans_.begin() + static_cast<std::ptrdiff_t>(begins_[lane + 1]);
    auto at = std::upper_bound(first, last, time,
                               [&](Picoseconds limit, Index index) { return limit < timeline_.spans[index].end; });
    while (at != first) {
      if (accept(*--at)) return *at;
    }
    return std::nullopt;
  }

 private:
  /// A reduction that ends with the arrival of its chunk comes after it.
  [[nodiscard]] std::tuple<Picoseconds, Phase, Picoseconds, Index> rank(Index index) const {
    const Span& span = timeline_.spans[index];
    return std::tuple(span.end, span.phase, span.begin, index);
  }

  const Timeline& timeline_;
  std::vector<std::size_t> begins_;
  std::vector<Index> spans_;
};

class ChainFinder {
 public:
  ChainFinder(const Timeline& timeline, const KnownSchedule& known)
      : timeline_(timeline),
        known_(known),
        sends_(timeline, timeline.rank_names.size(), [](const Span& span) { return span.phase == Phase::send; }),
        arrivals_(timeline, timeline.rank_names.size(),
                  [](const Span& span) { return span.phase == Phase::recv || span.phase == Phase::reduce; }),
        reductions_(timeline, timeline.rank_names.size(), [](const Span& span) { return span.phase == Phase::reduce; }),
        wires_(timeline, timeline.link_names.size(), [](const Span& span) { return span.phase == Phase::wire; }),
        by_chunk_(timeline.spans.size()),
        begins_(timeline.spans.size()) {
    std::iota(by_chunk_.begin(), by_chunk_.end(), 0U);
    std::ranges::sort(by_chunk_, {}, [&](Index index) { return std::tuple(chunk_of(index), index); });
    find_begins();
  }

  std::vector<ChainStep> find() const {
    if (timeline_.spans.empty()) return {};
    Index at = 0;
    for (Index i = 1; i < timeline_.spans.size(); ++i) {
      if (std::tuple(span(i).end, span(i).phase) > std::tuple(span(at).end, span(at).phase)) at = i;
    }
    std::vector<ChainStep> steps{{at, begin(at), span(at).end, {}}};
    while (const auto before = enabler_of(at)) {
      const Picoseconds next_begin = begin(at);
      const Picoseconds end = span(*before).end;
      const bool overlaps = end > next_begin;
      steps.push_back(
          {*before, begin(*before), overlaps ? next_begin : end, overlaps ? Picoseconds{} : next_begin - end});
      at = *before;
    }
    std::ranges::reverse(steps);
    return steps;
  }

 private:
  [[nodiscard]] const Span& span(Index index) const { return timeline_.spans[index]; }
  [[nodiscard]] std::pair<TransferId, std::uint32_t> chunk_of(Index index) const {
    return {span(index).transfer, span(index).chunk};
  }

  /// A receiver of a real run may begin to wait before its chunk is sent: a span begins when the phases before it have.
  void find_begins() {
    for (std::size_t first = 0; first < by_chunk_.size();) {
      std::size_t last = first;
      while (last < by_chunk_.size() && chunk_of(by_chunk_[last]) == chunk_of(by_chunk_[first])) ++last;
      for (std::size_t i = first; i < last; ++i) {
        const Span& own = span(by_chunk_[i]);
        Picoseconds begin = own.begin;
        for (std::size_t k = first; k < last; ++k) {
          const Span& other = span(by_chunk_[k]);
          if (other.phase < own.phase && other.begin <= own.end) begin = std::max(begin, other.begin);
        }
        begins_[by_chunk_[i]] = begin;
      }
      first = last;
    }
  }
  [[nodiscard]] Picoseconds begin(Index index) const { return begins_[index]; }

  /// Where a span stands in an order that every step of the walk goes down, so that the walk ends.
  [[nodiscard]] auto order(Index index) const { return std::tuple(begin(index), span(index).phase, index); }

  /// When a span let another begin: at its end, or, where the two overlap (a head that cut through), at its begin.
  [[nodiscard]] Picoseconds enabled_at(Index earlier, Index later) const {
    return span(earlier).end <= begin(later) ? span(earlier).end : begin(earlier);
  }

  [[nodiscard]] std::optional<Index> enabler_of(Index at) const {
    std::optional<Index> best = earlier_on_its_way(at);
    const auto offer = [&](std::optional<Index> other) {
      if (other && (!best || enabled_at(*other, at) > enabled_at(*best, at))) best = other;
    };
    const Span& own = span(at);
    const auto is_before = [&](Index other) { return order(other) < order(at); };
    switch (own.phase) {
      case Phase::send:
        offer(arrivals_.last_before(own.lane, begin(at),
                                    [&](Index other) { return is_before(other) && may_need(own, span(other)); }));
        offer(sends_.last_before(own.lane, begin(at),
                                 [&](Index other) { return is_before(other) && shares_lane(own, span(other)); }));
        // Nothing that it is known to need: it waited for its rank to be free.
        if (!best) offer(arrivals_.last_before(own.lane, begin(at), is_before));
        if (!best) offer(sends_.last_before(own.lane, begin(at), is_before));
        break;
      case Phase::wire: offer(wires_.last_before(own.lane, begin(at), is_before)); break;
      case Phase::reduce: offer(reductions_.last_before(own.lane, begin(at), is_before)); break;
      case Phase::recv: break;  // A receiver only waits for what comes.
    }
    return best;
  }

  /// Of the same chunk, the phase or link before this one.
  [[nodiscard]] std::optional<Index> earlier_on_its_way(Index at) const {
    const auto [first, last] =
        std::ranges::equal_range(by_chunk_, chunk_of(at), {}, [&](Index index) { return chunk_of(index); });
    std::optional<Index> best;
    for (const Index other : std::ranges::subrange(first, last)) {
      const bool is_earlier =
          span(other).phase < span(at).phase || (span(other).phase == Phase::wire && span(at).phase == Phase::wire);
      if (!is_earlier || order(other) >= order(at)) continue;
      if (!best || std::tuple(enabled_at(other, at), order(other)) > std::tuple(enabled_at(*best, at), order(*best))) {
        best = other;
      }
    }
    return best;
  }

  [[nodiscard]] bool may_need(const Span& send, const Span& arrival) const {
    if (known_.schedule == nullptr || !is_known(send.transfer)) return true;
    return std::ranges::any_of(known_.dependencies->of(send.transfer), [&](const Dependency& dependency) {
      return dependency.transfer() == arrival.transfer && dependency.wait() == Wait::arrival;
    });
  }

  [[nodiscard]] bool shares_lane(const Span& send, const Span& other) const {
    if (known_.schedule == nullptr || !is_known(send.transfer) || !is_known(other.transfer)) return true;
    const Transfer& mine = known_.schedule->transfers[send.transfer.index()];
    const Transfer& before = known_.schedule->transfers[other.transfer.index()];
    return mine.channel() == before.channel() && known_.schedule->dst(mine) == known_.schedule->dst(before);
  }

  [[nodiscard]] bool is_known(TransferId transfer) const {
    return transfer.index() < known_.schedule->transfers.size();
  }

  const Timeline& timeline_;
  const KnownSchedule& known_;
  LaneLists sends_, arrivals_, reductions_, wires_;
  std::vector<Index> by_chunk_;
  std::vector<Picoseconds> begins_;  // by span
};

}  // namespace

std::vector<ChainStep> find_critical_chain(const Timeline& timeline, const KnownSchedule& known) {
  return ChainFinder(timeline, known).find();
}

}  // namespace espalier
