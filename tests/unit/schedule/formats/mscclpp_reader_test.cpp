#include <gtest/gtest.h>

#include <string>

#include "schedule/formats/formats.h"
#include "schedule/verify/verify.h"
#include "topology/generate/generate.h"

namespace espalier {
namespace {

Topology two_in_full_mesh() {
  FullyConnectedOptions options;
  options.ranks = 2;
  return *generate_fully_connected(options);
}

/// A plan for two GPUs, each with one channel to the other and one reference to a buffer of the other.
std::string plan(const std::string& header, const std::string& gpu, const std::string& blocks0,
                 const std::string& blocks1, char remote) {
  const auto rank = [&](int id, const std::string& blocks) {
    const std::string other = std::to_string(1 - id);
    return "{\"id\": " + std::to_string(id) + ", " + gpu + ", \"threadblocks\": [" + blocks +
           R"(], "channels": [{"channel_type": "memory", "connected_to": [)" + other +
           R"(]}], "remote_buffers": [{"rank": )" + other + R"(, "type": ")" + remote +
           R"(", "access_channel_types": ["memory"]}], "semaphores": [{"init_value": 0}]})";
  };
  return "{\"name\": \"by hand\", " + header + ", \"gpus\": [" + rank(0, blocks0) + ", " + rank(1, blocks1) + "]}";
}

std::string block(const std::string& ops) {
  return "{\"id\": 0, \"ops\": [" + ops +
         R"(], "channels": [{"channel_type": "memory", "channel_ids": [0]}], "remote_buffer_refs": [)"
         R"({"access_channel_type": "memory", "remote_buffer_ids": [0]}]})";
}

std::string waits(const std::string& name) {
  return "{\"name\": \"" + name + R"(", "channel_ids": [0], "channel_type": "memory"})";
}

std::string own(const std::string& buffer, int index, int size = 1) {
  return "{\"type\": \"" + buffer + "\", \"index\": " + std::to_string(index) + ", \"size\": " + std::to_string(size) +
         "}";
}
std::string others(int index, int size = 1) {
  return "{\"buffer_id\": 0, \"index\": " + std::to_string(index) + ", \"size\": " + std::to_string(size) + "}";
}
std::string moves(const std::string& name, const std::string& src, const std::string& dst,
                  const std::string& more = "") {
  return "{\"name\": \"" + name + "\", \"src_buff\": [" + src + "], \"dst_buff\": [" + dst +
         "], \"channel_type\": \"memory\"" + more + "}";
}

constexpr const char* all_reduce_header = R"("collective": "allreduce", "inplace": true)";
const std::string two_chunks = R"("input_chunks": 2, "output_chunks": 2, "scratch_chunks": 0)";

/// Each GPU adds a chunk of both and writes the sum to both.
std::string read_reduce_plan() {
  const auto ops = [](int chunk) {
    return waits("rlxsignal") + ", " + waits("rlxwait") + ", {\"name\": \"nop\"}, " +
           moves("rres", own("i", chunk) + ", " + others(chunk), own("i", chunk) + ", " + others(chunk),
                 ", \"reduce_op\": \"sum\"") +
           ", " + waits("signal") + ", " + waits("wait");
  };
  return plan(all_reduce_header, two_chunks, block(ops(0)), block(ops(1)), 'i');
}

std::string refusal_of(const std::string& text) {
  const auto schedule = import_schedule(text, "plan.json", two_in_full_mesh());
  return schedule ? "" : schedule.error().message;
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  text.replace(text.find(what), what.size(), with);
  return text;
}

/// "0>1 reduce 0+1": transfers in order.
std::string transfers_of(const std::string& text, const Topology& topology) {
  const auto schedule = import_schedule(text, "plan.json", topology);
  if (!schedule) return schedule.error().message;
  EXPECT_TRUE(verify(*schedule, topology).ok());
  std::string list;
  for (const Transfer& transfer : schedule->transfers) {
    list += std::to_string(schedule->src(transfer).index()) + ">" + std::to_string(schedule->dst(transfer).index()) +
            (transfer.action() == Action::reduce ? " reduce " : " copy ") +
            std::to_string(transfer.first_slice.index()) + "+" + std::to_string(transfer.slice_count) + "\n";
  }
  return list;
}

TEST(Mscclpp, ReadsSumsAndWritesThemBack) {
  // GPU 0 reads chunk 0 of GPU 1, adds it to its own, and writes the sum to GPU 1's place; GPU 1 does so with chunk 1.
  EXPECT_EQ(transfers_of(read_reduce_plan(), two_in_full_mesh()),
            "1>0 reduce 0+1\n0>1 copy 0+1\n0>1 reduce 1+1\n1>0 copy 1+1\n");
}

