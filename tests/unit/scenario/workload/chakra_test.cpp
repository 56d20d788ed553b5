#include "scenario/workload/chakra.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

#include "scenario/run/run_job.h"
#include "tests/support/chakra_bytes.h"
#include "tests/unit/scenario/jobs.h"
#include "tests/unit/scenario/star.h"

namespace espalier::scenario {
namespace {

using test::Trace;

ChakraOptions on_ranks(std::size_t count) {
  ChakraOptions options;
  for (std::size_t i = 0; i < count; ++i) options.ranks.emplace_back(i);
  return options;
}

std::vector<ChakraNode> nodes_of(const Trace& trace) {
  auto nodes = read_chakra(trace.bytes(), "trace.et");
  EXPECT_TRUE(nodes.has_value()) << nodes.error().message;
  return nodes ? *std::move(nodes) : std::vector<ChakraNode>();
}

std::string error_of(const std::vector<Trace>& traces, const ChakraOptions& options) {
  std::vector<std::vector<ChakraNode>> nodes;
  for (const Trace& trace : traces) nodes.push_back(nodes_of(trace));
  Job job;
  const auto added = add_chakra(job, nodes, options);
  return added ? "" : added.error().message;
}

TEST(Chakra, ReadsWhatIsOnTheWire) {
  Trace trace;
  trace.compute(3, "multiply", 12).after({1, 300});
  trace.collective(4, "sum", 7, 1'048'576).after({3});
  const auto nodes = nodes_of(trace);
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0].id, 3U);
  EXPECT_EQ(nodes[0].name, "multiply");
  EXPECT_EQ(nodes[0].type, ChakraType::compute);
  EXPECT_EQ(nodes[0].duration_us, 12U);
  EXPECT_EQ(nodes[0].after, (std::vector<std::uint64_t>{1, 300}));
  EXPECT_EQ(nodes[1].comm_type, 7);
  EXPECT_EQ(nodes[1].comm_size, 1'048'576);
}

TEST(Chakra, RefusesSizesPastTheLargestMessage) {
  // Rounded up to whole elements of 4 bytes, 2^63 - 1 would pass what 64 bits hold.
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t size : {largest, largest - 3, max_message_size.count + 1, std::int64_t{-1}}) {
    Trace sums, sends;
    sums.collective(0, "sum", 0, static_cast<std::uint64_t>(size));
    sends.send(0, 1, static_cast<std::uint64_t>(size), 0);
    for (const Trace& trace : {sums, sends}) {
      const std::string message = error_of({trace, Trace()}, on_ranks(2));
      EXPECT_NE(message.find("its comm_size is " + std::to_string(size) + " bytes"), std::string::npos) << message;
    }
  }
}

