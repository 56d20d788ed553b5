#include "schedule/timeline/timeline.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "schedule/timeline/binary_timeline.h"
#include "schedule/timeline/chrome_trace.h"
#include "schedule/timeline/decimal_time.h"
#include "tests/support/random/random_timeline.h"

namespace espalier {
namespace {

/// Two ranks and a link: a send, its way and its arrival, and a second send while the first is under way.
Timeline make_small_timeline() {
  Timeline timeline;
  timeline.title = "send_recv";
  timeline.origin = "simulation";
  timeline.rank_names = {"g0", "g1"};
  timeline.link_names = {"g0>g1"};
  timeline.spans = {{0, TransferId(0), 0, Phase::send, {0}, {1'500'000}},
                    {0, TransferId(0), 0, Phase::wire, {0}, {1'500'000}},
                    {0, TransferId(1), 0, Phase::send, {500'001}, {3'000'000}},
                    {1, TransferId(0), 0, Phase::recv, {1'000'000}, {2'500'000}}};
  return timeline;
}

std::string chrome_text(const Timeline& timeline) {
  std::ostringstream out;
  EXPECT_TRUE(write_chrome_trace(out, timeline));
  return out.str();
}

std::string binary_text(const Timeline& timeline) {
  std::ostringstream out;
  EXPECT_TRUE(write_binary_timeline(out, timeline));
  return out.str();
}

void expect_same(const Timeline& read, const Timeline& written) {
  EXPECT_EQ(read.title, written.title);
  EXPECT_EQ(read.origin, written.origin);
  EXPECT_EQ(read.rank_names, written.rank_names);
  EXPECT_EQ(read.link_names, written.link_names);
  EXPECT_EQ(read.spans, written.spans);
}

TEST(Phase, HasAName) {
  EXPECT_EQ(to_string(Phase::send), "send");
  EXPECT_EQ(to_string(Phase::wire), "wire");
  EXPECT_EQ(to_string(Phase::recv), "recv");
  EXPECT_EQ(to_string(Phase::reduce), "reduce");
}

TEST(ChromeTrace, IsJsonWithAThreadPerLane) {
  const auto document = nlohmann::json::parse(chrome_text(make_small_timeline()));
  std::map<std::string, std::string> thread_process;  // by thread name
  std::map<int, std::string> processes;
  std::vector<nlohmann::json> spans;
  for (const auto& event : document["traceEvents"]) {
    if (event["name"] == "process_name") processes[event["pid"]] = event["args"]["name"];
    if (event["name"] == "thread_name") thread_process[event["args"]["name"]] = processes[event["pid"]];
    if (event["ph"] == "X") spans.push_back(event);
  }
  const std::map<std::string, std::string> expected{{"g0", "simulated ranks"},
                                                    {"g0 (2)", "simulated ranks"},
                                                    {"g1", "simulated ranks"},
                                                    {"g1 recv", "simulated ranks"},
                                                    {"g0>g1", "simulated links"}};
  EXPECT_EQ(thread_process, expected);
  ASSERT_EQ(spans.size(), 4U);
  EXPECT_EQ(spans[0]["ts"], 0);
  EXPECT_EQ(spans[0]["dur"], 1.5);
  EXPECT_EQ(spans[2]["ts"], 0.500001);
  EXPECT_EQ(spans[2]["args"], (nlohmann::json{{"transfer", 1}, {"chunk", 0}, {"phase", "send"}}));
}

TEST(ChromeTrace, SpansSayWhatTheyAreAndArrowsGoFromSendToReceive) {
  const auto document = nlohmann::json::parse(chrome_text(make_small_timeline()));
  std::vector<std::string> names;
  std::map<std::string, nlohmann::json> arrows;  // by phase of the event
  std::map<std::pair<int, int>, std::string> threads;
  for (const auto& event : document["traceEvents"]) {
    if (event["name"] == "thread_name") threads[{event["pid"], event["tid"]}] = event["args"]["name"];
    if (event["ph"] == "X") names.push_back(event["name"]);
    if (event["ph"] == "s" || event["ph"] == "f") arrows.emplace(event["ph"], event);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"send 0>1 chunk 0", "wire 0>1 chunk 0", "send transfer 1 chunk 0",
                                             "recv 0>1 chunk 0"}));
  ASSERT_EQ(arrows.size(), 2U);
  EXPECT_EQ(arrows["s"]["id"], arrows["f"]["id"]);
  const auto thread_of = [&](const char* end) { return threads[{arrows[end]["pid"], arrows[end]["tid"]}]; };
  EXPECT_EQ(thread_of("s"), "g0");
  EXPECT_EQ(thread_of("f"), "g1 recv");
}

TEST(ChromeTrace, WhatRanHasProcessesOfItsOwn) {
  Timeline measured = make_small_timeline();
  measured.origin = "run";
  const std::string text = chrome_text(measured);
  EXPECT_NE(text.find("measured ranks"), std::string::npos);
  EXPECT_EQ(text.find("\"pid\":1,"), std::string::npos);
  const auto read = read_chrome_trace(text, "trace.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->spans, measured.spans);
}

TEST(ChromeTrace, SpansOfOneThreadNeverOverlap) {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    const auto document = nlohmann::json::parse(chrome_text(test::random_timeline(random)));
    std::map<std::pair<int, int>, std::int64_t> free_at;
    for (const auto& event : document["traceEvents"]) {
      if (event["ph"] != "X") continue;
      // Times are compared as far as the doubles of this JSON library hold them.
      const auto begin = parse_microseconds(event["ts"].dump());
      const auto duration = parse_microseconds(event["dur"].dump());
      if (!begin || !duration || begin->count > picoseconds_per_second) continue;
      const auto [found, added] = free_at.try_emplace({event["pid"], event["tid"]}, begin->count);
      EXPECT_GE(begin->count, found->second);
      found->second = begin->count + duration->count;
    }
  }
}

TEST(ChromeTrace, ReadsBackExactly) {
  Random random(2);
  for (int round = 0; round < 300; ++round) {
    const Timeline timeline = test::random_timeline(random);
    const std::string text = chrome_text(timeline);
    const auto read = read_chrome_trace(text, "trace.json");
    ASSERT_TRUE(read) << read.error().message;
    expect_same(*read, timeline);
    EXPECT_EQ(chrome_text(*read), text);
  }
}

TEST(ChromeTrace, ReadsWhatAnotherToolWroteAnew) {
  // Keys in another order, numbers in another form, events and keys that are not ours.
  auto document = nlohmann::json::parse(chrome_text(make_small_timeline()));
  document["traceEvents"].push_back({{"ph", "X"}, {"name", "other"}, {"ts", "?"}, {"args", {{"depth", {1, 2}}}}});
  document["traceEvents"].push_back({{"ph", "i"}, {"name", "mark"}});
  document["metadata"] = {{"nested", {{{"a", nullptr}}}}};
  const auto read = read_chrome_trace(document.dump(), "trace.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->spans, make_small_timeline().spans);
}

TEST(ChromeTrace, SaysWhereItIsNotATimeline) {
  const std::string text = chrome_text(make_small_timeline());
  const auto message = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    const auto read = read_chrome_trace(changed, "t.json");
    return read ? std::string("read") : read.error().message;
  };
  EXPECT_EQ(message("\"espalier_timeline\":1", "\"other\":1"),
            "t.json:1:1: the file is not a timeline: otherData has no \"espalier_timeline\": 1");
  EXPECT_EQ(message("\"dur\":1.5", "\"dur\":-1.5"), "t.json:14:1: this event ends before it begins, or past 2^63 ps");
  EXPECT_EQ(message("\"dur\":1.5", "\"dur\":1.5e-9"),
            "t.json:14:1: this event needs ts and dur that are whole numbers of picoseconds below 2^63");
  EXPECT_EQ(message("\"phase\":\"send\"", "\"phase\":\"sent\""),
            "t.json:14:1: this event has a phase that is none of send, wire, recv, reduce");
  EXPECT_EQ(message("\"phase\":\"send\"", "\"phase\":\"wire\""),
            "t.json:14:1: this event has a phase that belongs to the other process");
  EXPECT_EQ(message("\"pid\":1,\"tid\":1,\"ts\"", "\"pid\":1,\"tid\":77,\"ts\""),
            "t.json:14:1: this event lies on a thread that no event before it names");
  EXPECT_EQ(message("\"lane\":1", "\"lane\":5"), "t.json:1:1: the timeline's lanes are not numbered 0, 1, 2, ...");
  EXPECT_EQ(message("\"transfer\":1", "\"transfer\":-1").substr(0, 13), "t.json:18:1: ");
  EXPECT_EQ(message("]}", "").substr(0, 7), "t.json:");
}

TEST(ChromeTrace, SaysWhenItCouldNotBeWritten) {
  std::ostringstream out;
  out.setstate(std::ios::failbit);
  EXPECT_EQ(write_chrome_trace(out, make_small_timeline()).error().code, ErrorCode::unavailable);
  EXPECT_EQ(write_binary_timeline(out, make_small_timeline()).error().code, ErrorCode::unavailable);
}

TEST(BinaryTimeline, ReadsBackExactly) {
  Random random(3);
  for (int round = 0; round < 300; ++round) {
    const Timeline timeline = test::random_timeline(random);
    const std::string bytes = binary_text(timeline);
    const auto read = read_binary_timeline(bytes, "t.bin");
    ASSERT_TRUE(read) << read.error().message;
    expect_same(*read, timeline);
    EXPECT_EQ(binary_text(*read), bytes);
  }
}

TEST(BinaryTimeline, NoticesEveryDamagedByteAndEveryCut) {
  const std::string bytes = binary_text(make_small_timeline());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_FALSE(read_binary_timeline(bytes.substr(0, i), "t.bin")) << "cut at " << i;
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    EXPECT_FALSE(read_binary_timeline(damaged, "t.bin")) << "byte " << i;
  }
  EXPECT_FALSE(read_binary_timeline(bytes + "x", "t.bin"));
  EXPECT_EQ(read_binary_timeline("{}", "t.bin").error().message,
            "t.bin: the binary timeline does not begin with ESPTIME1");
}

TEST(BinaryTimeline, IsATenthOfTheTrace) {
  Timeline timeline = make_small_timeline();
  for (std::int64_t i = 0; i < 10'000; ++i) {
    timeline.spans.push_back(
        {0, TransferId(static_cast<std::size_t>(i)), 0, Phase::wire, {3'000'000 + i * 1000}, {3'000'500 + i * 1000}});
  }
  EXPECT_LT(binary_text(timeline).size() * 10, chrome_text(timeline).size());
}

}  // namespace
}  // namespace espalier