TEST(Mscclpp, PlansInPlaceMayHaveNoOutput) {
  std::string text = read_reduce_plan();
  const std::string outputs = "\"output_chunks\": 2";
  for (std::size_t at = text.find(outputs); at != std::string::npos; at = text.find(outputs, at)) {
    text.replace(at, outputs.size(), "\"output_chunks\": 0");
  }
  EXPECT_EQ(transfers_of(text, two_in_full_mesh()), transfers_of(read_reduce_plan(), two_in_full_mesh()));
}

TEST(Mscclpp, PacketsInScratch) {
  // Each GPU puts the chunk that is not its own into the other's scratch 0, where the other adds it; sums go to
  // scratch 1.
  const auto ops = [](int mine) {
    const std::string sum = moves("respkt", own("i", mine) + ", " + own("s", 0), own("i", mine) + ", " + others(1));
    return moves("ppkt", own("i", 1 - mine), others(0)) + ", " + sum + ", " +
           moves("upkt", own("s", 1), own("i", 1 - mine));
  };
  const std::string chunks = R"("input_chunks": 2, "output_chunks": 2, "scratch_chunks": 2)";
  EXPECT_EQ(transfers_of(plan(all_reduce_header, chunks, block(ops(0)), block(ops(1)), 's'), two_in_full_mesh()),
            "1>0 reduce 0+1\n0>1 reduce 1+1\n1>0 copy 1+1\n0>1 copy 0+1\n");
}

TEST(Mscclpp, ThreadBlocksOfAGroupShareChunks) {
  // An all_gather out of place: a copy within the GPU, and a put by two thread blocks, half a chunk each.
  const auto group = [](int id) { return ", \"tbg_info\": {\"tb_id\": " + std::to_string(id) + ", \"tbg_size\": 2}"; };
  const auto blocks = [&](int rank) {
    return block(moves("copy", own("i", 0), own("o", rank)) + ", " +
                 moves("put", own("i", 0), others(rank), group(0))) +
           ", " + block(moves("put", own("i", 0), others(rank), group(1)));
  };
  const std::string text =
      plan(R"("collective": "allgather", "inplace": false)",
           R"("input_chunks": 1, "output_chunks": 2, "scratch_chunks": 0)", blocks(0), blocks(1), 'o');
  // A half chunk is a slice. The second blocks put at once, the first ones after their copies.
  EXPECT_EQ(transfers_of(text, two_in_full_mesh()), "0>1 copy 1+1\n1>0 copy 3+1\n0>1 copy 0+1\n1>0 copy 2+1\n");
}

TEST(Mscclpp, RelayThroughScratchIsATransferOfItsOwn) {
  // Three GPUs, all_gather: GPU 0's chunk goes to GPU 2 by way of GPU 1's output. All else goes directly.
  FullyConnectedOptions options;
  options.ranks = 3;
  const Topology topology = *generate_fully_connected(options);
  const auto direct = [](int rank, int first, int second) {
    return moves("put", own("o", rank) + ", " + own("o", rank),
                 "{\"buffer_id\": " + std::to_string(first) + ", \"index\": " + std::to_string(rank) +
                     ", \"size\": 1}, {\"buffer_id\": " + std::to_string(second) +
                     ", \"index\": " + std::to_string(rank) + ", \"size\": 1}");
  };
  const auto gpu = [](int id, int a, int b, const std::string& ops) {
    const std::string first = std::to_string(a), second = std::to_string(b);
    return "{\"id\": " + std::to_string(id) +
           R"(, "input_chunks": 1, "output_chunks": 3, "scratch_chunks": 0, "threadblocks": [{"id": 0, "ops": [)" +
           ops +
           R"(], "channels": [{"channel_type": "memory", "channel_ids": [0, 1]}], "remote_buffer_refs": [)"
           R"({"access_channel_type": "memory", "remote_buffer_ids": [0, 1]}]}], "channels": [)"
           R"({"channel_type": "memory")"
           R"(, "connected_to": [)" +
           first + ", " + second + R"(]}], "remote_buffers": [{"rank": )" + first +
           R"(, "type": "o", "access_channel_types": ["memory"]}, {"rank": )" + second +
           R"(, "type": "o", "access_channel_types": ["memory"]}]})";
  };
  // GPU 0: to 1 only, and says so; GPU 1: own chunk to both, then 0's chunk to 2 (its reference 1).
  const std::string only =
      moves("put", own("o", 0), "{\"buffer_id\": 0, \"index\": 0, \"size\": 1}") + ", " + waits("signal");
  const std::string relays = direct(1, 0, 1) + ", " + waits("wait") + ", " +
                             moves("put", own("o", 0), "{\"buffer_id\": 1, \"index\": 0, \"size\": 1}");
  const std::string text = R"({"name": "relay", "collective": "allgather", "inplace": true, "gpus": [)" +
                           gpu(0, 1, 2, only) + ", " + gpu(1, 0, 2, relays) + ", " + gpu(2, 0, 1, direct(2, 0, 1)) +
                           "]}";
  EXPECT_EQ(transfers_of(text, topology),
            "0>1 copy 0+1\n1>0 copy 1+1\n1>2 copy 1+1\n2>0 copy 2+1\n2>1 copy 2+1\n1>2 copy 0+1\n");
}