TEST(Chakra, RunsComputeCollectivesAndMessages) {
  std::vector<std::vector<ChakraNode>> traces;
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    Trace trace;
    trace.compute(0, "work", 10);
    trace.collective(1, "sum", 0, 4'000).after({0});
    if (rank == 0) trace.send(2, 1, 1'000, 5).after({1});
    if (rank == 1) trace.receive(2, 0, 1'000, 5).after({1});
    traces.push_back(nodes_of(trace));
  }
  Job job;
  ASSERT_TRUE(add_chakra(job, traces, on_ranks(2)).has_value());
  const Topology star = test::star(2);
  ASSERT_TRUE(check_job(job, star).has_value());
  const auto report = run_job(job, star, {}, {});
  ASSERT_TRUE(report.has_value()) << report.error().message;
  // 10 us of work; a ring of two ranks takes 2 steps of 2 us and 2,000 bytes at 1 GB/s; then 2 us and 1,000 bytes.
  EXPECT_EQ(report->elapsed.count, (10 + 2 * (2 + 2) + 3) * 1'000'000);
}

/// What a rank of a custom ring all_reduce does, as ASTRA-sim's converter writes it: 2 (N - 1) times a send to the next
/// rank and a receive from the one before, each behind the node before it; half of what is received is added, which
/// takes 7 us.
Trace ring_rank(std::uint64_t rank, std::uint64_t ranks, std::uint64_t bytes) {
  Trace trace;
  std::uint64_t id = 0;
  const auto chain = [&] {
    if (id > 0) trace.after({id - 1});
    ++id;
  };
  for (std::uint64_t step = 0; step < 2 * (ranks - 1); ++step) {
    trace.send(id, (rank + 1) % ranks, bytes, 0).attribute("comm_type", 5);
    chain();
    trace.receive(id, (rank + ranks - 1) % ranks, bytes, 0).attribute("comm_type", 6);
    chain();
    if (step >= ranks - 1) continue;
    trace.compute(id, "add", 7);
    chain();
  }
  return trace;
}

/// The report of traces, one per rank, on a topology.
JobReport run_traces(const std::vector<Trace>& traces, const Topology& topology, const RunSettings& settings = {}) {
  std::vector<std::vector<ChakraNode>> nodes;
  for (const Trace& trace : traces) nodes.push_back(nodes_of(trace));
  Job job;
  const auto added = add_chakra(job, nodes, on_ranks(nodes.size()));
  EXPECT_TRUE(added.has_value()) << added.error().message;
  return added ? test::run_checked(job, topology, {}, settings) : JobReport();
}

TEST(Chakra, RunsACustomRingOfSendsAndReceives) {
  for (const std::int64_t ranks : {3, 5, 8}) {  // Between two ranks the ring's links lie side by side.
    std::vector<Trace> traces;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      traces.push_back(ring_rank(static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(ranks), 131'000));
    }
    // All ranks send at once, so that 2 (N - 1) steps follow each other, each of 131,000 bytes at 1 GB/s and a latency
    // of 1 us; in the first half of them what came is added.
    const std::int64_t expected = (2 * (ranks - 1) * (131 + 1) + (ranks - 1) * 7) * test::us;
    for (const sim::ModelKind model : sim::all_models) {
      RunSettings settings;
      settings.model = model;
      EXPECT_EQ(run_traces(traces, test::ring(static_cast<std::size_t>(ranks)), settings).elapsed.count, expected);
    }
  }
}

// With its nodes in the opposite order, every rank's file begins with what waits for all others: issued as they stand,
// no node could ever begin.
TEST(Chakra, RunsACustomRingWhateverTheOrderOfItsFile) {
  constexpr std::uint64_t ranks = 8;
  std::vector<std::vector<ChakraNode>> in_order, reversed;
  for (std::uint64_t rank = 0; rank < ranks; ++rank) {
    in_order.push_back(nodes_of(ring_rank(rank, ranks, 131'000)));
    reversed.emplace_back(in_order.back().rbegin(), in_order.back().rend());
    ASSERT_FALSE(reversed.back().front().after.empty());
  }
  for (const auto& nodes : {in_order, reversed}) {
    Job job;
    const auto added = add_chakra(job, nodes, on_ranks(ranks));
    ASSERT_TRUE(added) << added.error().message;
    const JobReport report = test::run_checked(job, test::ring(ranks), {}, {});
    EXPECT_EQ(report.elapsed.count, (14 * (131 + 1) + 7 * 7) * test::us);
  }
}

TEST(Chakra, SendsDoNotWaitForEachOtherNorForTheirReceives) {
  Trace a, b, c;
  // Three sends that depend on nothing, in one file: 8,000 bytes each over one link of 1 GB/s to the switch take 8 us,
  // one behind the other, and 2 us of latency. None waits for the 100 us that pass before the receives are issued.
  a.send(0, 1, 8'000, 0).send(1, 2, 8'000, 0).send(2, 1, 8'000, 9);
  b.compute(0, "work", 100).receive(1, 0, 8'000, 9).after({0}).receive(2, 0, 8'000, 0).behind(1);
  c.receive(0, 0, 8'000, 0).compute(1, "use", 50).after({0});
  const JobReport report = run_traces({a, b, c}, test::star(3));
  EXPECT_EQ(report.elapsed.count, 100 * test::us);  // what had arrived is taken when it is asked for
  // Of the last send the last byte leaves after 3 x 8 us.
  EXPECT_EQ(std::max({report.tasks[0].end, report.tasks[1].end, report.tasks[2].end}), 24 * test::us);
  EXPECT_EQ(report.tasks[6].start, 0);
  EXPECT_LE(report.tasks[6].end, (24 + 2) * test::us);
  EXPECT_EQ(report.tasks[7].start, report.tasks[6].end);
  // Rank 1 computes for 100 us and nothing is left to wait for.
  EXPECT_EQ(report.ranks[1], (RankTime{.compute = 100 * test::us, .exposed = 0, .waiting = 0, .idle = 0}));
  // Rank 2 waits for nothing that is not on its way.
  EXPECT_EQ(report.ranks[2].waiting, 0);
  EXPECT_EQ(report.ranks[2].exposed, report.tasks[6].end);
}

TEST(Chakra, AReceiveThatComesFirstWaitsForTheSend) {
  Trace a, b;
  a.compute(0, "work", 30).send(1, 1, 1'000, 4).after({0});
  b.receive(0, 0, 1'000, 4);
  const JobReport report = run_traces({a, b}, test::star(2));
  EXPECT_EQ(report.elapsed.count, (30 + 2 + 1) * test::us);  // two links of 1 us, 1,000 bytes at 1 GB/s
  EXPECT_EQ(report.ranks[1].waiting, 30 * test::us);
  EXPECT_EQ(report.ranks[1].exposed, 3 * test::us);
}

TEST(Chakra, CounterpartsAreFoundInTheOrderOfIssueNotOfTheFile) {
  // Rank 0 names the second send first; rank 1 receives 1,000 bytes and then 2,000.
  Trace a, b;
  a.send(7, 1, 2'000, 0).after({9}).send(9, 1, 1'000, 0);
  b.receive(1, 0, 1'000, 0).receive(2, 0, 2'000, 0).after({1});
  // Both cross two links of 1 us; the second is sent when the last byte of the first has left.
  EXPECT_EQ(run_traces({a, b}, test::star(2)).elapsed.count, (1 + 2 + 2) * test::us);
  // The same for collectives, between which nothing else decides.
  Trace c, d;
  c.collective(5, "second", 0, 8'000).after({6}).collective(6, "first", 0, 4'000);
  d.collective(5, "first", 0, 4'000).collective(6, "second", 0, 8'000);
  // A ring of two ranks: 2 steps of 2 us and a half of the bytes, twice.
  EXPECT_EQ(run_traces({c, d}, test::star(2)).elapsed.count, (2 * (2 + 2) + 2 * (2 + 4)) * test::us);
}

TEST(Chakra, CollectivesOfAGroupFollowEachOtherWhereverTheyAreReadyFirst) {
  // At rank 0 the second is ready 50 us before the first: it waits, as the one that rank 1 is in is the first.
  Trace a, b;
  a.compute(0, "work", 50).collective(1, "first", 0, 4'000).after({0}).collective(2, "second", 0, 4'000);
  b.collective(1, "first", 0, 4'000).compute(3, "work", 1).after({1}).collective(2, "second", 0, 4'000);
  a.behind(0);
  const JobReport report = run_traces({a, b}, test::star(2));
  EXPECT_EQ(report.elapsed.count, (50 + 2 * 2 * (2 + 2)) * test::us);
}

TEST(Chakra, ReceivesThatWaitInACircleAreNamed) {
  Trace a, b;
  a.receive(0, 1, 8, 0).send(1, 1, 8, 0).after({0});
  b.receive(0, 0, 8, 0).send(1, 0, 8, 0).after({0});
  Job job;
  ASSERT_TRUE(add_chakra(job, std::vector{nodes_of(a), nodes_of(b)}, on_ranks(2)).has_value());
  const auto report = run_job(job, test::star(2), {}, {});
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(
      report.error().message,
      "the job is stuck: task 0 'receive' of r0 is in call 0 'SEND_RECV' and waits for task 3 'send' of r1; task 2 "
      "'receive' of r1 is in call 1 'SEND_RECV' and waits for task 1 'send' of r0");
  EXPECT_EQ(report.error().help,
            "each receive waits for a send that depends on a receive: one of them must depend on less");
}

TEST(Chakra, NamesTheNodesThatDoNotFit) {
  Trace a, b;
  a.collective(7, "sum", 0, 4'096);
  b.collective(9, "other", 0, 8'192);
  EXPECT_EQ(error_of({a, b}, on_ranks(2)),
            "rank 1, node 9 'other': it is an all_reduce of 8192 bytes, and in its place rank 0, node 7 'sum' is an "
            "all_reduce of 4096 bytes");
  EXPECT_EQ(error_of({a, Trace()}, on_ranks(2)),
            "rank 0, node 7 'sum': it is collective 1 of its group of 2 ranks, and rank 1 takes part in none");
  Trace dangling;
  dangling.compute(0, "work", 1).after({5});
  EXPECT_EQ(error_of({dangling}, on_ranks(1)), "rank 0, node 0 'work': it depends on node 5, which is not there");
  Trace circle;
  circle.compute(0, "work", 1)
      .compute(1, "a", 1)
      .after({0, 2})
      .compute(2, "b", 1)
      .behind(1)
      .compute(3, "c", 1)
      .after({2});
  EXPECT_EQ(error_of({circle}, on_ranks(1)), "rank 0, node 1 'a': it depends on itself, through what it depends on");
}

TEST(Chakra, NamesMessagesWithoutACounterpart) {
  Trace twice, once, other;
  twice.send(4, 1, 64, 3).send(6, 1, 64, 3);
  once.receive(0, 0, 64, 3);
  other.receive(0, 0, 64, 3).receive(8, 0, 64, 5);
  EXPECT_EQ(error_of({twice, Trace()}, on_ranks(2)),
            "rank 0, node 4 'send': rank 1 has no receive for it (to rank 1 with tag 3)");
  EXPECT_EQ(error_of({twice, once}, on_ranks(2)),
            "rank 0, node 6 'send': rank 1 has no receive for it (to rank 1 with tag 3)");
  EXPECT_EQ(error_of({Trace(), once}, on_ranks(2)),
            "rank 1, node 0 'receive': rank 0 has no send for it (from rank 0 with tag 3)");
  Job job;
  const auto added = add_chakra(job, std::vector{nodes_of(twice), nodes_of(other)}, on_ranks(2));
  ASSERT_FALSE(added.has_value());
  EXPECT_EQ(added.error().help, "rank 1, node 8 'receive' has tag 5");
  Trace shorter, elsewhere;
  shorter.receive(2, 0, 32, 3);
  EXPECT_EQ(error_of({twice, shorter}, on_ranks(2)),
            "rank 1, node 2 'receive': it is of 32 bytes, and its counterpart, rank 0, node 4 'send', is of 64 bytes");
  elsewhere.send(1, 1, 64, 0).attribute("comm_src", 1);
  EXPECT_EQ(error_of({elsewhere, Trace()}, on_ranks(2)), "rank 0, node 1 'send': its comm_src is 1, another rank");
}

std::string pack(const std::string& bytes) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, static_cast<uLong>(bytes.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  return packed;
}

TEST(Chakra, ReadsWhatGzipPacked) {
  Trace trace;
  for (std::uint64_t id = 0; id < 20'000; ++id) trace.compute(id, "work", id);
  const std::string bytes = trace.bytes();
  const std::string packed = pack(bytes);
  const auto nodes = read_chakra(packed, "trace.et.gz");
  ASSERT_TRUE(nodes.has_value()) << nodes.error().message;
  ASSERT_EQ(nodes->size(), 20'000U);
  EXPECT_EQ(nodes->back().duration_us, 19'999U);
  // Members behind each other are one file.
  const auto two = read_chakra(pack(bytes.substr(0, 1000)) + pack(bytes.substr(1000)), "trace.et.gz");
  ASSERT_TRUE(two.has_value()) << two.error().message;
  EXPECT_EQ(two->size(), 20'000U);
}

TEST(Chakra, RefusesBrokenGzipAndWhatUnpacksToTooMuch) {
  const auto message = [](const std::string& bytes, std::size_t most = max_unpacked_trace) {
    const auto nodes = read_chakra(bytes, "t.gz", most);
    return nodes ? std::string() : nodes.error().message;
  };
  const std::string packed = pack(Trace().compute(1, "work", 1).bytes());
  EXPECT_EQ(message(packed.substr(0, packed.size() - 1)), "t.gz: the compressed bytes end too early");
  EXPECT_EQ(message(packed.substr(0, 2)), "t.gz: the compressed bytes end too early");
  std::string damaged = packed;
  damaged[damaged.size() - 6] ^= 1;  // its checksum
  EXPECT_EQ(message(damaged), "t.gz: the compressed bytes are damaged");
  EXPECT_EQ(message(packed + "x"), "t.gz: the compressed bytes end too early");
  EXPECT_EQ(message(packed + "xyz"), "t.gz: the compressed bytes are damaged");
  EXPECT_EQ(message(pack("no trace")), "t.gz, unpacked: not a Chakra trace from byte 0 on");
  // A bomb: 64 MiB of nothing in 64 KiB. Nothing past the limit is kept.
  const std::string bomb = pack(std::string(std::size_t{1} << 26U, '\0'));
  EXPECT_LT(bomb.size(), 100'000U);
  EXPECT_EQ(message(bomb, 1 << 20), "t.gz: it unpacks to more than 1048576 bytes");
}

TEST(Chakra, RefusesOtherBytes) {
  for (const std::string& bytes : {std::string("\x1f\x8b\x08"), std::string("not a trace"), std::string("\x01")}) {
    EXPECT_FALSE(read_chakra(bytes, "trace.et").has_value());
  }
}

}  // namespace
}  // namespace espalier::scenario
