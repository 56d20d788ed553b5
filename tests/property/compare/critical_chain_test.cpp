#include "compare/critical_chain.h"

#include <gtest/gtest.h>

#include <optional>
#include <tuple>

#include "tests/support/networks/random_machine.h"
#include "tests/support/random/random_timeline.h"

namespace espalier::compare {
namespace {

/// docs/compare.md's definition word by word: every step looks at all spans, and every begin at all of its chunk.
class PlainChain {
 public:
  PlainChain(const Timeline& timeline, const KnownSchedule& known) : spans_(timeline.spans), known_(known) {
    for (const Span& own : spans_) {
      Picoseconds begin = own.begin;
      for (const Span& other : spans_) {
        if (is_same_chunk(own, other) && other.phase < own.phase && other.begin <= own.end) {
          begin = std::max(begin, other.begin);
        }
      }
      begins_.push_back(begin);
    }
  }

  std::vector<ChainStep> find() const {
    if (spans_.empty()) return {};
    std::uint32_t at = 0;
    for (std::uint32_t i = 1; i < spans_.size(); ++i) {
      if (std::tuple(spans_[i].end, spans_[i].phase) > std::tuple(spans_[at].end, spans_[at].phase)) at = i;
    }
    std::vector<ChainStep> steps{{at, begins_[at], spans_[at].end, {}}};
    while (const auto before = enabler_of(at)) {
      const Picoseconds end = spans_[*before].end;
      const bool overlaps = end > begins_[at];
      steps.insert(steps.begin(), {*before, begins_[*before], overlaps ? begins_[at] : end,
                                   overlaps ? Picoseconds{} : begins_[at] - end});
      at = *before;
    }
    return steps;
  }

 private:
  using Found = std::optional<std::uint32_t>;

  static bool is_same_chunk(const Span& a, const Span& b) {
    return std::tuple(a.transfer, a.chunk) == std::tuple(b.transfer, b.chunk);
  }
  static bool is_arrival(const Span& span) { return span.phase == Phase::recv || span.phase == Phase::reduce; }

  [[nodiscard]] auto order(std::uint32_t i) const { return std::tuple(begins_[i], spans_[i].phase, i); }
  [[nodiscard]] Picoseconds enabled_at(std::uint32_t earlier, std::uint32_t later) const {
    return spans_[earlier].end <= begins_[later] ? spans_[earlier].end : begins_[earlier];
  }

  /// The span that ended last of those that `fits` takes, on the lane of `at` and no later than it begins.
  template <class Fits>
  [[nodiscard]] Found last_before(std::uint32_t at, const Fits& fits) const {
    Found last;
    const auto key = [&](std::uint32_t i) { return std::tuple(spans_[i].end, spans_[i].phase, spans_[i].begin, i); };
    for (std::uint32_t i = 0; i < spans_.size(); ++i) {
      if (spans_[i].lane != spans_[at].lane || spans_[i].end > begins_[at] || order(i) >= order(at)) continue;
      if (fits(spans_[i]) && (!last || key(i) > key(*last))) last = i;
    }
    return last;
  }

  [[nodiscard]] Found enabler_of(std::uint32_t at) const {
    const Span& own = spans_[at];
    Found best = earlier_on_its_way(at);
    const auto consider = [&](Found other) {
      if (other && (!best || enabled_at(*other, at) > enabled_at(*best, at))) best = other;
    };
    const auto is_of = [](Phase phase) { return [phase](const Span& span) { return span.phase == phase; }; };
    if (own.phase == Phase::wire || own.phase == Phase::reduce) consider(last_before(at, is_of(own.phase)));
    if (own.phase != Phase::send) return best;
    consider(last_before(at, [&](const Span& other) { return is_arrival(other) && may_need(own, other); }));
    consider(last_before(at, [&](const Span& other) { return other.phase == Phase::send && shares_lane(own, other); }));
    if (!best) consider(last_before(at, is_arrival));
    if (!best) consider(last_before(at, is_of(Phase::send)));
    return best;
  }

