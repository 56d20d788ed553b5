// Schedules of every planner on random machines, written in the forms of other tools: MSCCL XML and plans of
// MSCCL++ read back are the same schedule, GOAL and Chakra traces come to their end with every byte.

#include "schedule/formats/formats.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "base/check.h"
#include "base/random.h"
#include "planners/chunking.h"
#include "planners/pacing_search.h"
#include "planners/planner.h"
#include "scenario/workload/chakra.h"
#include "schedule/layout.h"
#include "schedule/verify/verify.h"
#include "sim/simulate.h"
#include "tests/support/files/shipped_machine.h"
#include "tests/support/read_good.h"
#include "topology/generate/generate.h"

namespace espalier {
namespace {

constexpr ExportOptions options{.size = {std::int64_t{3} << 12U}, .element_size = 4, .dialect = "astra"};

Topology random_machine(std::uint64_t seed) {
  Random random(seed);
  RandomOptions machine;
  machine.ranks = random.between(2, 6);
  machine.switches = random.between(0, 2);
  machine.extra = random.between(0, 6);
  machine.seed = random.next();
  auto topology = generate_random(machine);
  ESPALIER_CHECK(topology.has_value(), "random options are in range");
  return std::move(*topology);
}

/// How much of each part goes from whom to whom, and whether it is added: what two schedules that move the same share.
using Moves = std::map<std::tuple<std::size_t, std::size_t, bool, std::int64_t>, std::int64_t>;

Moves moves_of(const Schedule& schedule) {
  Moves moves;
  constexpr std::int64_t pieces = 5040;  // The buffer is compared in so many equal pieces, whatever the units are.
  for (const Transfer& transfer : schedule.transfers) {
    for (std::uint32_t i = 0; i < transfer.slice_count; ++i) {
      const Slice& slice = schedule.slices[transfer.first_slice.index() + i];
      for (std::int64_t piece = 0; piece < pieces; ++piece) {
        const std::int64_t unit = piece * schedule.units / pieces;
        if (unit < slice.offset || unit >= slice.offset + slice.length) continue;
        ++moves[{schedule.src(transfer).index(), schedule.dst(transfer).index(), transfer.reduces != 0, piece}];
      }
    }
  }
  return moves;
}

/// How many files were written and read back.
int try_msccl(const Schedule& schedule, const Topology& topology) {
  int written = 0;
  for (const char* dialect : {"astra", "msccl", "rccl"}) {
    ExportOptions of_dialect = options;
    of_dialect.dialect = dialect;
    const auto files = export_schedule(schedule, topology, "msccl", of_dialect);
    if (!files) {
      EXPECT_EQ(files.error().code, ErrorCode::unsupported) << files.error().message;
      continue;
    }
    const auto again = import_schedule(files->front().bytes, "plan.xml", topology);
    EXPECT_TRUE(again) << again.error().message;
    if (!again) continue;
    const VerifyReport report = verify(*again, topology);
    EXPECT_TRUE(report.ok()) << (report.ok() ? "" : describe(report.breaches.front(), *again, topology));
    EXPECT_EQ(moves_of(*again), moves_of(schedule));
    ++written;
  }
  return written;
}

/// Whether a plan of MSCCL++ was written and read back.
bool try_mscclpp(const Schedule& schedule, const Topology& topology) {
  const auto files = export_schedule(schedule, topology, "mscclpp", {});
  if (!files) {
    EXPECT_EQ(files.error().code, ErrorCode::unsupported) << files.error().message;
    return false;
  }
  const auto again = import_schedule(files->front().bytes, "plan.json", topology);
  EXPECT_TRUE(again) << again.error().message;
  if (!again) return false;
  const VerifyReport report = verify(*again, topology);
  EXPECT_TRUE(report.ok()) << (report.ok() ? "" : describe(report.breaches.front(), *again, topology));
  EXPECT_EQ(moves_of(*again), moves_of(schedule));
  return true;
}

/// A schedule of a shipped machine, in another form and back; what is lost of it.
std::pair<Schedule, std::vector<std::string>> there_and_back(const Schedule& schedule, const Topology& topology,
                                                             const char* format) {
  const auto files = export_schedule(schedule, topology, format, {});
  EXPECT_TRUE(files) << (files ? "" : files.error().message);
  auto again = import_schedule(files->front().bytes, "plan", topology);
  EXPECT_TRUE(again) << (again ? "" : again.error().message);
  return {*std::move(again), files->front().lost};
}

double best_time(const Schedule& schedule, const Topology& topology) {
  const auto simulator = sim::Simulator::make(schedule, topology);
  const planners::ChunkModel chunks(schedule, topology);
  sim::Options how{.size = {std::int64_t{64} << 20U}};
  const auto best = planners::find_best_pacing(chunks, how.size, {}, [&](const Pacing& pacing, Picoseconds deadline) {
    how.set(pacing);
    return simulator->run_until(how, deadline);
  });
  return best->elapsed.seconds();
}

TEST(ScheduleFormats, TimesOutliveTheWayThereAndBack) {
  // Up to 44 channels between two of these ranks: MSCCL has 32, MSCCL++ what 108 thread blocks of a GPU leave.
  const Topology topology = test::shipped_machine("dgx1v-nvlink");
  const Collective collective = *make_collective(CollectiveKind::all_reduce, 8, std::nullopt);
  for (const char* planner : {"packing", "lp", "ring", "tree"}) {
    const Schedule schedule = *planners::plan(topology, collective, *planners::find_planner(planner));
    const double before = best_time(schedule, topology);
    const auto [xml, lost] = there_and_back(schedule, topology, "msccl");
    EXPECT_LT(best_time(xml, topology), 1.005 * before) << planner;
    const auto [plan, also_lost] = there_and_back(schedule, topology, "mscclpp");
    EXPECT_LT(best_time(plan, topology), 1.10 * before) << planner;
    // What is lost is said: links, and channels where they are fewer than they were.
    EXPECT_EQ(lost.size(), planner == std::string_view("packing") ? 2U : 1U) << planner;
  }
}

/// Rings of 100 and 1 GB/s: of 32 equal channels the nearest are 31 and 1, which gives the slow one 3 times too much.
constexpr const char* unlike_rings = R"(
espalier: 1
name: unlike-rings
nodes:
  - {id: "gpu[0-2]", kind: gpu}
links:
  - {from: gpu0, to: gpu1, bandwidth: 100 GB/s, latency: 1 us}
  - {from: gpu1, to: gpu2, bandwidth: 100 GB/s, latency: 1 us}
  - {from: gpu2, to: gpu0, bandwidth: 100 GB/s, latency: 1 us}
  - {from: gpu1, to: gpu0, bandwidth: 1 GB/s, latency: 1 us}
  - {from: gpu2, to: gpu1, bandwidth: 1 GB/s, latency: 1 us}
  - {from: gpu0, to: gpu2, bandwidth: 1 GB/s, latency: 1 us}
)";
TEST(ScheduleFormats, EveryFormSaysWhatItLoses) {
  const auto ring_of = [](const Topology& topology) {
    const Collective collective = *make_collective(CollectiveKind::all_gather, topology.rank_count(), std::nullopt);
    return *planners::plan(topology, collective, *planners::find_planner("ring"));
  };
  const auto lost_by = [](const Schedule& schedule, const Topology& topology, const char* format) {
    const auto files = export_schedule(schedule, topology, format, {.size = {1 << 20}});
    EXPECT_TRUE(files) << format << ": " << (files ? "" : files.error().message);
    return files->front().lost;
  };
  const Topology box = test::shipped_machine("dgx1v-nvlink");
  Schedule schedule = ring_of(box);
  for (const char* format : {"csv", "dot", "svg"}) EXPECT_TRUE(lost_by(schedule, box, format).empty()) << format;
  // The links by all; that messages are whole by those that have messages.
  for (const char* format : {"msccl", "mscclpp", "nccl-graph"}) {
    EXPECT_EQ(lost_by(schedule, box, format).size(), 1U) << format;
  }
  for (const char* format : {"goal", "chakra", "astra-sim"}) {
    EXPECT_EQ(lost_by(schedule, box, format).size(), 2U) << format;
  }
  // The size of chunks, where it is said.
  schedule.pacing = SizedPacing{};
  schedule.pacing->chunk = {4096};
  EXPECT_EQ(lost_by(schedule, box, "nccl-graph").size(), 2U);
  // The order on a channel, which GOAL has.
  for (Transfer& transfer : schedule.transfers) transfer.channel_value = 0;
  EXPECT_EQ(lost_by(schedule, box, "goal").size(), 2U);
  EXPECT_EQ(lost_by(schedule, box, "chakra").size(), 3U);
  // What a ring carries.
  const Topology unlike = test::read_good(unlike_rings);
  const auto lost = lost_by(ring_of(unlike), unlike, "nccl-graph");
  ASSERT_EQ(lost.size(), 2U);
  EXPECT_NE(lost.back().find("channels carry equal shares"), std::string::npos) << lost.back();
}

/// One event of a rank in GOAL.
struct GoalEvent {
  bool is_send = false;
  std::int64_t bytes = 0;
  std::size_t peer = 0;
  std::uint64_t tag = 0;
  std::vector<std::size_t> after;
  bool is_done = false;
};

std::vector<std::vector<GoalEvent>> parse_goal(const std::string& text) {
  std::vector<std::vector<GoalEvent>> ranks;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    std::istringstream words(line);
    std::string label, what, other, skipped;
    words >> label >> what;
    if (label == "rank") ranks.emplace_back();
    if (what == "send" || what == "recv") {
      GoalEvent event{.is_send = what == "send"};
      words >> event.bytes >> skipped >> skipped >> event.peer >> skipped >> event.tag;
      EXPECT_EQ(label, "l" + std::to_string(ranks.back().size() + 1) + ":");
      ranks.back().push_back(event);
    } else if (what == "requires") {
      words >> other;
      EXPECT_EQ(label, "l" + std::to_string(ranks.back().size()));
      ranks.back().back().after.push_back(std::stoul(other.substr(1)) - 1);
    }
  }
  return ranks;
}

