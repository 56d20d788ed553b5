#include "scenario/chakra.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "scenario/run_job.h"
#include "tests/support/chakra_bytes.h"
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

TEST(Chakra, NamesTheNodesThatDoNotFit) {
  Trace a, b;
  a.collective(7, "sum", 0, 4'096);
  b.collective(9, "other", 0, 8'192);
  EXPECT_EQ(error_of({a, b}, on_ranks(2)),
            "rank 1, node 9 'other': it is a all_reduce of 8192 bytes, and in its place rank 0, node 7 'sum' is a "
            "all_reduce of 4096 bytes");
  EXPECT_EQ(error_of({a, Trace()}, on_ranks(2)),
            "the ranks of a group of 2 take part in different numbers of collectives (0 to 1)");
  Trace sender;
  sender.send(0, 1, 64, 3);
  EXPECT_EQ(error_of({sender, Trace()}, on_ranks(2)), "rank 0 sends 1 messages with tag 3 to rank 1, which receives 0");
  Trace dangling;
  dangling.compute(0, "work", 1).after({5});
  EXPECT_EQ(error_of({dangling}, on_ranks(1)), "rank 0, node 0 'work': it depends on node 5, which is not there");
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