  [[nodiscard]] Found earlier_on_its_way(std::uint32_t at) const {
    Found best;
    for (std::uint32_t i = 0; i < spans_.size(); ++i) {
      const Phase phase = spans_[i].phase, own = spans_[at].phase;
      if (!is_same_chunk(spans_[i], spans_[at]) || order(i) >= order(at)) continue;
      if (phase >= own && (phase != Phase::wire || own != Phase::wire)) continue;
      if (!best || std::tuple(enabled_at(i, at), order(i)) > std::tuple(enabled_at(*best, at), order(*best))) best = i;
    }
    return best;
  }

  [[nodiscard]] bool is_known(TransferId id) const {
    return known_.schedule != nullptr && id.index() < known_.schedule->transfers.size();
  }
  [[nodiscard]] bool may_need(const Span& send, const Span& arrival) const {
    if (!is_known(send.transfer)) return true;
    return std::ranges::any_of(known_.dependencies->of(send.transfer), [&](const Dependency& dependency) {
      return dependency.transfer() == arrival.transfer && dependency.wait() == Wait::arrival;
    });
  }
  [[nodiscard]] bool shares_lane(const Span& send, const Span& other) const {
    if (!is_known(send.transfer) || !is_known(other.transfer)) return true;
    const Schedule& schedule = *known_.schedule;
    const Transfer &mine = schedule.transfers[send.transfer.index()], &its = schedule.transfers[other.transfer.index()];
    return mine.channel() == its.channel() && schedule.dst(mine) == schedule.dst(its);
  }

  const std::vector<Span>& spans_;
  const KnownSchedule& known_;
  std::vector<Picoseconds> begins_;
};

void expect_the_same(const Timeline& timeline, const KnownSchedule& known = {}) {
  const std::vector<ChainStep> found = find_critical_chain(timeline, known);
  const std::vector<ChainStep> plain = PlainChain(timeline, known).find();
  ASSERT_EQ(found.size(), plain.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].span, plain[i].span) << "step " << i;
    EXPECT_EQ(found[i].begin, plain[i].begin);
    EXPECT_EQ(found[i].until, plain[i].until);
    EXPECT_EQ(found[i].waited, plain[i].waited);
  }
}

/// Spans that meet: few moments, lanes, transfers and chunks, so that ties of every sort are frequent and many spans
/// take no time at all.
Timeline crowded_timeline(Random& random, std::uint64_t transfers) {
  Timeline timeline;
  timeline.rank_names = {"a", "b", "c"};
  timeline.link_names = {"a>b", "b>c"};
  const std::int64_t moments = random.between(1, 40);
  for (std::uint64_t i = random.below(400); i > 0; --i) {
    Span span;
    span.phase = static_cast<Phase>(random.below(4));
    span.lane = static_cast<std::uint32_t>(random.below(span.phase == Phase::wire ? 2 : 3));
    span.transfer = TransferId(random.below(transfers));
    span.chunk = static_cast<std::uint32_t>(random.below(2));
    span.begin = {random.between(0, moments)};
    span.end = {span.begin.count + (random.below(3) == 0 ? 0 : random.between(0, moments / 3))};
    timeline.spans.push_back(span);
  }
  std::ranges::stable_sort(timeline.spans, {}, &Span::begin);
  return timeline;
}

TEST(CriticalChainProperty, IsThatOfThePlainDefinition) {
  Random random(11);
  for (int i = 0; i < 300; ++i) {
    expect_the_same(crowded_timeline(random, 1 + random.below(6)));
    expect_the_same(test::random_timeline(random));
  }
}

TEST(CriticalChainProperty, IsThatOfThePlainDefinitionWithASchedule) {
  test::RandomMachine machines(12);
  Random random(13);
  for (int i = 0; i < 300; ++i) {
    const test::Machine machine = machines.make();
    const Schedule schedule = machine.schedule();
    const Dependencies dependencies(schedule);
    const KnownSchedule known{&schedule, &dependencies};
    expect_the_same(*machine.simulate(random.between(1, 200), random.between(1, 40)).timeline, known);
    // Any spans at all, some of transfers that the schedule does not have.
    expect_the_same(crowded_timeline(random, schedule.transfers.size() + 2), known);
  }
}

}  // namespace
}  // namespace espalier::compare