TEST(Mscclpp, WhatIsWrongIsSaidWithItsPlace) {
  const std::string good = read_reduce_plan();
  EXPECT_EQ(refusal_of("{"),
            "plan.json: parse error at line 1, column 2: syntax error while parsing object key - "
            "unexpected end of input; expected string literal");
  EXPECT_EQ(refusal_of("{}"), "plan.json: collective: '' is not read");
  EXPECT_EQ(refusal_of(replaced(good, "allreduce", "sendrecv")), "plan.json: collective: 'sendrecv' is not read");
  EXPECT_EQ(refusal_of(replaced(good, "\"rres\"", "\"glres\"")),
            "plan.json: gpus[0].threadblocks[0].ops[3]: the operation 'glres' is not read");
  EXPECT_EQ(refusal_of(replaced(good, "\"sum\"", "\"min\"")),
            "plan.json: gpus[0].threadblocks[0].ops[3]: reduce_op 'min' is not read");
  EXPECT_EQ(
      refusal_of(replaced(good, "\"channel_type\": \"memory\", \"connected_to\"",
                          "\"channel_type\": \"switch\", \"connected_to\"")),
      "plan.json: gpus[0].channels[0].channel_type: channels of a switch, which copies and adds in the network, are "
      "not read");
  EXPECT_EQ(refusal_of(replaced(good, "\"index\": 0", "\"index\": 2")),
            "plan.json: gpus[0].threadblocks[0].ops[3].src_buff[0]: reaches beyond the 2 chunks of buffer i of GPU 0");
  EXPECT_EQ(refusal_of(replaced(good, "\"input_chunks\": 2", "\"input_chunks\": 3")),
            "plan.json: gpus[0]: 3 input and 2 output chunks do not fit all_reduce on 2 GPUs");
  EXPECT_EQ(refusal_of(replaced(good, "\"buffer_id\": 0", "\"buffer_id\": 1")),
            "plan.json: gpus[0].threadblocks[0].ops[3].src_buff[1].buffer_id: is no whole number from 0 to 0");
  EXPECT_EQ(refusal_of(replaced(good, "rlxsignal", "rlxwait")),
            "plan.json: gpus[0].threadblocks[0].ops[1]: it never gets past this operation");
  EXPECT_EQ(refusal_of(replaced(good, "rres", "rre")),
            "plan.json: gpus[0].threadblocks[0].ops[3]: rre has more places than it uses");
  // With one target only, nobody writes the sum to GPU 1, which is for `verify` to find.
  const std::string less =
      replaced(good, own("i", 0) + ", " + others(0) + "], \"channel_type\"", own("i", 0) + "], \"channel_type\"");
  const auto schedule = import_schedule(less, "plan.json", two_in_full_mesh());
  ASSERT_TRUE(schedule) << schedule.error().message;
  EXPECT_FALSE(verify(*schedule, two_in_full_mesh()).ok());
  // Out of place a rank copies its own chunk to its output.
  const auto put = [](int rank) { return block(moves("put", own("i", 0), others(rank))); };
  EXPECT_EQ(refusal_of(plan(R"("collective": "allgather", "inplace": false)",
                            R"("input_chunks": 1, "output_chunks": 2, "scratch_chunks": 0)", put(0), put(1), 'o')),
            "plan.json: at its end chunk 0 of GPU 0's output is not what it is to be");
}

TEST(Mscclpp, ACopyThatHasChangedIsRefused) {
  // GPU 0 puts chunk 0 to GPU 1's scratch, then adds GPU 1's chunk to it; only then GPU 1 uses the old copy.
  const std::string chunks = R"("input_chunks": 2, "output_chunks": 2, "scratch_chunks": 2)";
  const std::string first = moves("put", own("i", 0), others(0)) + ", " + waits("wait") + ", " +
                            moves("re", own("i", 0) + ", " + own("s", 0), own("i", 0)) + ", " + waits("signal");
  const std::string second = moves("put", own("i", 0), others(0)) + ", " + waits("signal") + ", " + waits("wait") +
                             ", " + moves("re", own("i", 0) + ", " + own("s", 0), own("i", 0));
  EXPECT_EQ(refusal_of(plan(all_reduce_header, chunks, block(first), block(second), 's')),
            "plan.json: gpus[1].threadblocks[0].ops[3]: it uses a copy of chunk 0 of GPU 0, which has changed since");
}

}  // namespace
}  // namespace espalier
