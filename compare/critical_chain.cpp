#include "compare/critical_chain.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "compare/span_lists.h"

namespace espalier::compare {
namespace {

struct ByLane {
  std::span<const Span> spans;
  std::uint32_t operator()(SpanIndex i) const { return spans[i].lane; }
};
struct ByLaneAndTransfer {
  std::span<const Span> spans;
  std::pair<std::uint32_t, TransferId> operator()(SpanIndex i) const { return {spans[i].lane, spans[i].transfer}; }
};
struct ByChunkAndPhase {
  std::span<const Span> spans;
  std::tuple<TransferId, std::uint32_t, Phase> operator()(SpanIndex i) const {
    return {spans[i].transfer, spans[i].chunk, spans[i].phase};
  }
};

/// Sends by lane and by what a schedule sends in program order: one channel to one destination.
struct ByLaneAndStream {
  static constexpr std::uint32_t unknown = std::numeric_limits<std::uint32_t>::max();

  std::span<const Span> spans;
  std::span<const std::uint32_t> streams;  ///< By transfer.

  [[nodiscard]] std::uint32_t stream_of(TransferId transfer) const {
    return transfer.index() < streams.size() ? streams[transfer.index()] : unknown;
  }
  std::pair<std::uint32_t, std::uint32_t> operator()(SpanIndex i) const {
    return {spans[i].lane, stream_of(spans[i].transfer)};
  }
};

std::vector<std::uint32_t> streams_of(const Schedule* schedule) {
  if (schedule == nullptr) return {};
  std::map<std::pair<ChannelId, Rank>, std::uint32_t> numbers;
  std::vector<std::uint32_t> streams;
  streams.reserve(schedule->transfers.size());
  for (const Transfer& transfer : schedule->transfers) {
    const std::pair key(transfer.channel(), schedule->dst(transfer));
    streams.push_back(numbers.emplace(key, static_cast<std::uint32_t>(numbers.size())).first->second);
  }
  return streams;
}

/// A receiver of a real run may begin to wait before its chunk is sent: a span begins when the phases before it have,
/// those that had begun before its end.
std::vector<Picoseconds> find_begins(std::span<const Span> spans) {
  const ByChunkAndPhase key{spans};
  const SpanLists lists(
      spans, key, [&](SpanIndex i) { return spans[i].begin; }, [](const Span&) { return true; });
  const auto is_any = [](SpanIndex) { return true; };
  std::vector<Picoseconds> begins(spans.size());
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const Span& own = spans[i];
    begins[i] = own.begin;
    for (const Phase phase : {Phase::send, Phase::wire, Phase::recv}) {
      if (phase >= own.phase) break;
      const auto has_begun = [&](SpanIndex other) { return spans[other].begin <= own.end; };
      const auto last = lists.last_of(std::tuple(own.transfer, own.chunk, phase), has_begun, is_any);
      if (last) begins[i] = std::max(begins[i], spans[*last].begin);
    }
  }
  return begins;
}

bool is_arrival(const Span& span) { return span.phase == Phase::recv || span.phase == Phase::reduce; }

class ChainFinder {
 public:
  ChainFinder(std::span<const Span> spans, const KnownSchedule& known)
      : spans_(spans),
        known_(known),
        streams_(streams_of(known.schedule)),
        begins_(find_begins(spans)),
        sends_(by_end(ByLane{spans}, [](const Span& span) { return span.phase == Phase::send; })),
        arrivals_(by_end(ByLane{spans}, is_arrival)),
        reductions_(by_end(ByLane{spans}, [](const Span& span) { return span.phase == Phase::reduce; })),
        wires_(by_end(ByLane{spans}, [](const Span& span) { return span.phase == Phase::wire; })),
        stream_sends_(by_end(ByLaneAndStream{spans, streams_},
                             [&](const Span& span) { return has_schedule() && span.phase == Phase::send; })),
        transfer_arrivals_(
            by_end(ByLaneAndTransfer{spans}, [&](const Span& span) { return has_schedule() && is_arrival(span); })),
        ended_(
            spans, ByChunkAndPhase{spans}, [&](SpanIndex i) { return std::tuple(spans_[i].end, order(i)); },
            [](const Span&) { return true; }),
        begun_(
            spans, ByChunkAndPhase{spans}, [&](SpanIndex i) { return order(i); }, [](const Span&) { return true; }) {
    begun_.prepare_tests([&](SpanIndex x, SpanIndex y) { return spans_[x].end > spans_[y].end; });
  }

  std::vector<ChainStep> find() const {
    if (spans_.empty()) return {};
    SpanIndex at = 0;
    for (SpanIndex i = 1; i < spans_.size(); ++i) {
      if (std::tuple(spans_[i].end, spans_[i].phase) > std::tuple(spans_[at].end, spans_[at].phase)) at = i;
    }
    std::vector<ChainStep> steps{{at, begins_[at], spans_[at].end, {}}};
    while (const auto before = enabler_of(at)) {
      const Picoseconds next_begin = begins_[at];
      const Picoseconds end = spans_[*before].end;
      const bool overlaps = end > next_begin;
      steps.push_back(
          {*before, begins_[*before], overlaps ? next_begin : end, overlaps ? Picoseconds{} : next_begin - end});
      at = *before;
    }
    std::ranges::reverse(steps);
    return steps;
  }

 private:
  using Found = std::optional<SpanIndex>;

  [[nodiscard]] bool has_schedule() const { return known_.schedule != nullptr; }

