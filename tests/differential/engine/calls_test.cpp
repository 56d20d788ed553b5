// Calls of every collective over each transport against the collective's promise, element by element. Most elements
// have eight bytes and are all different (float64: 49 of their bits), so that no element in a wrong place can be right.
// ESPALIER_DIFFERENTIAL_CALLS sets how many calls there are per transport.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "base/random.h"
#include "tests/differential/engine/reference.h"
#include "tests/support/local_ranks.h"
#include "tests/support/networks/random_graph.h"
#include "tests/support/random/random_schedule.h"
#include "tests/support/random/rounds.h"
#include "tests/support/transports_here.h"

namespace espalier {
namespace {

using test::WideCall;

constexpr std::int64_t plans_per_job = 6;
constexpr std::int64_t calls_per_plan = 50;
constexpr std::size_t max_elements = 6000;
constexpr std::size_t margin = 64;  ///< Bytes around the buffers that no call may touch.
constexpr std::byte untouched{0xA5};

std::int64_t wanted_calls() { return test::rounds("ESPALIER_DIFFERENTIAL_CALLS", 900); }

/// A message for a schedule's collective.
WideCall random_message(Random& random, const Collective& collective) {
  WideCall call;
  call.kind = collective.kind;
  call.ranks = collective.rank_count;
  call.root = has_root(collective.kind) ? collective.root.value() : 0;
  call.seed = random.below(1U << 20U);
  call.operation = all_reduce_operations[random.below(all_reduce_operations.size())];
  call.shares = collective.shares;
  const std::size_t size = random.below(random.below(3) == 0 ? max_elements : 200);
  if (!collective.shares.empty()) {
    for (const std::int64_t share : collective.shares) {
      call.shards.push_back(static_cast<std::size_t>(share) *
                            (size / static_cast<std::size_t>(collective.share_sum())));
    }
  } else if (has_shards(collective.kind) || collective.kind == CollectiveKind::all_to_all) {
    call.shards.assign(call.ranks, size / call.ranks);
  }
  call.count = call.shards.empty() ? size : call.begin(call.ranks);
  return call;
}

/// The memories of a rank for one call: a piece of registered or private memory with margins.
template <class T>
class Buffers {
 public:
  Buffers(const WideCall& call, std::uint32_t rank, std::byte* memory, std::size_t offset, bool in_place)
      : call_(call), rank_(rank), memory_(memory) {
    const std::size_t send_bytes = call.send_count(rank) * sizeof(T);
    const std::size_t receive_bytes = call.receive_count(rank) * sizeof(T);
    const auto shift = in_place ? call.in_place_shift(rank) : std::nullopt;
    in_place_ = shift.has_value();
    const std::ptrdiff_t bytes = shift ? *shift * static_cast<std::ptrdiff_t>(sizeof(T)) : 0;
    std::byte* begin = memory + margin + offset * sizeof(T);
    receive = begin + std::max<std::ptrdiff_t>(0, -bytes);
    send = shift ? receive + bytes : receive + receive_bytes + margin;
    end_ = std::max(send + send_bytes, receive + receive_bytes) + margin;
    std::fill(memory, end_, untouched);
    for (std::size_t i = 0; i < call.send_count(rank); ++i) put(send, i, test::value_of<T>(call, rank, i));
  }

  void check() const {
    for (std::size_t i = 0; i < call_.receive_count(rank_); ++i) {
      const T wanted = test::expected<T>(call_, rank_, i);
      const T actual = get(receive, i);
      ASSERT_TRUE(test::is_right(call_, actual, wanted)) << "element " << i << " is " << actual << ", not " << wanted;
    }
    for (std::size_t i = 0; !in_place_ && i < call_.send_count(rank_); ++i) {
      ASSERT_EQ(get(send, i), test::value_of<T>(call_, rank_, i)) << "element " << i << " of the send buffer changed";
    }
    const std::byte* first = std::min(send, receive);
    ASSERT_TRUE(std::all_of(static_cast<const std::byte*>(memory_), first, is_untouched)) << "before the buffers";
    ASSERT_TRUE(
        std::all_of(static_cast<const std::byte*>(end_ - margin), static_cast<const std::byte*>(end_), is_untouched))
        << "behind the buffers";
  }

  std::byte* send = nullptr;
  std::byte* receive = nullptr;

 private:
  static bool is_untouched(std::byte byte) { return byte == untouched; }
  static void put(std::byte* to, std::size_t index, T value) { std::memcpy(to + index * sizeof(T), &value, sizeof(T)); }
  static T get(const std::byte* from, std::size_t index) {
    T value;
    std::memcpy(&value, from + index * sizeof(T), sizeof(T));
    return value;
  }

