#include "schedule/formats/formats.h"

#include <gtest/gtest.h>

#include "schedule/verify/verify.h"
#include "topology/topology_builder.h"

namespace espalier {
namespace {

/// Two ranks with a link each way.
Topology two_ranks() {
  TopologyBuilder builder;
  const NodeId a = builder.rank("a"), b = builder.rank("b");
  builder.cable(a, b, {});
  return *std::move(builder).build("two");
}

/// all_reduce by both sending half to be added, and handing the sums back.
Schedule two_halves() {
  Schedule schedule({.kind = CollectiveKind::all_reduce, .rank_count = 2, .root = Rank()}, "two", "by hand");
  schedule.units = 2;
  schedule.slices = {{0, 1, Rank(), Rank()}, {1, 1, Rank(), Rank()}};
  const LinkId forth(0), back(1);
  const RouteId ab = schedule.add_route(Rank(0), Rank(1), std::span(&forth, 1));
  const RouteId ba = schedule.add_route(Rank(1), Rank(0), std::span(&back, 1));
  schedule.add_transfer(ab, SliceId(1), 1, Action::reduce, ChannelId(0));
  schedule.add_transfer(ba, SliceId(0), 1, Action::reduce, ChannelId(0));
  schedule.add_transfer(ab, SliceId(0), 1, Action::copy, ChannelId(0));
  schedule.add_transfer(ba, SliceId(1), 1, Action::copy, ChannelId(0));
  return schedule;
}

std::string exported(std::string_view format, const ExportOptions& options = {}) {
  const auto files = export_schedule(two_halves(), two_ranks(), format, options);
  return files ? files->front().bytes : files.error().message;
}

std::string import_refusal(std::string_view text) {
  const auto schedule = import_schedule(text, "a.xml", two_ranks());
  return schedule ? "" : schedule.error().message;
}

TEST(ScheduleFormats, MscclXml) {
  EXPECT_EQ(exported("msccl", {.dialect = "astra"}),
            R"(<algo name="all_reduce_by_hand" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2" )"
            R"(coll="allreduce" inplace="1">
  <gpu id="0" i_chunks="2" o_chunks="2" s_chunks="0">
    <tb id="0" send="1" recv="-1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="1"/>
      <step s="1" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="1" deps="0" hasdep="0"/>
    </tb>
    <tb id="1" send="-1" recv="1" chan="0">
      <step s="0" type="rrc" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="1"/>
      <step s="1" type="r" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="0" deps="0" hasdep="0"/>
    </tb>
  </gpu>
  <gpu id="1" i_chunks="2" o_chunks="2" s_chunks="0">
    <tb id="0" send="-1" recv="0" chan="0">
      <step s="0" type="rrc" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="1"/>
      <step s="1" type="r" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="1" deps="0" hasdep="0"/>
    </tb>
    <tb id="1" send="0" recv="-1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="1"/>
      <step s="1" type="s" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="0" deps="0" hasdep="0"/>
    </tb>
  </gpu>
</algo>
)");
  EXPECT_NE(exported("msccl").find(" outofplace=\"0\" minBytes=\"0\""), std::string::npos);
  EXPECT_NE(exported("msccl", {.dialect = "rccl"}).find(" nthreadblocks=\"2\""), std::string::npos);
}

TEST(ScheduleFormats, Goal) {
  // 8 bytes of 4-byte elements: each half is one element. That l4 of rank 0 comes after l1 needs no word: what it
  // receives was sent after that had arrived.
  EXPECT_EQ(exported("goal", {.size = {8}}), R"(num_ranks 2

rank 0 {
l1: send 4b to 1 tag 0
l2: recv 4b from 1 tag 1
l3: send 4b to 1 tag 2
l3 requires l2
l3 irequires l1
l4: recv 4b from 1 tag 3
}

rank 1 {
l1: recv 4b from 0 tag 0
l2: send 4b to 0 tag 1
l3: recv 4b from 0 tag 2
l4: send 4b to 0 tag 3
l4 requires l1
l4 irequires l2
}
)");
}

TEST(ScheduleFormats, AstraSimNamesTheTraces) {
  const ExportOptions named{.size = {8}, .name = "runs/ours"};
  const auto files = export_schedule(two_halves(), two_ranks(), "astra-sim", named);
  ASSERT_TRUE(files) << files.error().message;
  ASSERT_EQ(files->size(), 3U);
  EXPECT_EQ(files->back().suffix, ".system.json");
  EXPECT_EQ(files->back().bytes, R"({
  "scheduling-policy": "FIFO",
  "preferred-dataset-splits": 1,
  "all-reduce-implementation-custom": ["runs/ours"],
  "local-mem-bw": 50
}
)");
  const auto traces = export_schedule(two_halves(), two_ranks(), "chakra", named);
  EXPECT_EQ(files->front().bytes, traces->front().bytes);
  Schedule other = two_halves();
  other.collective.kind = CollectiveKind::reduce;
  EXPECT_EQ(export_schedule(other, two_ranks(), "astra-sim", named).error().message,
            "ASTRA-sim has no reduce of one's own");
}

