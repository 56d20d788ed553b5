#include "lab/network.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <thread>

#include "lab/namespaces/clean_up.h"
#include "lab/namespaces/name_space.h"
#include "lab/process.h"
#include "lab/requirements.h"
#include "tests/lab/streams.h"
#include "topology/topology_builder.h"

// These build real networks. Where the rights or the kernel do not allow it, each is skipped with the reason.
namespace espalier::lab {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

constexpr Bandwidth megabytes(std::int64_t count) { return {count * 1'000'000}; }

/// Two ranks joined by a cable of 100 MB/s, by two more of 20 MB/s over a switch, and one way by a link of 50 MB/s.
Topology two_ranks() {
  TopologyBuilder builder;
  const NodeId a = builder.rank("a");
  const NodeId b = builder.rank("b");
  const NodeId s = builder.forwarder(NodeKind::switch_node, "s");
  builder.cable(a, b, {megabytes(100), {}, ""});
  builder.cable(a, s, {megabytes(200), {}, ""});
  builder.cable(s, b, {megabytes(20), {}, ""});
  builder.link(a, b, {megabytes(50), {}, ""});
  return std::move(builder).build("two").value();
}

/// A schedule with nothing but these routes, each given as link names; every route is from the first to the last node.
Schedule schedule_of(const Topology& topology, const std::vector<std::vector<std::string>>& routes) {
  Schedule schedule({CollectiveKind::all_gather, static_cast<std::uint32_t>(topology.rank_count()), {}}, "two", "test");
  for (const auto& names : routes) {
    std::vector<LinkId> links;
    for (const std::string& name : names) links.push_back(topology.find_link(name));
    schedule.add_route(topology.rank_of(topology.link(links.front()).tail),
                       topology.rank_of(topology.link(links.back()).head), links);
  }
  return schedule;
}

class LabTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto support = require_support();
    if (!support) GTEST_SKIP() << support.error().message;
  }
};

/// The best of some tries: a neighbour that takes the cores for a moment can only make a stream slower.
double best_rate(const LabNetwork& network, const RouteAddresses& route) {
  double best = 0;
  for (int attempt = 0; attempt < 4; ++attempt) {
    const auto stream = connect_route(network, route);
    if (!stream) {
      ADD_FAILURE() << stream.error().message;
      return 0;
    }
    best = std::max(best, measure_rate(*stream, 0.5));
  }
  return best;
}

TEST_F(LabTest, StreamsGetTheRatesOfTheirLinks) {
  const Topology topology = two_ranks();
  auto network = LabNetwork::make(topology);
  ASSERT_TRUE(network) << network.error().message;
  // One hop of 100 MB/s and its way back; two hops, where 20 of 200 and 20 MB/s remain; the link without a way back.
  const Schedule schedule = schedule_of(topology, {{"a>b#0"}, {"b>a"}, {"a>s", "s>b"}, {"b>s", "s>a"}, {"a>b#1"}});
  const auto routes = network->add_routes(schedule);
  ASSERT_TRUE(routes) << routes.error().message;
  const std::array expected = {100e6, 100e6, 20e6, 20e6, 50e6};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double rate = best_rate(*network, (*routes)[i]);
    EXPECT_NEAR(rate, expected[i], 0.05 * expected[i]) << "route " << i;
    RecordProperty("route_" + std::to_string(i), std::to_string(rate));
  }
}

TEST_F(LabTest, RoutesOfOnePairTakeTheirOwnLinks) {
  const Topology topology = two_ranks();
  auto network = LabNetwork::make(topology);
  ASSERT_TRUE(network) << network.error().message;
  const auto routes = network->add_routes(schedule_of(topology, {{"a>b#0"}, {"a>s", "s>b"}, {"a>b#1"}}));
  ASSERT_TRUE(routes) << routes.error().message;
  constexpr std::int64_t sent = 1'000'000;
  const std::array<std::vector<const char*>, 3> used = {{{"a>b#0"}, {"a>s", "s>b"}, {"a>b#1"}}};
  for (std::size_t i = 0; i < used.size(); ++i) {
    const auto before = network->counts();
    ASSERT_TRUE(before) << before.error().message;
    {
      const auto stream = connect_route(*network, (*routes)[i]);
      ASSERT_TRUE(stream) << stream.error().message;
      send_bytes(*stream, sent);
    }
    const auto after = network->counts();
    ASSERT_TRUE(after) << after.error().message;
    for (std::size_t link = 0; link < topology.link_count(); ++link) {
      const std::int64_t carried = (*after)[link].bytes - (*before)[link].bytes;
      const std::string name = topology.link_name(LinkId(link));
      if (std::ranges::find(used[i], name) != used[i].end()) {
        EXPECT_GE(carried, sent) << name;  // The data and their headers,
        EXPECT_LT(carried, sent + sent / 10) << name;
      } else {
        EXPECT_LT(carried, sent / 10) << name;  // and nothing elsewhere but acknowledgements.
      }
    }
  }
}