  const WideCall& call_;
  std::uint32_t rank_;
  std::byte* memory_;
  std::byte* end_ = nullptr;
  bool in_place_ = false;
};

constexpr std::size_t memory_bytes = 2 * max_elements * 8 * 6 + 4 * margin + 64 * 8;

template <class T>
void run(Communicator& group, const WideCall& call, ElementType type, std::byte* memory, std::size_t offset,
         bool in_place) {
  const Buffers<T> buffers(call, group.rank(), memory, offset, in_place);
  const auto done =
      group.run({call.kind, buffers.send, buffers.receive, call.count, type, call.operation, call.root, call.shares});
  ASSERT_TRUE(done) << done.error().message;
  buffers.check();
}

void run_any(Communicator& group, const WideCall& call, ElementType type, std::byte* memory, std::size_t offset,
             bool in_place) {
  switch (type) {
    case ElementType::int64: return run<std::int64_t>(group, call, type, memory, offset, in_place);
    case ElementType::uint64: return run<std::uint64_t>(group, call, type, memory, offset, in_place);
    case ElementType::float64: return run<double>(group, call, type, memory, offset, in_place);
    case ElementType::int32: return run<std::int32_t>(group, call, type, memory, offset, in_place);
    case ElementType::float32: return run<float>(group, call, type, memory, offset, in_place);
    default: return run<std::uint8_t>(group, call, type, memory, offset, in_place);
  }
}

/// Mostly the wide ones.
ElementType random_type(Random& random) {
  constexpr std::array types = {ElementType::int64, ElementType::uint64,  ElementType::float64, ElementType::uint64,
                                ElementType::int32, ElementType::float32, ElementType::uint8};
  return types[random.below(types.size())];
}

class DifferentialCalls : public ::testing::TestWithParam<TransportChoice> {
 protected:
  /// All calls of one job, on every rank as the seed says.
  static void run_job(std::uint64_t seed, std::atomic<std::int64_t>& made) {
    Random random(seed);
    const Topology topology = test::make_topology(test::random_graph(random, {5, 2, 9, true}), 1);
    std::vector<SourcedSchedule> plans;
    while (plans.size() < plans_per_job) {
      const auto kind = all_collective_kinds[random.below(all_collective_kinds.size())];
      auto schedule = test::random_schedule(random, kind, topology);
      const Bytes chunk{random.below(3) == 0 ? 0 : random.between(64, 20000)};
      const auto ahead = static_cast<std::uint32_t>(random.below(2) == 0 ? 0 : random.between(1, 8));
      if (schedule) plans.push_back({std::move(schedule), chunk, false, ahead});
    }
    JobOptions options;
    options.transport = GetParam();
    options.checksum = random.below(2) == 0;
    options.sockets_per_peer = static_cast<std::uint32_t>(1 + random.below(3));
    options.timeout = std::chrono::milliseconds(60000);
    const std::uint64_t job_seed = random.next();
    const auto none = [](const Collective&, Bytes) -> Result<SourcedSchedule> {
      return fail(ErrorCode::unsupported, "each group brings its own schedule");
    };
    run_ranks(static_cast<std::uint32_t>(topology.rank_count()), none, std::move(options), [&](Communicator& world) {
      run_rank(world, plans, job_seed, made);
      if (HasFailure()) {
        ADD_FAILURE() << "job of seed " << seed;
        world.abort("a test failed");
      }
    });
  }

 private:
  static void run_rank(Communicator& world, const std::vector<SourcedSchedule>& plans, std::uint64_t job_seed,
                       std::atomic<std::int64_t>& made) {
    const auto registered = world.allocate(memory_bytes);
    ASSERT_TRUE(registered) << registered.error().message;
    std::vector<std::byte> plain(memory_bytes);
    std::vector<std::uint32_t> all(world.size());
    for (std::uint32_t rank = 0; rank < world.size(); ++rank) all[rank] = rank;
    std::vector<std::unique_ptr<Communicator>> groups;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      auto group = world.split(all, "differential",  // All of one name: they are told apart by their order.
                               [&, i](const Collective&, Bytes) -> Result<SourcedSchedule> { return plans[i]; });
      ASSERT_TRUE(group) << group.error().message;
      groups.push_back(std::move(*group));
    }
    Random random(job_seed);
    for (std::int64_t i = 0; i < plans_per_job * calls_per_plan; ++i) {
      const std::size_t plan = random.below(plans.size());
      const Collective& collective = plans[plan].schedule->collective;
      const ElementType type = random_type(random);
      const WideCall call = random_message(random, collective);
      const std::uint64_t by_rank = test::mixed(random.next() + world.rank());
      SCOPED_TRACE(testing::Message() << "call " << i << ": " << to_string(collective.kind) << " of " << call.count
                                      << " " << to_string(type) << ", " << to_string(call.operation) << ", "
                                      << plans[plan].schedule->algorithm << ", rank " << world.rank());
      auto* memory = (by_rank & 1U) != 0 ? plain.data() : static_cast<std::byte*>(*registered);
      run_any(*groups[plan], call, type, memory, by_rank >> 8U & 31U, (by_rank & 2U) != 0);
      if (HasFatalFailure()) return;
      if (world.rank() == 0) ++made;
    }
  }
};

TEST_P(DifferentialCalls, GiveWhatTheCollectivePromises) {
  std::atomic<std::int64_t> made = 0;
  for (std::uint64_t seed = 0; made < wanted_calls(); ++seed) {
    run_job(seed, made);
    ASSERT_FALSE(HasFailure());
  }
  RecordProperty("calls", std::to_string(made));
}

INSTANTIATE_TEST_SUITE_P(Transports, DifferentialCalls, ::testing::ValuesIn(test::transports_here()),
                         [](const auto& transport) { return std::string(to_string(transport.param)); });

}  // namespace
}  // namespace espalier