TEST(ScheduleFormats, SvgHasTheLoadsOfThePlan) {
  // Each way carries two halves, so both links, one line, are as full as the fullest: past 95 %, the last step. Every
  // step is in the legend once.
  const std::string svg = exported("svg");
  EXPECT_TRUE(svg.starts_with("<svg ")) << svg.substr(0, 60);
  const auto count = [&](std::string_view part) {
    std::size_t found = 0;
    for (std::size_t at = svg.find(part); at != std::string::npos; at = svg.find(part, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("class=\"load5\""), 2U);
  EXPECT_EQ(count("class=\"load0\""), 1U);
}

TEST(ScheduleFormats, CsvAndDot) {
  EXPECT_EQ(exported("csv"), R"(transfer,src,dst,action,channel,offset,length,units,links
0,"a","b",reduce,0,1,1,2,"a>b"
1,"b","a",reduce,0,0,1,2,"b>a"
2,"a","b",copy,0,0,1,2,"a>b"
3,"b","a",copy,0,1,1,2,"b>a"
)");
  EXPECT_EQ(exported("dot"), R"(// all_reduce by by hand on two: a part of the buffer, and in how many transfers
digraph plan {
  "a";
  "b";
  "a" -> "b" [label="1 in 2"];
  "b" -> "a" [label="1 in 2"];
}
)");
}

TEST(ScheduleFormats, WhatAFormatCannotSayIsNamed) {
  EXPECT_EQ(exported("xml"), "there is no format 'xml'");
  EXPECT_EQ(exported("msccl", {.dialect = "ours"}), "there is no dialect 'ours'");
  Schedule other = two_halves();
  other.collective.kind = CollectiveKind::broadcast;
  EXPECT_EQ(export_schedule(other, two_ranks(), "msccl", {}).error().message,
            "MSCCL has no broadcast with a root or peer of its own");
  other = two_halves();
  other.relays = {NodeId(0)};
  for (const char* format : {"msccl", "mscclpp", "goal", "chakra", "astra-sim"}) {
    EXPECT_EQ(export_schedule(other, two_ranks(), format, {.size = {8}}).error().code, ErrorCode::unsupported)
        << format;
  }
  other = two_halves();
  other.collective = {.kind = CollectiveKind::all_gather, .rank_count = 2, .root = Rank(), .shares = {1, 3}};
  EXPECT_EQ(export_schedule(other, two_ranks(), "msccl", {}).error().message, "MSCCL has no unequal shards");
  other = two_halves();
  other.units = 10'000;
  other.slices = {{0, 1, Rank(), Rank()}, {1, 9'999, Rank(), Rank()}};
  EXPECT_EQ(export_schedule(other, two_ranks(), "msccl", {}).error().message,
            "the plan cuts the buffer into 10000 equal chunks, more than 4096");
}

/// all_reduce by both sending all they have, which the other adds up.
Schedule one_exchange() {
  Schedule schedule = two_halves();
  schedule.units = 1;
  schedule.slices = {{0, 1, Rank(), Rank()}};
  const std::vector<Transfer> both(schedule.transfers.begin(), schedule.transfers.begin() + 2);
  schedule.transfers.clear();
  for (const Transfer& way : both) {
    schedule.add_transfer(way.route, SliceId(0), 1, Action::reduce_input, ChannelId(0));
  }
  return schedule;
}

/// MSCCL sends at once, and adds what comes when that has left. It knows no other input.
TEST(ScheduleFormats, AnExchangeOfInputsComesBackFromMscclXml) {
  const auto files = export_schedule(one_exchange(), two_ranks(), "msccl", {.dialect = "astra"});
  ASSERT_TRUE(files) << files.error().message;
  const auto again = import_schedule(files->front().bytes, "a.xml", two_ranks());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(verify(*again, two_ranks()).ok());
  ASSERT_EQ(again->transfers.size(), 2U);
  for (const Transfer& transfer : again->transfers) EXPECT_EQ(transfer.action(), Action::reduce_input);

  Schedule behind = one_exchange();
  behind.transfers.front().reduces = behind.transfers.front().reads_input = 0;
  behind.transfers.insert(behind.transfers.begin() + 1, one_exchange().transfers.front());
  EXPECT_EQ(export_schedule(behind, two_ranks(), "msccl", {}).error().message,
            "MSCCL sends no input behind other data on one channel");
}

TEST(ScheduleFormats, FormsWithoutInputsSaySo) {
  for (const char* format : {"mscclpp", "nccl-graph"}) {
    const auto files = export_schedule(one_exchange(), two_ranks(), format, {.size = {8}});
    ASSERT_FALSE(files) << format;
    EXPECT_EQ(files.error().code, ErrorCode::unsupported);
    EXPECT_NE(files.error().message.find("reduce_input"), std::string::npos) << files.error().message;
  }
  for (const char* format : {"csv", "dot", "goal", "chakra", "astra-sim"}) {
    EXPECT_TRUE(export_schedule(one_exchange(), two_ranks(), format, {.size = {8}})) << format;
  }
}

/// An all_gather of two ranks: each hands its chunk of the output to the other.
std::string all_gather(const std::string& step0, const std::string& step1) {
  return "<algo name=\"x\" coll=\"allgather\" ngpus=\"2\" nchunksperloop=\"2\">\n<gpu id=\"0\"><tb id=\"0\" send=\"1\" "
         "recv=\"1\" chan=\"0\">\n" +
         step0 + "</tb></gpu>\n<gpu id=\"1\"><tb id=\"0\" send=\"0\" recv=\"0\" chan=\"0\">\n" + step1 +
         "</tb></gpu></algo>";
}
std::string step(const std::string& type, const std::string& src, int from, const std::string& dst, int to,
                 const std::string& more = "") {
  return "<step type=\"" + type + "\" srcbuf=\"" + src + "\" srcoff=\"" + std::to_string(from) + "\" dstbuf=\"" + dst +
         "\" dstoff=\"" + std::to_string(to) + "\" cnt=\"1\"" + more + "/>\n";
}

TEST(MscclImport, BothSendFirst) {
  // Each sends its input, then receives into its output, in one thread block: sends do not wait for their receives.
  const std::string text =
      all_gather(step("s", "i", 0, "o", 0) + step("r", "i", 0, "o", 1) + step("cpy", "i", 0, "o", 0),
                 step("s", "i", 0, "o", 1) + step("r", "i", 0, "o", 0) + step("cpy", "i", 0, "o", 1));
  const Topology topology = two_ranks();
  const auto schedule = import_schedule(text, "a.xml", topology);
  ASSERT_TRUE(schedule) << schedule.error().message;
  EXPECT_TRUE(verify(*schedule, topology).ok());
  EXPECT_EQ(schedule->transfers.size(), 2U);
  EXPECT_EQ(schedule->algorithm, "x");
}

TEST(MscclImport, ScratchPassesChunksOn) {
  const std::string text =
      all_gather(step("s", "i", 0, "o", 0) + step("r", "i", 0, "s", 5) + step("cpy", "s", 5, "o", 1),
                 step("s", "i", 0, "o", 1) + step("r", "i", 0, "o", 0));
  EXPECT_EQ(import_refusal(text), "");
}

TEST(MscclImport, WhatCameToScratchIsAddedThere) {
  // As RCCL's all-pairs algorithms do: each sends the other its chunk of the sum, adds what came, and sends the sum.
  const auto gpu = [](int own) {
    const std::string id = std::to_string(own), peer = std::to_string(1 - own);
    const int other = 1 - own;
    return "<gpu id=\"" + id + "\"><tb id=\"0\" send=\"" + peer + "\" recv=\"" + peer + "\" chan=\"0\">" +
           step("s", "i", other, "s", 3) + step("r", "i", own, "s", 3) + step("re", "s", 3, "i", own) +
           step("s", "i", own, "i", own) + step("r", "i", other, "i", other) + "</tb></gpu>\n";
  };
  const std::string text =
      "<algo name=\"pairs\" coll=\"allreduce\" ngpus=\"2\" nchunksperloop=\"2\">" + gpu(0) + gpu(1) + "</algo>";
  const Topology topology = two_ranks();
  const auto schedule = import_schedule(text, "a.xml", topology);
  ASSERT_TRUE(schedule) << schedule.error().message;
  EXPECT_TRUE(verify(*schedule, topology).ok());
  // Two sums and two copies, each of half the buffer.
  ASSERT_EQ(schedule->transfers.size(), 4U);
  EXPECT_EQ(
      std::ranges::count_if(schedule->transfers, [](const Transfer& each) { return each.action() == Action::reduce; }),
      2);
}

TEST(MscclImport, RefusalsNameThePlace) {
  const std::string send0 = step("s", "i", 0, "o", 0), send1 = step("s", "i", 0, "o", 1);
  EXPECT_EQ(import_refusal(all_gather(send0 + step("r", "i", 0, "o", 0), send1)),
            "a.xml:4:1: it moves a chunk to another's place, o0");
  EXPECT_EQ(import_refusal(all_gather(send0 + step("re", "i", 0, "o", 0), send1)),
            "a.xml:4:1: it adds what did not come to scratch, or adds it in scratch");
  EXPECT_EQ(import_refusal(all_gather(send0 + step("re", "s", 4, "o", 0), send1)),
            "a.xml:4:1: it adds what did not come to scratch, or adds it in scratch");
  EXPECT_EQ(import_refusal(all_gather(
                send0 + step("r", "i", 0, "s", 4) + step("cpy", "s", 4, "o", 1) + step("re", "s", 4, "o", 1), send1)),
            "a.xml:5:1: scratch 4 is added to the rank's own elsewhere, and used here");
  EXPECT_EQ(import_refusal(all_gather(send0 + step("r", "i", 0, "s", 4) + step("re", "s", 4, "o", 0), send1)),
            "a.xml:5:1: it adds unlike chunks");
  EXPECT_EQ(import_refusal(all_gather(send0 + step("r", "i", 0, "o", 7), send1)),
            "a.xml:4:1: the buffer o has no chunk 7");
  EXPECT_EQ(import_refusal(all_gather(send0, "")), "a.xml:3:1: nobody receives what it sends");
  EXPECT_EQ(import_refusal(all_gather(step("r", "i", 0, "o", 1), "")),
            "a.xml:3:1: GPU 0 never gets past this step: nothing comes that it could receive");
  EXPECT_EQ(import_refusal(all_gather(step("nop", "i", 0, "o", 0, " depid=\"0\" deps=\"0\""), "")),
            "a.xml:3:1: GPU 0 never gets past this step: what it waits for is never over");
  EXPECT_EQ(import_refusal(all_gather(step("nop", "i", 0, "o", 0, " depid=\"4\" deps=\"0\""), "")),
            "a.xml:3:2: <step>: there is no thread block 4");
  EXPECT_EQ(import_refusal(all_gather(step("cpy", "s", 3, "o", 0), "")), "a.xml:3:1: nothing has come to scratch 3");
  EXPECT_EQ(import_refusal("<algo coll=\"broadcast\"/>"), "a.xml:1:2: <algo>: coll=\"broadcast\" is not read");
  EXPECT_EQ(import_refusal("<algo coll=\"allgather\" ngpus=\"2\" nchunksperloop=\"3\"/>"),
            "a.xml:1:2: <algo>: 3 chunks do not divide among 2 GPUs");
  EXPECT_EQ(import_refusal("<algo coll=\"allgather\" ngpus=\"4\" nchunksperloop=\"4\"/>"),
            "a.xml is for 4 GPUs, and two has 2 ranks");
}

TEST(MscclImport, WhatChangesOnTheWayIsRefused) {
  // Two GPUs swap: what GPU 1 sends is overwritten by what it receives, before GPU 0 has taken it.
  const std::string text = R"(<algo coll="allreduce" ngpus="2" nchunksperloop="1">
<gpu id="0"><tb id="0" send="1" recv="1" chan="0">
<step type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1"/>
<step type="r" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1"/></tb></gpu>
<gpu id="1"><tb id="0" send="0" recv="-1" chan="0">
<step type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1"/></tb>
<tb id="1" send="-1" recv="0" chan="0">
<step type="rrc" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="0" deps="0"/></tb></gpu></algo>)";
  EXPECT_EQ(import_refusal(text), "a.xml:6:1: what it sends changes at the sender before it is received");
}

/// Four ranks, each two joined by two cables.
Topology four_ranks() {
  TopologyBuilder builder;
  std::vector<NodeId> nodes;
  for (const char* name : {"g0", "g1", "g2", "g3"}) nodes.push_back(builder.rank(name));
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (std::size_t j = i + 1; j < nodes.size(); ++j) {
      builder.cable(nodes[i], nodes[j], {});
      builder.cable(nodes[i], nodes[j], {});
    }
  }
  return *std::move(builder).build("four");
}

std::string graphs(const std::string& channels) {
  return "<graphs version=\"1\"><graph id=\"1\" pattern=\"1\"><channel><gpu dev=\"0\"/></channel></graph>\n"
         "<graph id=\"0\" pattern=\"4\">\n" +
         channels + "</graph></graphs>";
}
/// GPUs 8 to 11 of the machine: the second is 0x9.
const std::string ring = "<channel><gpu dev=\"8\"/><gpu dev=\"0xa\"/><gpu dev=\"0x9\"/><gpu dev=\"b\"/></channel>\n";

TEST(NcclRings, BecomePlans) {
  const Topology topology = four_ranks();
  for (const CollectiveKind kind :
       {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_reduce}) {
    const auto schedule = import_nccl_rings(graphs(ring + ring), "a.xml", topology, kind);
    ASSERT_TRUE(schedule) << schedule.error().message;
    EXPECT_TRUE(verify(*schedule, topology).ok());
    // Two rings of four hops; each of the 4 x 2 trees of a direction has three edges.
    EXPECT_EQ(schedule->transfers.size(), kind == CollectiveKind::all_reduce ? 48U : 24U);
    EXPECT_EQ(schedule->route_count(), 8U);  // The second ring takes the second cable of each pair.
    for (const Transfer& transfer : schedule->transfers) {
      const std::vector<std::size_t> next = {2, 3, 1, 0};  // g0 g2 g1 g3
      EXPECT_EQ(schedule->dst(transfer).index(), next[schedule->src(transfer).index()]);
    }
  }
}

TEST(NcclRings, RefusalsNameThePlace) {
  const auto refused = [](const std::string& text, CollectiveKind kind = CollectiveKind::all_gather) {
    const auto schedule = import_nccl_rings(text, "a.xml", four_ranks(), kind);
    return schedule ? "" : schedule.error().message;
  };
  EXPECT_EQ(refused("<algo/>"), "a.xml:1:2: <algo>: a NCCL graph file is a <graphs>");
  EXPECT_EQ(refused(graphs("")), "a.xml:1:2: <graphs>: there are no rings in it: no graph of pattern 4");
  EXPECT_EQ(refused(graphs("<channel><gpu dev=\"0\"/></channel>")),
            "a.xml:3:2: <channel>: the ring has 1 GPUs, and four has 4 ranks");
  EXPECT_EQ(refused(graphs("<channel><gpu dev=\"0\"/><gpu dev=\"0x0\"/></channel>")),
            "a.xml:3:25: <gpu>: the GPU is in the ring already");
  EXPECT_EQ(refused(graphs("<channel><gpu dev=\"-1\"/></channel>")), "a.xml:3:11: <gpu>: its dev is no number");
  EXPECT_EQ(refused(graphs("<channel><net dev=\"0\"/></channel>")),
            "a.xml:3:2: <channel>: it leaves the machine by a NIC");
  EXPECT_EQ(refused(graphs(ring), CollectiveKind::broadcast), "NCCL's rings are not read for broadcast");
  std::string other = ring;
  other.replace(other.find("0x9"), 3, "0xc");
  EXPECT_EQ(refused(graphs(ring + other)), "a.xml: its rings are of unlike GPUs");
}

// NCCL's own words around the rings of two communicators: that of four ranks counts, its channel 1 told by two ranks.
const std::string ring_log =
    "box:10:11 [0] NCCL INFO comm 0x5 rank 0 nRanks 4 nNodes 1\n"
    "box:10:11 [0] NCCL INFO Channel 00/02 : 0 2 1 3\n"
    "box:10:11 [0] NCCL INFO Channel 01/02 : 0 3 1 2\n"
    "box:10:11 [0] NCCL INFO Channel 00/01 : 0 1\n"
    "box:10:12 [1] NCCL INFO Channel 01/02 : 0 3 1 2\n"
    "box:10:11 [0] NCCL INFO Channel 00/0 : 2[2] -> 3[3] via P2P/CUMEM\n";

TEST(NcclLog, RingsBecomePlans) {
  const Topology topology = four_ranks();
  const auto schedule = import_nccl_rings(ring_log, "a.log", topology, CollectiveKind::all_gather);
  ASSERT_TRUE(schedule) << schedule.error().message;
  EXPECT_TRUE(verify(*schedule, topology).ok());
  EXPECT_EQ(schedule->transfers.size(), 24U);  // 2 rings x 4 roots x 3 hops
  for (const Transfer& transfer : schedule->transfers) {
    const std::size_t from = schedule->src(transfer).index(), to = schedule->dst(transfer).index();
    const std::vector<std::vector<std::size_t>> next = {{2, 3}, {3, 2}, {1, 0}, {0, 1}};  // 0 2 1 3 and 0 3 1 2
    EXPECT_TRUE(to == next[from][0] || to == next[from][1]) << from << " to " << to;
  }
}

TEST(NcclLog, RefusalsNameThePlace) {
  const auto refused = [](const std::string& text) {
    const auto schedule = import_nccl_rings(text, "a.log", four_ranks(), CollectiveKind::all_gather);
    return schedule ? "" : schedule.error().message;
  };
  const std::string begin = "h:1:2 [0] NCCL INFO Channel 00/02 : ";
  EXPECT_EQ(refused(begin + "0 1 2\n"), "a.log: there is no ring of 4 ranks in it; it has rings of 3");
  EXPECT_EQ(refused("h NCCL INFO nothing\n"), "a.log: there is no ring of 4 ranks in it");
  EXPECT_EQ(refused(begin + "0 1 1 3\n"), "a.log:1:29: the ring does not pass each rank once");
  EXPECT_EQ(refused(begin + "0 1 2 3\n" + begin + "0 2 1 3\n"),
            "a.log:2:29: channel 0 has another ring than above: of another communicator");
}

// What NCCL found is written as it was read; rings that differ in nothing but their number are written once.
TEST(NcclGraph, RingsAreReadAgain) {
  const Topology topology = four_ranks();
  for (const CollectiveKind kind :
       {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_reduce}) {
    const auto schedule = import_nccl_rings(ring_log, "a.log", topology, kind);
    ASSERT_TRUE(schedule);
    const auto files = export_schedule(*schedule, topology, "nccl-graph", {});
    ASSERT_TRUE(files) << files.error().message;
    const std::string& text = files->front().bytes;
    EXPECT_NE(text.find("nchannels=\"2\""), std::string::npos) << text;
    EXPECT_NE(
        text.find("<gpu dev=\"0x0\"/>\n      <gpu dev=\"0x2\"/>\n      <gpu dev=\"0x1\"/>\n      <gpu dev=\"0x3\"/>"),
        std::string::npos)
        << text;
    const auto again = import_nccl_rings(text, "b.xml", topology, kind);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->transfers.size(), schedule->transfers.size());
    EXPECT_TRUE(verify(*again, topology).ok());
  }
  const auto doubled = import_nccl_rings(graphs(ring + ring), "a.xml", topology, CollectiveKind::all_gather);
  ASSERT_TRUE(doubled);
  const auto once = export_schedule(*doubled, topology, "nccl-graph", {});
  ASSERT_TRUE(once) << once.error().message;
  EXPECT_NE(once->front().bytes.find("nchannels=\"1\""), std::string::npos);  // Both are the same share of all.
}

/// all_gather of four ranks over rings whose weights are given, each rank's data along its own chain.
Schedule weighted_rings(const Topology& topology, const std::vector<std::pair<std::string, std::int64_t>>& rings) {
  std::string log;
  for (std::size_t i = 0; i < rings.size(); ++i) {
    for (std::int64_t k = 0; k < rings[i].second; ++k) {
      log += "h NCCL INFO Channel " + std::to_string(100 * i + static_cast<std::size_t>(k)) +
             "/99 : " + rings[i].first + "\n";
    }
  }
  return *import_nccl_rings(log, "a.log", topology, CollectiveKind::all_gather);
}

// 2 : 1 is three channels; 50 : 1 is nearest to one ring alone, which then carries 51 / 50 of its part.
TEST(NcclGraph, ChannelsAreSharedByWeight) {
  const Topology topology = four_ranks();
  const auto channels = [&](const Schedule& schedule) {
    const auto files = export_schedule(schedule, topology, "nccl-graph", {});
    if (!files) return files.error().message;
    const std::string& text = files->front().bytes;
    const std::size_t at = text.find("nchannels=\"") + 11;
    return text.substr(at, text.find('"', at) - at);
  };
  EXPECT_EQ(channels(weighted_rings(topology, {{"0 1 2 3", 2}, {"0 2 1 3", 1}})), "3");
  EXPECT_EQ(channels(weighted_rings(topology, {{"0 1 2 3", 50}, {"0 2 1 3", 1}})), "1");
}

TEST(NcclGraph, RefusesWhatIsNoRing) {
  Schedule empty = two_halves();
  empty.transfers.clear();
  const auto files = export_schedule(empty, two_ranks(), "nccl-graph", {});
  ASSERT_FALSE(files);
  EXPECT_EQ(files.error().message, "NCCL graph XML has rings, and the plan has none");
}

TEST(ScheduleForms, AreSeenFromTheText) {
  EXPECT_EQ(recognise_schedule("  <algo name=\"a\"/>"), ScheduleForm::msccl);
  EXPECT_EQ(recognise_schedule("<graphs version=\"1\"/>"), ScheduleForm::nccl_graph);
  EXPECT_EQ(recognise_schedule("{\"gpus\": [{\"threadblocks\": []}]}"), ScheduleForm::mscclpp);
  EXPECT_EQ(recognise_schedule(ring_log), ScheduleForm::nccl_log);
  EXPECT_EQ(recognise_schedule("<system version=\"1\"/>"), std::nullopt);
  EXPECT_EQ(recognise_schedule(""), std::nullopt);
  for (const ScheduleForm source : schedule_forms()) EXPECT_FALSE(to_string(source).empty());
}

TEST(ScheduleForms, WhatIsNamedGoesBeforeTheLooks) {
  const auto schedule = import_schedule("<algo/>", "a", four_ranks(), ScheduleForm::mscclpp);
  ASSERT_FALSE(schedule);
  EXPECT_NE(schedule.error().help.find("MSCCL++"), std::string::npos) << schedule.error().message;
  const auto rings =
      import_nccl_rings(ring_log, "a", four_ranks(), CollectiveKind::all_gather, ScheduleForm::nccl_graph);
  EXPECT_FALSE(rings);
}

}  // namespace
}  // namespace espalier