TEST_F(LabTest, TheSameLinksAreTheSameAddresses) {
  const Topology topology = two_ranks();
  auto network = LabNetwork::make(topology);
  ASSERT_TRUE(network) << network.error().message;
  const auto first = network->add_routes(schedule_of(topology, {{"a>b#0"}, {"b>a"}}));
  const auto second = network->add_routes(schedule_of(topology, {{"b>a"}, {"a>b#1"}}));
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->at(1).connect, second->at(0).connect);
  EXPECT_NE(first->at(0).connect, second->at(1).connect);
}

TEST_F(LabTest, ControlAddressesReachAllRanksAndTheHub) {
  const Topology topology = two_ranks();
  auto network = LabNetwork::make(topology);
  ASSERT_TRUE(network) << network.error().message;
  const RouteAddresses control{Rank(0), Rank(1), network->control_address(Rank(0)), network->control_address(Rank(1))};
  const auto stream = connect_route(*network, control);
  ASSERT_TRUE(stream) << stream.error().message;
  send_bytes(*stream, 1000);
  auto counts = network->counts();
  ASSERT_TRUE(counts);
  for (const LinkCount& count : *counts) EXPECT_EQ(count.packets, 0) << "control traffic took a link";
}

TEST_F(LabTest, ProgramsRunInsideTheirNamespace) {
  const Topology topology = two_ranks();
  auto network = LabNetwork::make(topology);
  ASSERT_TRUE(network) << network.error().message;
  auto process = run_in_namespace(network->name_space(Rank(1)), {"sh", "-c", "echo $WHAT; ip -o -4 addr show dev m"},
                                  {{"WHAT", "x"}});
  ASSERT_TRUE(process) << process.error().message;
  const Outcome outcome = process->wait();
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_TRUE(outcome.output.starts_with("x\n"));
  EXPECT_NE(outcome.output.find(network->control_address(Rank(1)) + "/32"), std::string::npos) << outcome.output;
}

TEST_F(LabTest, TearDownLeavesNothing) {
  const Topology topology = two_ranks();
  std::string prefix;
  {
    auto network = LabNetwork::make(topology);
    ASSERT_TRUE(network) << network.error().message;
    prefix = network->prefix();
    EXPECT_EQ(list_name_spaces(prefix + "-").size(), topology.node_count() + 1);
  }
  EXPECT_TRUE(list_name_spaces(prefix + "-").empty());
}

TEST_F(LabTest, LabsCoexist) {
  const Topology topology = two_ranks();
  auto one = LabNetwork::make(topology);
  auto other = LabNetwork::make(topology);
  ASSERT_TRUE(one && other);
  EXPECT_NE(one->prefix(), other->prefix());
  EXPECT_TRUE(one->close());
  EXPECT_EQ(list_name_spaces(other->prefix() + "-").size(), topology.node_count() + 1);
}

/// Builds a lab in another process, tells its prefix, runs `end` and never comes back.
template <class End>
std::string lab_of_a_process_that(const Topology& topology, const End& end) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    auto network = LabNetwork::make(topology);
    const std::string prefix = network ? network->prefix() : "";
    // Something that would go on running in the namespace.
    auto sleeper = run_in_namespace(network->name_space(Rank(0)), {"sleep", "1000"});
    if (!network || !sleeper || write(ends[1], prefix.data(), prefix.size()) < 0) _exit(1);
    end(*network);
    _exit(0);
  }
  close(ends[1]);
  std::array<char, 256> text{};
  std::string prefix;
  for (ssize_t count = 1; count > 0;) {
    count = read(ends[0], text.data(), text.size());
    if (count > 0) prefix.append(text.data(), static_cast<std::size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return prefix;
}

TEST_F(LabTest, AKilledOwnerLeavesNothing) {
  const Topology topology = two_ranks();
  const std::string prefix = lab_of_a_process_that(topology, [](LabNetwork&) { std::raise(SIGKILL); });
  ASSERT_FALSE(prefix.empty());
  for (int wait = 0; wait < 600 && !list_name_spaces(prefix + "-").empty(); ++wait) std::this_thread::sleep_for(50ms);
  EXPECT_TRUE(list_name_spaces(prefix + "-").empty());
}

TEST_F(LabTest, LeftoversOfDeadJobsAreCleaned) {
  const Topology topology = two_ranks();
  auto alive = LabNetwork::make(topology);
  ASSERT_TRUE(alive) << alive.error().message;
  const std::string prefix = lab_of_a_process_that(topology, [](LabNetwork& network) { network.keep(); });
  ASSERT_FALSE(prefix.empty());
  EXPECT_EQ(list_name_spaces(prefix + "-").size(), topology.node_count() + 1);
  const auto cleaned = clean_leftovers();
  ASSERT_TRUE(cleaned) << cleaned.error().message;
  EXPECT_NE(std::ranges::find(*cleaned, prefix), cleaned->end());
  EXPECT_TRUE(list_name_spaces(prefix + "-").empty());
  EXPECT_FALSE(list_name_spaces(alive->prefix() + "-").empty());
}

TEST_F(LabTest, ErrorsOfTheToolsAreShown) {
  const auto done = run_program({"ip", "netns", "del", "espalier-no-such-namespace"});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::unavailable);
  EXPECT_NE(done.error().message.find("espalier-no-such-namespace"), std::string::npos);
}

}  // namespace
}  // namespace espalier::lab