/// Runs the events in any order that their dependencies allow. A receive needs its send, of the same size.
void expect_goal_ends(const std::string& text, std::int64_t bytes) {
  auto ranks = parse_goal(text);
  std::map<std::tuple<std::size_t, std::size_t, std::uint64_t>, std::int64_t> sent;
  std::size_t left = 0;
  for (const auto& events : ranks) left += events.size();
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      for (GoalEvent& event : ranks[rank]) {
        bool is_ready = !event.is_done;
        for (const std::size_t other : event.after) is_ready = is_ready && ranks[rank][other].is_done;
        if (is_ready && !event.is_send) {
          const auto message = sent.find({event.peer, rank, event.tag});
          is_ready = message != sent.end();
          if (is_ready) {
            EXPECT_EQ(message->second, event.bytes);
          }
        }
        if (!is_ready) continue;
        if (event.is_send) {
          EXPECT_TRUE(sent.emplace(std::tuple{rank, event.peer, event.tag}, event.bytes).second);
          bytes -= event.bytes;
        }
        event.is_done = moved = true;
        --left;
      }
    }
  }
  EXPECT_EQ(left, 0U);
  EXPECT_EQ(bytes, 0);
}

void try_messages(const Schedule& schedule, const Topology& topology) {
  const auto layout = Layout::make(schedule, options.size, options.element_size);
  ASSERT_TRUE(layout) << layout.error().message;
  std::int64_t bytes = 0;
  for (const Transfer& transfer : schedule.transfers) bytes += layout->range(transfer).length();
  const auto goal = export_schedule(schedule, topology, "goal", options);
  ASSERT_TRUE(goal) << goal.error().message;
  expect_goal_ends(goal->front().bytes, bytes);
  const auto chakra = export_schedule(schedule, topology, "chakra", options);
  ASSERT_TRUE(chakra) << chakra.error().message;
  std::vector<std::vector<scenario::ChakraNode>> traces;
  scenario::ChakraOptions ranks;
  std::int64_t sent = 0;
  for (const ExportedFile& file : *chakra) {
    const auto nodes = scenario::read_chakra(file.bytes, file.suffix);
    ASSERT_TRUE(nodes) << nodes.error().message;
    for (const scenario::ChakraNode& node : *nodes)
      sent += node.type == scenario::ChakraType::send ? node.comm_size : 0;
    ranks.ranks.emplace_back(traces.size());
    traces.push_back(*nodes);
  }
  EXPECT_EQ(sent, bytes);
  scenario::Job job;
  const auto added = scenario::add_chakra(job, traces, ranks);
  EXPECT_TRUE(added) << added.error().message;
}

TEST(ScheduleFormats, OfEveryPlannerOnRandomMachines) {
  std::size_t tried = 0;
  int written = 0, written_mscclpp = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Topology topology = random_machine(seed);
    const CollectiveKind kind = all_collective_kinds[seed % all_collective_kinds.size()];
    const auto collective = make_collective(kind, topology.rank_count(), std::nullopt);
    ASSERT_TRUE(collective);
    for (const planners::Planner& planner : planners::all_planners()) {
      SCOPED_TRACE(std::string(to_string(kind)) + " by " + std::string(planner.name));
      const auto schedule = planners::plan(topology, *collective, planner);
      if (!schedule || !schedule->relays.empty()) continue;
      ++tried;
      written += try_msccl(*schedule, topology);
      written_mscclpp += try_mscclpp(*schedule, topology) ? 1 : 0;
      try_messages(*schedule, topology);
    }
  }
  EXPECT_GT(tried, 100U);
  EXPECT_GT(written, 100);
  EXPECT_GT(written_mscclpp, 30);
}

}  // namespace
}  // namespace espalier
