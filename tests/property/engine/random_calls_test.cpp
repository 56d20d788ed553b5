// Whatever the schedule, the chunk, the type, the size and the transport: ranks receive what the collective promises.
#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/support/engine_cases.h"
#include "tests/support/local_ranks.h"
#include "tests/support/networks/random_graph.h"
#include "tests/support/random/random_schedule.h"

namespace espalier {
namespace {

/// One collective as all ranks call it.
struct RandomCall {
  engine::DataCase data;
  SourcedSchedule schedule;
  std::uint32_t plain_ranks = 0;     ///< By bit: whose memory is not registered.
  std::uint32_t in_place_ranks = 0;  ///< By bit.
};

RandomCall random_call(Random& random, const Topology& topology) {
  RandomCall call;
  while (!call.schedule.schedule) {
    call.data.kind = all_collective_kinds[random.below(all_collective_kinds.size())];
    call.schedule.schedule = test::random_schedule(random, call.data.kind, topology);
  }
  const Collective& collective = call.schedule.schedule->collective;
  call.data.type = all_element_types[random.below(all_element_types.size())];
  call.data.operation = all_reduce_operations[random.below(all_reduce_operations.size())];
  call.data.ranks = collective.rank_count;
  call.data.root = has_root(call.data.kind) ? collective.root.value() : 0;
  call.data.shares = collective.shares;
  call.data.count = random.below(random.below(2) == 0 ? 40 : 4000);
  call.data.seed = random.below(1000);
  // From one element to a chunk for all; the engine's own choice now and then.
  const std::int64_t bytes = static_cast<std::int64_t>(call.data.count) * size_of(call.data.type);
  if (random.below(4) != 0) call.schedule.chunk.count = random.between(1 + bytes / 60, 1 + bytes);
  if (random.below(2) == 0) call.schedule.ahead = static_cast<std::uint32_t>(random.between(1, 8));
  call.plain_ranks = static_cast<std::uint32_t>(random.below(3) == 0 ? 0 : random.next());
  call.in_place_ranks = static_cast<std::uint32_t>(random.next());
  call.schedule.may_be_replaced = random.below(2) == 0;
  return call;
}

class RandomCalls : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(RandomCalls, GiveWhatTheyPromise) {
  constexpr int calls_per_job = 10;
  Random random(GetParam());
  const Topology topology = test::make_topology(test::random_graph(random, {6, 2, 9, true}), 1);
  std::vector<RandomCall> calls;
  for (int i = 0; i < calls_per_job; ++i) calls.push_back(random_call(random, topology));
  JobOptions options;
  options.transport = random.below(2) == 0 ? TransportChoice::shm : TransportChoice::tcp;
  options.checksum = random.below(2) == 0;
  options.sockets_per_peer = static_cast<std::uint32_t>(1 + random.below(3));
  options.timeout = std::chrono::milliseconds(20000);
  const auto none = [](const Collective&, Bytes) -> Result<SourcedSchedule> {
    return fail(ErrorCode::unsupported, "each call brings its own schedule");
  };
  run_ranks(static_cast<std::uint32_t>(topology.rank_count()), none, std::move(options), [&](Communicator& world) {
    std::vector<std::uint32_t> all(world.size());
    for (std::uint32_t rank = 0; rank < world.size(); ++rank) all[rank] = rank;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const RandomCall& call = calls[i];
      auto group = world.split(all, std::to_string(i),
                               [&](const Collective&, Bytes) -> Result<SourcedSchedule> { return call.schedule; });
      ASSERT_TRUE(group) << group.error().message;
      const bool is_plain = (call.plain_ranks >> world.rank() & 1U) != 0;
      const bool in_place =
          (call.in_place_ranks >> world.rank() & 1U) != 0 && call.data.in_place_shift(world.rank()).has_value();
      for (int repetition = 0; repetition < 3; ++repetition) {
        test::run_case(**group, call.data, is_plain ? test::Memory::plain : test::Memory::registered, in_place);
        if (::testing::Test::HasFailure()) {
          ADD_FAILURE() << "call " << i << ": " << call.schedule.schedule->algorithm << " with chunks of "
                        << call.schedule.chunk.count << " bytes, " << world.size() << " ranks";
          return world.abort("a test failed");
        }
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomCalls, ::testing::Range<std::uint64_t>(0, 60));

}  // namespace
}  // namespace espalier