  /// Where a span stands in an order that every step of the walk goes down, so that the walk ends.
  [[nodiscard]] std::tuple<Picoseconds, Phase, SpanIndex> order(SpanIndex i) const {
    return {begins_[i], spans_[i].phase, i};
  }

  /// In the order of ends: a reduction that ends with the arrival of its chunk comes after it.
  [[nodiscard]] std::tuple<Picoseconds, Phase, Picoseconds, SpanIndex> end_order(SpanIndex i) const {
    return {spans_[i].end, spans_[i].phase, spans_[i].begin, i};
  }

  template <class Key, class Belongs>
  SpanLists<Key> by_end(const Key& key, const Belongs& belongs) const {
    SpanLists<Key> lists(
        spans_, key, [&](SpanIndex i) { return end_order(i); }, belongs);
    lists.prepare_tests([&](SpanIndex x, SpanIndex y) { return order(x) < order(y); });
    return lists;
  }

  /// The last span of a list to end before a span begins.
  template <class Key, class KeyValue>
  [[nodiscard]] Found last_before(const SpanLists<Key>& lists, const KeyValue& key, SpanIndex at) const {
    return lists.last_of(
        key, [&](SpanIndex other) { return spans_[other].end <= begins_[at]; },
        [&](SpanIndex other) { return order(other) < order(at); });
  }

  [[nodiscard]] Found later_end(Found a, Found b) const {
    if (!a || !b) return a ? a : b;
    return end_order(*a) < end_order(*b) ? b : a;
  }

  /// When a span let another begin: at its end, or, where the two overlap (a head that cut through), at its begin.
  [[nodiscard]] Picoseconds enabled_at(SpanIndex earlier, SpanIndex later) const {
    return spans_[earlier].end <= begins_[later] ? spans_[earlier].end : begins_[earlier];
  }

  [[nodiscard]] Found enabler_of(SpanIndex at) const {
    Found best = earlier_on_its_way(at);
    const auto consider = [&](Found other) {
      if (other && (!best || enabled_at(*other, at) > enabled_at(*best, at))) best = other;
    };
    const std::uint32_t lane = spans_[at].lane;
    switch (spans_[at].phase) {
      case Phase::send:
        consider(last_needed_arrival(at));
        consider(last_of_its_stream(at));
        // Nothing that it is known to need: it waited for its rank to be free.
        if (!best) consider(last_before(arrivals_, lane, at));
        if (!best) consider(last_before(sends_, lane, at));
        break;
      case Phase::wire: consider(last_before(wires_, lane, at)); break;
      case Phase::reduce: consider(last_before(reductions_, lane, at)); break;
      case Phase::recv: break;  // A receiver only waits for what comes.
    }
    return best;
  }

  /// Of the same chunk, the phase or link before this one: what enabled it last.
  [[nodiscard]] Found earlier_on_its_way(SpanIndex at) const {
    Found best;
    const auto consider = [&](Found other) {
      if (!other) return;
      if (!best ||
          std::tuple(enabled_at(*other, at), order(*other)) > std::tuple(enabled_at(*best, at), order(*best))) {
        best = other;
      }
    };
    const Span& own = spans_[at];
    for (const Phase phase : {Phase::send, Phase::wire, Phase::recv}) {
      if (phase > own.phase || (phase == own.phase && phase != Phase::wire)) break;
      const std::tuple key(own.transfer, own.chunk, phase);
      consider(ended_.last_of(
          key, [&](SpanIndex i) { return std::tuple(spans_[i].end, order(i)) < std::tuple(begins_[at], order(at)); },
          [](SpanIndex) { return true; }));
      consider(begun_.last_of(
          key, [&](SpanIndex i) { return order(i) < order(at); },
          [&](SpanIndex i) { return spans_[i].end > begins_[at]; }));
    }
    return best;
  }

  [[nodiscard]] Found last_needed_arrival(SpanIndex at) const {
    const Span& own = spans_[at];
    if (own.transfer.index() >= streams_.size()) return last_before(arrivals_, own.lane, at);
    Found last;
    for (const Dependency& dependency : known_.dependencies->of(own.transfer)) {
      if (dependency.wait() != Wait::arrival) continue;
      last = later_end(last, last_before(transfer_arrivals_, std::pair(own.lane, dependency.transfer()), at));
    }
    return last;
  }

  [[nodiscard]] Found last_of_its_stream(SpanIndex at) const {
    const Span& own = spans_[at];
    if (own.transfer.index() >= streams_.size()) return last_before(sends_, own.lane, at);
    return later_end(last_before(stream_sends_, std::pair(own.lane, streams_[own.transfer.index()]), at),
                     last_before(stream_sends_, std::pair(own.lane, ByLaneAndStream::unknown), at));
  }

  std::span<const Span> spans_;
  const KnownSchedule& known_;
  std::vector<std::uint32_t> streams_;  // by transfer, where a schedule is known
  std::vector<Picoseconds> begins_;     // by span
  SpanLists<ByLane> sends_, arrivals_, reductions_, wires_;
  SpanLists<ByLaneAndStream> stream_sends_;
  SpanLists<ByLaneAndTransfer> transfer_arrivals_;
  SpanLists<ByChunkAndPhase> ended_, begun_;  // by end, those that began later last; in the order of the walk
};

}  // namespace

std::vector<ChainStep> find_critical_chain(const Timeline& timeline, const KnownSchedule& known) {
  return ChainFinder(timeline.spans, known).find();
}

}  // namespace espalier::compare
