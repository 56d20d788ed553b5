#include <gtest/gtest.h>

#include <ClpSimplex.hpp>
#include <algorithm>
#include <sstream>
#include <vector>

#include "forecast/candidate_runs.h"
#include "forecast/question.h"
#include "planners/bounds/bound.h"
#include "planners/planner.h"
#include "schedule/json/schedule_json.h"
#include "schedule/traffic/traffic_matrix.h"
#include "tests/support/networks/random_graph.h"
#include "tests/support/pipeline.h"
#include "topology/generate/generate.h"

namespace espalier::planners {
namespace {

/// Rows of a linear program, as they come.
class Rows {
 public:
  void add(const std::vector<std::pair<int, double>>& terms, double least, double most) {
    for (const auto& [column, value] : terms) {
      rows_.push_back(static_cast<int>(least_.size()));
      columns_.push_back(column);
      values_.push_back(value);
    }
    least_.push_back(least);
    most_.push_back(most);
  }

  /// The least value of column 0, all being at least zero.
  [[nodiscard]] double least(int columns) const {
    CoinPackedMatrix matrix(false, rows_.data(), columns_.data(), values_.data(), static_cast<int>(values_.size()));
    matrix.setDimensions(static_cast<int>(least_.size()), columns);
    const std::vector<double> zero(static_cast<std::size_t>(columns), 0);
    const std::vector<double> infinite(static_cast<std::size_t>(columns), COIN_DBL_MAX);
    std::vector<double> objective = zero;
    objective[0] = 1;
    ClpSimplex clp;
    clp.setLogLevel(0);
    clp.loadProblem(matrix, zero.data(), infinite.data(), objective.data(), least_.data(), most_.data());
    clp.primal();
    EXPECT_EQ(clp.status(), 0);
    return clp.objectiveValue();
  }

