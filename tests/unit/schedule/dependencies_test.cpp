#include "schedule/dependencies.h"

#include <gtest/gtest.h>

#include "tests/support/forests.h"
#include "tests/support/networks/fabrics.h"

namespace espalier {
namespace {

/// A schedule over a mesh of three ranks whose transfers need not make sense; "0-1 2>0+" as in docs/schedule.md.
class Program {
 public:
  explicit Program(std::size_t slices)
      : schedule_(*make_collective(CollectiveKind::all_reduce, 3, std::nullopt), "", "") {
    schedule_.units = static_cast<std::int64_t>(slices);
    for (std::size_t s = 0; s < slices; ++s)
      schedule_.slices.push_back({static_cast<std::int64_t>(s), 1, Rank(), Rank()});
  }

  Program& move(std::size_t src, std::size_t dst, Action action, std::size_t first = 0, std::uint32_t count = 1) {
    const RouteId route = schedule_.add_route(Rank(src), Rank(dst), std::vector<LinkId>{LinkId(0)});
    schedule_.add_transfer(route, SliceId(first), count, action, ChannelId(0));
    return *this;
  }
  Program& copy(std::size_t src, std::size_t dst, std::size_t first = 0, std::uint32_t count = 1) {
    return move(src, dst, Action::copy, first, count);
  }
  Program& reduce(std::size_t src, std::size_t dst, std::size_t first = 0, std::uint32_t count = 1) {
    return move(src, dst, Action::reduce, first, count);
  }

  /// "0 1" for arrivals, "0d" for departures, of the last transfer.
  [[nodiscard]] std::string waits() const {
    std::string text;
    const Dependencies dependencies(schedule_);
    for (const Dependency& dependency : dependencies.of(TransferId(schedule_.transfers.size() - 1))) {
      text += (text.empty() ? "" : " ") + std::to_string(dependency.transfer().value());
      if (dependency.wait() == Wait::departure) text += "d";
    }
    return text;
  }

  [[nodiscard]] const Schedule& schedule() const { return schedule_; }

