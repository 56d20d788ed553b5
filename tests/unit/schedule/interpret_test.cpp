#include "schedule/interpret.h"

#include <gtest/gtest.h>

#include "tests/support/forests.h"
#include "tests/support/networks/fabrics.h"

namespace espalier {
namespace {

TEST(Interpret, AddsAndCopiesInProgramOrder) {
  const Topology line = test::line_of(2);
  // One slice of one unit: rank 1 is reduced into rank 0, then copied back.
  const Schedule schedule = [&] {
    Schedule made(*make_collective(CollectiveKind::all_reduce, 2, std::nullopt), "line-2", "test");
    made.units = 2;
    made.slices = {{0, 2, Rank(), Rank()}};
    const RouteId up = made.add_route(Rank(1), Rank(0), std::vector<LinkId>{LinkId(1)});
    const RouteId down = made.add_route(Rank(0), Rank(1), std::vector<LinkId>{LinkId(0)});
    made.add_transfer(up, SliceId(0), 1, Action::reduce, ChannelId(0));
    made.add_transfer(down, SliceId(0), 1, Action::copy, ChannelId(0));
    return made;
  }();
  std::vector<UnitValues> buffers = {{1, 2}, {30, INT64_MAX}};
  interpret(schedule, buffers);
  EXPECT_EQ(buffers[0], (UnitValues{31, INT64_MIN + 1}));  // Sums wrap around.
  EXPECT_EQ(buffers[1], buffers[0]);
}

TEST(Interpret, AddsInputsAsTheyWereBrought) {
  const Topology line = test::line_of(2);
  Schedule schedule(*make_collective(CollectiveKind::all_reduce, 2, std::nullopt), "line-2", "test");
  schedule.units = 1;
  schedule.slices = {{0, 1, Rank(), Rank()}};
  const RouteId up = schedule.add_route(Rank(1), Rank(0), std::vector<LinkId>{LinkId(1)});
  const RouteId down = schedule.add_route(Rank(0), Rank(1), std::vector<LinkId>{LinkId(0)});
  schedule.add_transfer(up, SliceId(0), 1, Action::reduce_input, ChannelId(0));
  schedule.add_transfer(down, SliceId(0), 1, Action::reduce_input, ChannelId(0));
  std::vector<UnitValues> buffers = {{1}, {30}};
  interpret(schedule, buffers);
  EXPECT_EQ(buffers[0], UnitValues{31});
  EXPECT_EQ(buffers[1], UnitValues{31});
}

/// What an independent reading of the NCCL manual promises to rank `r` at unit `u` of a buffer of `units`, for `ranks`
/// ranks and root `root`; nothing where it is open.
std::optional<std::int64_t> promised(CollectiveKind kind, std::size_t ranks, std::size_t root, std::size_t r,
                                     std::size_t u, std::size_t units, const std::vector<UnitValues>& before) {
  const std::size_t shard = u / (units / ranks);
  const auto sum = [&] {
    std::uint64_t total = 0;
    for (const UnitValues& buffer : before) total += static_cast<std::uint64_t>(buffer[u]);
    return static_cast<std::int64_t>(total);
  };
  switch (kind) {
    case CollectiveKind::all_reduce: return sum();
    case CollectiveKind::reduce_scatter: return shard == r ? std::optional(sum()) : std::nullopt;
    case CollectiveKind::all_gather: return before[shard][u];
    case CollectiveKind::broadcast: return before[root][u];
    case CollectiveKind::reduce: return r == root ? std::optional(sum()) : std::nullopt;
    case CollectiveKind::gather: return r == root ? std::optional(before[shard][u]) : std::nullopt;
    case CollectiveKind::scatter: return shard == r ? std::optional(before[root][u]) : std::nullopt;
    case CollectiveKind::send_recv: return (shard + 1) % ranks == r ? std::optional(before[shard][u]) : std::nullopt;
    case CollectiveKind::all_to_all: {
      const std::size_t block = u / (units / (ranks * ranks));
      return block % ranks == r ? std::optional(before[block / ranks][u]) : std::nullopt;
    }
  }
  return std::nullopt;
}

TEST(Interpret, CasesPromiseWhatTheCollectivesDo) {
  const std::size_t ranks = 4;
  const Topology mesh = test::mesh_of(ranks);
  Random random(3);
  for (const CollectiveKind kind : all_collective_kinds) {
    Schedule schedule = test::random_schedule(mesh, kind, random);
    if (schedule.units % 4 != 0) {  // The oracle above cuts every buffer into shards.
      schedule.units *= 4;
      for (Slice& slice : schedule.slices) {
        slice.offset *= 4;
        slice.length *= 4;
      }
    }
    const InterpretCase made = make_interpret_case(schedule, 5);
    const std::size_t root = schedule.collective.root.is_none() ? 0 : schedule.collective.root.index();
    for (std::size_t r = 0; r < ranks; ++r) {
      for (std::size_t u = 0; u < made.before[r].size(); ++u) {
        const auto value = promised(kind, ranks, root, r, u, made.before[r].size(), made.before);
        ASSERT_EQ(made.defined[r][u], value.has_value()) << to_string(kind) << " rank " << r << " unit " << u;
        ASSERT_EQ(made.after[r][u], value.value_or(0)) << to_string(kind);
      }
    }
  }
}

TEST(Interpret, NoticesAWrongOrMissingValue) {
  const Topology ring = test::ring_of(3);
  const Schedule schedule = test::ring_schedule(ring, CollectiveKind::all_gather);
  const InterpretCase made = make_interpret_case(schedule, 1);
  EXPECT_FALSE(keeps_promise(made, made.before));
  std::vector<UnitValues> buffers = made.before;
  interpret(schedule, buffers);
  EXPECT_TRUE(keeps_promise(made, buffers));
  buffers[2][0] += 1;
  EXPECT_FALSE(keeps_promise(made, buffers));
}

}  // namespace
}  // namespace espalier