 private:
  std::vector<int> rows_, columns_;
  std::vector<double> values_, least_, most_;
};

/// The least time per byte of S by the definition alone: how much of what each rank sends passes each link, such that
/// every other rank keeps its block and no link or backplane is busy longer. One program, no paths, cuts or columns.
double brute_optimum(const Topology& topology, const Collective& collective) {
  constexpr double giga = 1e9;
  const double line = static_cast<double>(collective.largest_line());
  const std::size_t links = topology.link_count();
  const std::size_t ranks = topology.rank_count();
  const auto column = [&](std::size_t source, std::size_t link) { return static_cast<int>(1 + source * links + link); };
  Rows rows;
  for (std::size_t source = 0; source < ranks; ++source) {
    std::vector<std::vector<std::pair<int, double>>> at(topology.node_count());
    for (std::size_t link = 0; link < links; ++link) {
      at[topology.link(LinkId(link)).head.index()].emplace_back(column(source, link), 1);
      at[topology.link(LinkId(link)).tail.index()].emplace_back(column(source, link), -1);
    }
    for (std::size_t node = 0; node < at.size(); ++node) {
      const Rank rank = topology.rank_of(NodeId(node));
      if (rank == Rank(source)) continue;
      const double kept = rank.is_none() ? 0 : static_cast<double>(collective.block(Rank(source), rank)) / line;
      rows.add(at[node], kept, kept);
    }
  }
  for (std::size_t link = 0; link < links; ++link) {
    std::vector<std::pair<int, double>> terms;
    for (std::size_t source = 0; source < ranks; ++source) terms.emplace_back(column(source, link), 1);
    terms.emplace_back(0, -static_cast<double>(topology.link(LinkId(link)).bandwidth().bytes_per_second) / giga);
    rows.add(terms, -COIN_DBL_MAX, 0);
  }
  return rows.least(static_cast<int>(1 + ranks * links)) / giga;
}

/// Blocks of which some are zero: even ones, skewed columns, or a few large ones.
Collective random_matrix(std::size_t ranks, Random& random) {
  std::vector<std::int64_t> blocks(ranks * ranks, 0);
  std::vector<std::int64_t> popular(ranks);
  for (std::int64_t& each : popular) each = random.between(1, random.below(4) == 0 ? 40 : 4);
  const std::uint64_t kind = random.below(3);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (random.below(kind == 2 ? 2 : 5) == 0) continue;
    const std::int64_t most = kind == 0 ? 1'000'000 : kind == 1 ? 10'000 * popular[i % ranks] : 5;
    blocks[i] = random.between(1, most);
  }
  blocks[1] += 3;  // Something moves, and not all are equal.
  return *make_collective(CollectiveKind::all_to_all, ranks, std::nullopt, std::move(blocks));
}

/// What was tried, and what each took.
std::string tried(const Choice& choice) {
  std::string text;
  for (const Trial& trial : choice.trials) {
    text += trial.candidate->planner + ": " +
            (trial.run ? std::to_string(trial.run->elapsed.seconds()) : std::string(describe(trial.run.error()))) +
            ", at least " + std::to_string(trial.min_time) + "\n";
  }
  return text;
}

/// The bound is the brute program's optimum; what is chosen is right and near it, in load and in time.
void check_one(Random& random, std::size_t max_ranks) {
  const auto graph = test::random_graph(random, {max_ranks, 4, 20, random.below(2) == 0});
  const Topology topology = test::make_topology(graph, 1'000'000'000);
  const Collective collective = random_matrix(graph.ranks, random);
  const auto bound = compute_bound(topology, collective);
  ASSERT_TRUE(bound) << bound.error().message;
  const double optimum = brute_optimum(topology, collective);
  EXPECT_NEAR(to_double(bound->time_per_byte) / optimum, 1, 1e-6);
  EXPECT_FALSE(bound->is_floor) << bound->what;

  constexpr Bytes size{std::int64_t{256} << 20U};
  const forecast::Question question{.machine = &topology, .collective = collective, .sizes = {size}};
  const auto candidates = forecast::plan(question);
  ASSERT_TRUE(candidates) << candidates.error().message;
  double least = 1e9;
  for (const Candidate& candidate : candidates->made) {
    const VerifyReport report = verify(candidate.schedule, topology);
    ASSERT_TRUE(report.ok()) << candidate.planner << ": " << report.breaches.front().message;
    const Loads loads = compute_loads(candidate.schedule, topology);
    EXPECT_GE(loads.time_per_byte, bound->time_per_byte) << candidate.planner;
    least = std::min(least, to_double(loads.time_per_byte / bound->time_per_byte));
  }
  EXPECT_LE(least, 1.02);
  forecast::CandidateRuns runs(topology, *candidates, question.how);
  const auto choice = runs.choose(size);
  ASSERT_TRUE(choice) << choice.error().message;
  constexpr double latencies = 2e-5;  // of what little moves where ranks keep nearly all
  EXPECT_LE(choice->run.elapsed.seconds(), 1.05 * to_double(bound->time_per_byte) * size.count + latencies)
      << tried(*choice);
  EXPECT_LE(choice->run.of_bound(bound->time_per_byte, collective), 1.0);
}

TEST(Matrices, BoundAndPlansAreThoseOfTheBruteProgram) {
  Random random(5101);
  for (int round = 0; round < 16; ++round) {
    SCOPED_TRACE(round);
    check_one(random, 7);
  }
}

TEST(Matrices, TwoHundredOnUpTo16Ranks) {
  Random random(5102);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    check_one(random, 16);
  }
}

/// What any planner makes of a matrix keeps its promise, unit by unit.
TEST(Matrices, AllPlannersAreHonest) {
  Random random(5103);
  std::map<std::string_view, int> made;
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
    const auto graph = test::random_graph(random, {6, 3, 20, round % 2 == 0});
    const Topology topology = test::make_topology(graph, 1'000'000'000);
    std::vector<std::int64_t> blocks(graph.ranks * graph.ranks);
    for (std::int64_t& block : blocks) block = random.below(3) == 0 ? 0 : random.between(1, 5);
    blocks[1] += 6;
    const Collective collective = *make_collective(CollectiveKind::all_to_all, graph.ranks, std::nullopt, blocks);
    const Rational bound = compute_bound(topology, collective)->time_per_byte;
    for (const Planner& planner : all_planners()) {
      const auto schedule = plan_unbounded(topology, collective, planner);
      if (!schedule) {
        EXPECT_EQ(schedule.error().code, ErrorCode::unsupported) << schedule.error().message;
        continue;
      }
      SCOPED_TRACE(planner.name);
      test::expect_schedule_right(*schedule, topology, bound);
      ++made[planner.name];
    }
  }
  for (const std::string_view planner : {"lp", "flat", "pairwise"}) EXPECT_GT(made[planner], 0);
}

/// On boxes with rails a balanced plan is within two hundredths of the bound in load, whatever the skew.
TEST(Matrices, BalanceReachesTheCutsOfRailBoxes) {
  Random random(5104);
  for (const std::int64_t boxes : {2, 3, 5}) {
    const Topology topology = *generate_rail_boxes({.boxes = boxes});
    for (const double exponent : {0.3, 0.7, 1.2}) {
      for (const std::uint32_t experts : {1U, 8U}) {
        SCOPED_TRACE(testing::Message() << boxes << " boxes, " << exponent);
        TrafficMatrix traffic =
            zipf_traffic(topology.rank_count(), {.exponent = exponent, .seed = random.next(), .experts = experts});
        for (std::int64_t& block : traffic.blocks) block = block / 1000 * random.between(1, 3);
        traffic.blocks[3] += 1;
        const Collective collective = *make_collective(CollectiveKind::all_to_all, topology.rank_count(), std::nullopt,
                                                       std::move(traffic.blocks));
        const auto bound = compute_bound(topology, collective);
        ASSERT_TRUE(bound);
        EXPECT_FALSE(bound->is_floor);
        const auto schedule = plan_unbounded(topology, collective, *find_planner("balance"));
        ASSERT_TRUE(schedule) << schedule.error().message;
        EXPECT_LE(to_double(compute_loads(*schedule, topology).time_per_byte / bound->time_per_byte), 1.02);
      }
    }
  }
}

TEST(Matrices, PlansAreReadAsTheyWereWritten) {
  Random random(5105);
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE(round);
    const auto graph = test::random_graph(random, {6, 3, 20, true});
    const Topology topology = test::make_topology(graph, 1'000'000'000);
    const Collective collective = random_matrix(graph.ranks, random);
    const auto schedule = plan_unbounded(topology, collective, *find_planner("lp"));
    ASSERT_TRUE(schedule) << schedule.error().message;
    std::ostringstream text;
    ASSERT_TRUE(write_schedule(text, *schedule, topology, WriteOptions{}));
    const auto read = read_plan(text.str(), "plan.json", nullptr);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->schedule.collective, collective);
    EXPECT_EQ(read->schedule.slices, schedule->slices);
    EXPECT_TRUE(verify(read->schedule, read->topology).ok());
  }
}

/// Deleting a transfer of a block breaks the promise.
TEST(Matrices, EveryTransferIsNeeded) {
  Random random(5106);
  const auto graph = test::random_graph(random, {6, 2, 9, true});
  const Topology topology = test::make_topology(graph, 1'000'000'000);
  const Collective collective = random_matrix(graph.ranks, random);
  const auto schedule = plan_unbounded(topology, collective, *find_planner("lp"));
  ASSERT_TRUE(schedule);
  for (std::size_t i = 0; i < schedule->transfers.size(); ++i) {
    Schedule less = *schedule;
    less.transfers.erase(less.transfers.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_FALSE(verify(less, topology).ok()) << i;
  }
}

}  // namespace
}  // namespace espalier::planners