 private:
  Schedule schedule_;
};

TEST(Dependencies, ReadWaitsForTheWriteBeforeIt) { EXPECT_EQ(Program(1).copy(0, 1).copy(1, 2).waits(), "0"); }

TEST(Dependencies, ReadWaitsForAllReductionsBeforeIt) {
  EXPECT_EQ(Program(1).reduce(1, 0).reduce(2, 0).copy(0, 1).waits(), "0 1");
}

TEST(Dependencies, AnInputWaitsForNothingAtItsSourceAndNothingForIt) {
  EXPECT_EQ(Program(1).reduce(1, 0).move(0, 1, Action::reduce_input).waits(), "0d");  // of 1, which 0 read
  EXPECT_EQ(Program(1).move(1, 0, Action::reduce_input).move(0, 1, Action::reduce_input).waits(), "");
  EXPECT_EQ(Program(1).move(1, 0, Action::reduce_input).move(2, 0, Action::reduce_input).copy(0, 1).waits(), "0 1");
  EXPECT_EQ(Program(1).move(0, 1, Action::reduce_input).copy(2, 0).waits(), "");
}

TEST(Dependencies, ReadsCommute) { EXPECT_EQ(Program(1).copy(0, 1).copy(0, 2).waits(), ""); }

TEST(Dependencies, ReductionsCommute) { EXPECT_EQ(Program(1).reduce(1, 0).reduce(2, 0).waits(), ""); }

TEST(Dependencies, CopyWaitsUntilWhatItReplacesWasSent) { EXPECT_EQ(Program(1).copy(1, 2).copy(0, 1).waits(), "0d"); }

TEST(Dependencies, ReductionWaitsUntilTheValueBeforeItWasSent) {
  EXPECT_EQ(Program(1).reduce(1, 2).reduce(0, 1).waits(), "0d");
  EXPECT_EQ(Program(1).reduce(1, 2).reduce(0, 1).reduce(2, 1).waits(), "0");  // It reads what 0 wrote; so has it left.
}

TEST(Dependencies, ReductionWaitsForTheCopyBeforeIt) { EXPECT_EQ(Program(1).copy(0, 1).reduce(2, 1).waits(), "0"); }

TEST(Dependencies, CopyWaitsForTheWritesItReplaces) { EXPECT_EQ(Program(1).reduce(0, 1).copy(2, 1).waits(), "0"); }

TEST(Dependencies, WhatComesBackNeedNotWaitForWhatWentAhead) {
  // Up a chain and down again: what comes to rank 1, and then to 2, is there after all that they sent.
  EXPECT_EQ(Program(1).reduce(2, 1).reduce(1, 0).copy(0, 1).waits(), "1");
  EXPECT_EQ(Program(1).reduce(2, 1).reduce(1, 0).copy(0, 1).copy(1, 2).waits(), "2");
  // From elsewhere it may not be.
  EXPECT_EQ(Program(1).reduce(2, 1).copy(0, 2).waits(), "0d");
}

TEST(Dependencies, SayWhoseDepartureIsAwaited) {
  const Schedule schedule = Program(1).copy(1, 2).copy(0, 1).copy(1, 2).schedule();
  const Dependencies dependencies(schedule);
  EXPECT_TRUE(dependencies.departure_is_awaited(TransferId(0)));
  EXPECT_FALSE(dependencies.departure_is_awaited(TransferId(1)));
}

TEST(Dependencies, SlicesThatDoNotOverlapAreFree) { EXPECT_EQ(Program(2).copy(0, 1, 0).copy(1, 2, 1).waits(), ""); }

TEST(Dependencies, RunsListEachTransferOnce) {
  EXPECT_EQ(Program(4).copy(0, 1, 0, 2).copy(0, 1, 2, 2).copy(1, 2, 0, 4).waits(), "0 1");
}

/// Which transfers must be over before which, from the definition: accesses of one slice at one rank keep their order
/// unless both read or both reduce; closed under transitivity.
std::vector<std::vector<bool>> brute_force_order(const Schedule& schedule) {
  enum class Access { none, read, copy, reduce };
  const auto access = [&](std::size_t id, std::size_t slice, Rank rank) {
    const Transfer& transfer = schedule.transfers[id];
    const std::size_t first = transfer.first_slice.index();
    if (slice < first || slice >= first + transfer.slice_count) return Access::none;
    if (schedule.src(transfer) == rank) return Access::read;
    if (schedule.dst(transfer) != rank) return Access::none;
    return transfer.action() == Action::reduce ? Access::reduce : Access::copy;
  };
  const std::size_t count = schedule.transfers.size();
  std::vector<std::vector<bool>> before(count, std::vector<bool>(count));
  for (std::size_t later = 0; later < count; ++later) {
    for (std::size_t earlier = 0; earlier < later; ++earlier) {
      for (std::size_t slice = 0; slice < schedule.slices.size(); ++slice) {
        for (std::size_t r = 0; r < schedule.collective.rank_count; ++r) {
          const Access a = access(earlier, slice, Rank(r));
          const Access b = access(later, slice, Rank(r));
          if (a == Access::none || b == Access::none) continue;
          if (a == b && a != Access::copy) continue;
          before[later][earlier] = true;
        }
      }
    }
    for (std::size_t earlier = later; earlier-- > 0;) {
      if (!before[later][earlier]) continue;
      for (std::size_t first = 0; first < earlier; ++first) {
        if (before[earlier][first]) before[later][first] = true;
      }
    }
  }
  return before;
}

/// The same order from the listed dependencies.
std::vector<std::vector<bool>> listed_order(const Schedule& schedule) {
  const Dependencies dependencies(schedule);
  const std::size_t count = schedule.transfers.size();
  std::vector<std::vector<bool>> before(count, std::vector<bool>(count));
  for (std::size_t later = 0; later < count; ++later) {
    for (const Dependency& dependency : dependencies.of(TransferId(later))) {
      const std::size_t earlier = dependency.transfer().index();
      before[later][earlier] = true;
      for (std::size_t first = 0; first < earlier; ++first) {
        if (before[earlier][first]) before[later][first] = true;
      }
    }
  }
  return before;
}

TEST(Dependencies, EqualTheOrderByDefinitionOnRandomPrograms) {
  Random random(29);
  for (int round = 0; round < 400; ++round) {
    const std::size_t ranks = 2 + random.below(4);
    const std::size_t slices = 1 + random.below(4);
    Schedule schedule(*make_collective(CollectiveKind::all_reduce, ranks, std::nullopt), "", "");
    schedule.units = static_cast<std::int64_t>(slices);
    for (std::size_t s = 0; s < slices; ++s)
      schedule.slices.push_back({static_cast<std::int64_t>(s), 1, Rank(), Rank()});
    for (std::size_t i = 0; i < 24; ++i) {
      const std::size_t src = random.below(ranks);
      const std::size_t dst = (src + 1 + random.below(ranks - 1)) % ranks;
      const std::size_t first = random.below(slices);
      const auto run = static_cast<std::uint32_t>(1 + random.below(slices - first));
      const RouteId route = schedule.add_route(Rank(src), Rank(dst), std::vector<LinkId>{LinkId(0)});
      schedule.add_transfer(route, SliceId(first), run, random.below(2) == 0 ? Action::copy : Action::reduce,
                            ChannelId(0));
    }
    ASSERT_EQ(listed_order(schedule), brute_force_order(schedule)) << "round " << round;
  }
}

TEST(Dependencies, AreEarlierTransfersInIdOrderEachOnce) {
  Random random(31);
  const Topology fabric = test::random_fabric(6, 2, 6, random);
  for (const CollectiveKind kind : all_collective_kinds) {
    const Schedule schedule = test::random_schedule(fabric, kind, random);
    const Dependencies dependencies(schedule);
    for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
      std::uint64_t next = 0;
      for (const Dependency& dependency : dependencies.of(TransferId(i))) {
        ASSERT_GE(dependency.transfer_value, next);
        ASSERT_LT(dependency.transfer_value, i);
        next = std::uint64_t{dependency.transfer_value} + 1;
      }
    }
  }
}

}  // namespace
}  // namespace espalier
