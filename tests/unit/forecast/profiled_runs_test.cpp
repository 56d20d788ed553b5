#include "forecast/profiled_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

#include "forecast/candidate_runs.h"
#include "planners/nccl/nccl.h"
#include "planners/planner.h"
#include "profile/read_profile.h"
#include "tests/support/forecast/run_nccl.h"
#include "topology/generate/generate.h"
#include "topology/names/group.h"
#include "topology/slow.h"
#include "topology/without.h"
#include "topology/yaml/read_topology.h"

namespace espalier::forecast {
namespace {

const std::string shipped = ESPALIER_SOURCE_DIR "/configs";

Topology machine(const std::string& name) {
  TopologyReading reading = read_topology_file(shipped + "/" + name + ".yaml");
  EXPECT_TRUE(reading.topology) << name;
  return *std::move(reading.topology);
}

planners::Candidates candidates_of(const Topology& topology, const Collective& collective,
                                   std::span<const planners::Planner> planners) {
  auto candidates = planners::make_candidates(topology, collective, planners);
  EXPECT_TRUE(candidates) << candidates.error().message;
  return *std::move(candidates);
}

Collective on(const Topology& topology, CollectiveKind kind) {
  return {kind, static_cast<std::uint32_t>(topology.rank_count()), has_root(kind) ? Rank(0) : Rank()};
}

/// Simple alone: 10 us once, 2 us a hop, half of the nominal rate, whole shards.
profile::Profile plain_profile() {
  profile::Profile profile;
  profile.name = "plain";
  profile.launches = {{"usual", profile::Launch{{1'000'000}, {}, {}, {}, {}}}};
  profile.reached_ppm = {500'000, 500'000, 500'000};
  profile::ProtocolCosts way;
  way.base = {10'000'000};
  way.chunk = {std::int64_t{1} << 40};
  way.hop = {Picoseconds{2'000'000}, Picoseconds{2'000'000}, Picoseconds{2'000'000}};
  for (const profile::Shape shape : profile::all_shapes) profile.ways[{shape, sim::Protocol::simple}] = way;
  return profile;
}

TEST(NcclPlanners, OneRankHasNothingToSend) {
  const Topology whole = machine("dgx-h100");
  const std::vector<NodeId> one = {whole.node_of(Rank(0))};
  const auto alone = with_ranks(whole, one);
  ASSERT_TRUE(alone);
  const auto candidates =
      planners::make_candidates(*alone, on(*alone, CollectiveKind::all_to_all), planners::nccl_planners());
  ASSERT_TRUE(candidates) << candidates.error().message;
  const planners::Candidate* sends = candidates->find("nccl/p2p");
  ASSERT_NE(sends, nullptr);
  EXPECT_TRUE(sends->schedule.transfers.empty());
}

TEST(CandidateRuns, WhereOnlyNcclIsThereWhatItPicksIsChosen) {
  const Topology topology = machine("dgx-h100-nvls");
  const auto candidates = candidates_of(topology, on(topology, CollectiveKind::all_reduce), planners::nccl_planners());
  RunOptions how;
  how.profile = std::make_shared<const Software>(Software{"plain", plain_profile(), {}, {}});
  CandidateRuns runs(topology, candidates, how);
  const Bytes size{8 << 20};
  const auto choice = runs.choose(size);
  ASSERT_TRUE(choice) << choice.error().message;
  const auto picked = runs.run("nccl", size);
  ASSERT_TRUE(picked) << picked.error().message;
  EXPECT_EQ(choice->candidate, picked->candidate);
  EXPECT_EQ(choice->run.elapsed.count, picked->report.elapsed.count);
  EXPECT_EQ(choice->trials.size(), candidates.made.size());
}

// 1,024 ranks store a part of each shard for both rings, 1,025 deal whole shards to them: a size alike for both takes
// as long on each hop.
TEST(ProfiledRuns, RingsThatShardsAreDealtToTakeAsLong) {
  const auto seconds_per_hop = [](std::int64_t ranks) {
    const Topology topology = *generate_ring({.ranks = ranks});
    const auto nccl = planners::nccl_planners();
    const auto ring = std::ranges::find(nccl, "nccl/ring", &planners::Planner::name);
    const auto candidates = candidates_of(topology, on(topology, CollectiveKind::all_gather), {ring, 1});
    ProfiledRuns runs(topology, candidates, {plain_profile(), {{1'000'000}}, {}, 4, {}, sim::ModelKind::link, {}});
    const auto run = runs.run("nccl/ring", {ranks << 20});
    EXPECT_TRUE(run) << run.error().message;
    return run ? run->report.elapsed.seconds() / static_cast<double>(ranks - 1) : 0;
  };
  const double in_parts = seconds_per_hop(1024);
  EXPECT_NEAR(seconds_per_hop(1025), in_parts, 0.01 * in_parts);
}

TEST(ProfiledRuns, RingIsItsClosedForm) {
  const Topology topology = machine("dgx-h100-nvls");  // 450 GB/s into one switch
  const auto candidates = candidates_of(topology, on(topology, CollectiveKind::all_reduce), planners::nccl_planners());
  ProfiledRuns::Options options{plain_profile(), {{1'000'000}}, {}, 4, {}, sim::ModelKind::link, {}};
  ProfiledRuns runs(topology, candidates, options);
  for (const std::int64_t size : {std::int64_t{8} << 10, std::int64_t{8} << 20}) {
    const auto run = runs.run("nccl/ring", {size});
    ASSERT_TRUE(run) << run.error().message;
    // The launch and the base, and 2 (N-1) steps of a hop and a shard each.
    const double steps = 14, shard = static_cast<double>(size) / 8 / 225e9;
    EXPECT_NEAR(run->report.elapsed.seconds(), 11e-6 + steps * (2e-6 + shard), 1e-10) << size;
  }
}

/// A ring that leaves out every other of its transfers would take half the time; nobody runs it.
TEST(ProfiledRuns, NoSchedulePassesThatBreaksARule) {
  const Topology topology = machine("dgx-h100");
  const Collective collective = on(topology, CollectiveKind::all_reduce);
  planners::Candidates candidates = candidates_of(topology, collective, planners::all_planners().first(1));
  const Schedule whole = candidates.made.front().schedule;
  Schedule half = whole;
  std::erase_if(half.transfers, [kept = true](const Transfer&) mutable { return kept = !kept; });
  candidates.made.clear();
  candidates.made.push_back({"half", half, planners::ChunkModel(half, topology)});
  candidates.made.push_back({"whole", whole, planners::ChunkModel(whole, topology)});
  ProfiledRuns profiled(topology, candidates, {plain_profile(), {{1'000'000}}, {}, 4, {}, sim::ModelKind::link, {}});
  CandidateRuns on_links(topology, candidates, {});
  const auto refused = profiled.run("half", {1 << 20});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("breaks rule"), std::string::npos) << refused.error().message;
  const auto refused_on_links = on_links.run("half", {1 << 20});
  ASSERT_FALSE(refused_on_links);
  EXPECT_NE(refused_on_links.error().message.find("breaks rule"), std::string::npos);
  EXPECT_TRUE(profiled.run("whole", {1 << 20}));
  EXPECT_TRUE(on_links.run("whole", {1 << 20}));
}

TEST(ProfiledRuns, ALaunchThatOverlapsHidesWhatGpusDoMeanwhile) {
  const Topology topology = machine("dgx-h100-nvls");
  const auto candidates = candidates_of(topology, on(topology, CollectiveKind::all_reduce), planners::nccl_planners());
  ProfiledRuns::Options options{plain_profile(), {}, {}, 4, {}, sim::ModelKind::link, {}};
  ProfiledRuns alone(topology, candidates, options);
  options.launch = {{100'000'000}, {}, {}, {}, {60'000'000}};
  ProfiledRuns launched(topology, candidates, options);
  for (const std::int64_t size : {std::int64_t{8} << 10, std::int64_t{64} << 20}) {
    const auto of_gpus = alone.run("nccl/ring", {size}), whole = launched.run("nccl/ring", {size});
    ASSERT_TRUE(of_gpus && whole);
    const double shown = std::max(0.0, of_gpus->report.elapsed.seconds() - 60e-6);
    EXPECT_NEAR(whole->report.elapsed.seconds(), 100e-6 + shown, 1e-11) << size;
  }
}

/// Of two GPUs each keeps as much as it sends, of eight a seventh.
TEST(ProfiledRuns, SmallGroupsReachLessOfTheirLinks) {
  const Topology topology = machine("dgx-h100-nvls");
  profile::Profile profile = plain_profile();
  for (auto& [key, way] : profile.ways) way.own_ppm = 500'000;
  for (const std::size_t ranks : {2U, 4U, 8U}) {
    std::vector<std::string> others;
    if (ranks < 8) others = {"gpu[" + std::to_string(ranks) + "-7]"};
    const auto part = without(topology, others);
    ASSERT_TRUE(part);
    const auto candidates = candidates_of(*part, on(*part, CollectiveKind::all_gather), planners::nccl_planners());
    ProfiledRuns runs(*part, candidates, {profile, {}, {}, 4, {}, sim::ModelKind::link, {}});
    constexpr std::int64_t size = std::int64_t{1} << 30;
    const auto run = runs.run("nccl/ring", {size});
    ASSERT_TRUE(run) << run.error().message;
    const auto n = static_cast<double>(ranks);
    const double steps = n - 1, shard = size / n / 225e9;
    const double expected = 10e-6 + steps * 2e-6 + (steps + 0.5) * shard;
    EXPECT_NEAR(run->report.elapsed.seconds(), expected, 2e-6 * expected) << ranks;  // rates are in whole ppm
  }
}

TEST(ProfiledRuns, NcclTakesWhatItsTunerCountsLeast) {
  const Topology topology = machine("dgx-h100-nvls");
  const profile::ProfileReading hopper = profile::read_profile_file(shipped + "/profiles/nccl-hopper.yaml");
  ASSERT_TRUE(hopper.profile);
  const auto candidates = candidates_of(topology, on(topology, CollectiveKind::all_reduce), planners::nccl_planners());
  ProfiledRuns::Options options{*hopper.profile, {}, {}, 4, {}, sim::ModelKind::link, {}};
  ProfiledRuns runs(topology, candidates, options);
  const auto small = runs.run("nccl", {1024});
  const auto large = runs.run("nccl", {std::int64_t{1} << 30});
  ASSERT_TRUE(small && large);
  EXPECT_EQ(small->protocol, sim::Protocol::ll);
  EXPECT_EQ(large->candidate->planner, "nccl/nvls");
  EXPECT_NE(large->why.find("its tuner counts"), std::string::npos);
  options.protocol = sim::Protocol::ll128;
  ProfiledRuns only(topology, candidates, options);
  const auto forced = only.run("nccl", {1024});
  ASSERT_TRUE(forced);
  EXPECT_EQ(forced->protocol, sim::Protocol::ll128);
  EXPECT_FALSE(only.run("auto", {1024}));  // no planner's candidates were made
}

/// Ring or NVLS where two published tables tell: 480 GB/s by NVLS and 368 by rings on eight H100.
TEST(ProfiledRuns, NvlsBeatsRingsOnHopper) {
  const Topology topology = machine("dgx-h100-nvls");
  const profile::ProfileReading hopper = profile::read_profile_file(shipped + "/profiles/nccl-hopper.yaml");
  ASSERT_TRUE(hopper.profile);
  const auto candidates = candidates_of(topology, on(topology, CollectiveKind::all_reduce), planners::nccl_planners());
  ProfiledRuns runs(topology, candidates, {*hopper.profile, {}, {}, 4, {}, sim::ModelKind::link, {}});
  const auto ring = runs.run("nccl/ring", {std::int64_t{1} << 33});
  const auto nvls = runs.run("nccl/nvls", {std::int64_t{1} << 33});
  ASSERT_TRUE(ring && nvls);
  const Collective collective = on(topology, CollectiveKind::all_reduce);
  EXPECT_NEAR(ring->report.busbw(collective) / 1e9, 368, 15);
  EXPECT_NEAR(nvls->report.busbw(collective) / 1e9, 480, 20);
}

TEST(ProfiledRuns, AutoNeverPassesTheNominalBound) {
  const profile::ProfileReading hopper = profile::read_profile_file(shipped + "/profiles/nccl-hopper.yaml");
  ASSERT_TRUE(hopper.profile);
  for (const char* name : {"dgx-h100-nvls", "dgx-h100", "dgx1v", "mi250"}) {
    const Topology topology = machine(name);
    for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather}) {
      std::vector<planners::Planner> some;
      for (const planners::Planner& planner : planners::all_planners()) {
        if (planner.name == "ring" || planner.name == "tree" || planner.name == "innetwork") some.push_back(planner);
      }
      const auto candidates = candidates_of(topology, on(topology, kind), some);
      ProfiledRuns runs(topology, candidates, {*hopper.profile, {}, {}, 4, {}, sim::ModelKind::link, {}});
      for (const std::int64_t size : {std::int64_t{1} << 16, std::int64_t{1} << 30}) {
        const auto run = runs.run("auto", {size});
        ASSERT_TRUE(run) << name;
        EXPECT_LE(run->report.of_bound(candidates.bound.time_per_byte, on(topology, kind)), 1) << name << " " << size;
      }
    }
  }
}

/// Eight processes of one machine whose messages take 5 us at each end, and nothing else does.
/// What runs at other sizes made ready changes nothing, and no candidate by itself is faster than what was chosen but
/// by what is not looked for (planners::good_enough; a pipeline that fills faster than its model says).
TEST(ProfiledRuns, AutoIsTheBestOfAllWhateverRanBefore) {
  const profile::ProfileReading ampere = profile::read_profile_file(shipped + "/profiles/nccl-ampere.yaml");
  ASSERT_TRUE(ampere.profile);
  const Topology topology = machine("dgx-a100-x2");
  const Collective collective = on(topology, CollectiveKind::all_reduce);
  const auto candidates = candidates_of(topology, collective, planners::all_planners());
  const ProfiledRuns::Options options{*ampere.profile, {}, {}, 4, {}, sim::ModelKind::link, {}};
  ProfiledRuns all_sizes(topology, candidates, options);
  for (const std::int64_t size : {std::int64_t{1} << 26, std::int64_t{1} << 12, std::int64_t{1} << 20}) {
    const auto chosen = all_sizes.run("auto", {size});
    ASSERT_TRUE(chosen) << chosen.error().message;
    ProfiledRuns one_size(topology, candidates, options);
    const auto alone = one_size.run("auto", {size});
    ASSERT_TRUE(alone) << alone.error().message;
    EXPECT_EQ(alone->report.elapsed, chosen->report.elapsed) << size;
    EXPECT_EQ(alone->candidate, chosen->candidate) << size;
    for (const planners::Candidate& candidate : candidates.made) {
      const auto by_itself = one_size.run(candidate.planner, {size});
      ASSERT_TRUE(by_itself) << by_itself.error().message;
      EXPECT_LE(chosen->report.elapsed.seconds(), 1.01 * by_itself->report.elapsed.seconds())
          << candidate.planner << " " << size;
    }
  }
}

TEST(ProfiledRuns, FewMessagesWinWhereRanksShareProcessors) {
  TopologyReading reading = read_topology_file(shipped + "/one-host.yaml", {{"ranks", "8"}});
  ASSERT_TRUE(reading.topology);
  std::vector<planners::Planner> some;
  for (const planners::Planner& planner : planners::all_planners()) {
    if (planner.name == "flat" || planner.name == "binomial") some.push_back(planner);
  }
  const auto candidates = candidates_of(*reading.topology, on(*reading.topology, CollectiveKind::all_reduce), some);
  profile::Profile profile = plain_profile();
  for (auto& [key, way] : profile.ways) {
    way.base = {};
    way.hop = {};
    way.message = {5'000'000};
  }
  const auto best = [&](std::uint32_t processors) {
    profile.processors = processors;
    ProfiledRuns runs(*reading.topology, candidates, {profile, {}, {}, 4, {}, sim::ModelKind::link, {}});
    const auto run = runs.run("auto", {1024});
    EXPECT_TRUE(run);
    return std::pair(run->candidate->planner, run->report.elapsed.seconds());
  };
  // With one processor for all, every message takes its time twice: 14 of binomial's two trees, 8 x 7 of flat's.
  const auto [planner, seconds] = best(1);
  EXPECT_EQ(planner, "binomial");
  EXPECT_NEAR(seconds, 14 * 10e-6, 1e-6);
  // With a processor each, binomial's 6 steps take 10 us, and the root receives and sends 3 messages each.
  EXPECT_NEAR(best(0).second, 6 * 10e-6, 10e-6);
}

TEST(NcclPlanners, PatIsForMachinesOfOneRank) {
  TopologyReading hosts = read_topology_text(R"(
espalier: 1
nodes:
  - {id: g0, kind: gpu, host: h0}
  - {id: g1, kind: gpu, host: h1}
  - {id: g2, kind: gpu, host: h2}
  - {id: s, kind: switch}
links: [{all: ["g[0-2]", s], bandwidth: 50 GB/s}]
)",
                                             "hosts");
  ASSERT_TRUE(hosts.topology);
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    const auto candidates = candidates_of(*hosts.topology, on(*hosts.topology, kind), planners::nccl_planners());
    EXPECT_NE(candidates.find("nccl/pat"), nullptr);
  }
  const Topology boxes = machine("dgx-a100-x2");
  const auto candidates = candidates_of(boxes, on(boxes, CollectiveKind::all_gather), planners::nccl_planners());
  EXPECT_EQ(candidates.find("nccl/pat"), nullptr);
}

TEST(NcclPlanners, MakeWhatNcclHas) {
  struct Case {
    const char* machine;
    CollectiveKind kind;
    std::set<std::string> made;
  };
  const std::vector<Case> cases = {
      {"dgx-h100-nvls", CollectiveKind::all_reduce, {"nccl/ring", "nccl/tree", "nccl/nvls"}},
      {"dgx-h100-nvls", CollectiveKind::all_gather, {"nccl/ring", "nccl/nvls"}},
      {"dgx-h100-nvls", CollectiveKind::broadcast, {"nccl/ring"}},
      {"dgx-h100-nvls", CollectiveKind::all_to_all, {"nccl/p2p"}},
      {"dgx-h100", CollectiveKind::all_reduce, {"nccl/ring", "nccl/tree", "nccl/nvls"}},
      {"dgx-h100-without-nvls", CollectiveKind::all_reduce, {"nccl/ring", "nccl/tree"}},
      {"gb200-nvl72", CollectiveKind::all_reduce, {"nccl/ring", "nccl/tree", "nccl/nvls"}},
      {"dgx1v", CollectiveKind::all_reduce, {"nccl/ring", "nccl/tree"}},
      {"dgx-a100-x2", CollectiveKind::all_reduce, {"nccl/ring", "nccl/tree"}},
      {"dgx-a100-x2", CollectiveKind::reduce, {"nccl/ring"}},
      {"mi300x", CollectiveKind::all_reduce, {"nccl/ring", "nccl/tree"}},
  };
  for (const Case& each : cases) {
    const Topology topology = machine(each.machine);
    std::set<std::string> made;
    for (const planners::Candidate& candidate :
         candidates_of(topology, on(topology, each.kind), planners::nccl_planners()).made) {
      made.insert(candidate.planner);
    }
    EXPECT_EQ(made, each.made) << each.machine << " " << to_string(each.kind);
  }
}

TEST(ProfiledRuns, NoBoxIsFasterThanItsNvlink) {
  // Box 0 of four DGX H100, whose NICs could carry a tenth beside the NVLink: 450 GB/s, of which half is reached.
  const Topology cluster = machine("dgx-h100-x4");
  std::vector<Node> nodes(cluster.nodes().begin(), cluster.nodes().end());
  for (Node& node : nodes) node.is_rank = node.is_rank && node.host == "box0";
  const Topology topology = *Topology::make("box0", nodes, {cluster.links().begin(), cluster.links().end()});
  std::vector<planners::Planner> planners(planners::nccl_planners().begin(), planners::nccl_planners().end());
  for (const char* name : {"ring", "packing"}) planners.push_back(*planners::find_planner(name));
  const Collective collective = on(topology, CollectiveKind::all_reduce);
  const auto busbw = [&](planners::Paths paths, const char* algorithm) {
    const auto candidates = planners::make_candidates(topology, collective, planners, {.paths = paths});
    EXPECT_TRUE(candidates);
    ProfiledRuns::Options options{plain_profile(), {}, {}, 4, {}, sim::ModelKind::link, {}};
    const auto run = ProfiledRuns(topology, *candidates, options).run(algorithm, {std::int64_t{4} << 30});
    EXPECT_TRUE(run) << run.error().message;
    return run->report.busbw(collective);
  };
  EXPECT_LE(busbw(planners::Paths::software, "nccl/ring"), 225e9);
  EXPECT_LE(busbw(planners::Paths::software, "auto"), 225e9);
  EXPECT_GT(busbw(planners::Paths::any, "nccl/ring"), 225e9);
}

TEST(ProfiledRuns, SendsTakePxnWhereThereIsAny) {
  const Topology topology = machine("dgx-h100-x4");
  const auto candidates = candidates_of(topology, on(topology, CollectiveKind::all_to_all), planners::nccl_planners());
  profile::ProfileReading hopper = profile::read_profile_file(shipped + "/profiles/nccl-hopper.yaml");
  ASSERT_TRUE(hopper.profile);
  ProfiledRuns::Options options{*hopper.profile, {}, {}, 4, {}, sim::ModelKind::link, {}};
  const auto taken = ProfiledRuns(topology, candidates, options).run("nccl", {1 << 20});
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_EQ(taken->candidate->planner, "nccl/pxn");
  ASSERT_TRUE(options.profile.restrict_to(2011));  // PXN came with 2.12
  const auto before = ProfiledRuns(topology, candidates, options).run("nccl", {1 << 20});
  ASSERT_TRUE(before) << before.error().message;
  EXPECT_EQ(before->candidate->planner, "nccl/p2p");
}

TEST(ProfiledRuns, TheTunerCountsTheSlowestRank) {
  // NCCL takes rings wherever in the box a GPU has half of its NVLinks: NVLS then runs at 20 of 40 GB/s a channel.
  const Topology whole = machine("dgx-h100-nvls");
  profile::ProfileReading hopper = profile::read_profile_file(shipped + "/profiles/nccl-hopper.yaml");
  ASSERT_TRUE(hopper.profile);
  const ProfiledRuns::Options options{*hopper.profile, {}, {}, 4, {}, sim::ModelKind::link, {}};
  const Bytes size{64 << 20};
  const auto run_with = [&](const char* slow) {
    const std::vector<std::string> texts = {slow};
    const auto topology = slow_down(whole, texts);
    EXPECT_TRUE(topology) << slow;
    auto ran = test::run_nccl(*topology, on(*topology, CollectiveKind::all_gather), size, options);
    EXPECT_TRUE(ran) << slow;
    return *std::move(ran);
  };
  EXPECT_EQ(run_with("gpu0-nvswitch=0.5").by, "nccl/ring/simple");
  EXPECT_EQ(run_with("gpu3-nvswitch=0.5").by, "nccl/ring/simple");
  EXPECT_EQ(run_with("gpu0-nvswitch=0.5").run.elapsed, run_with("gpu3-nvswitch=0.5").run.elapsed);
}

TEST(ProfiledRuns, ADeadNicTakesItsRailFromTrees) {
  // Of eight rails, each with two trees of two channels (up and down), seven are left; which box and which rail it is
  // makes no difference.
  const Topology whole = machine("dgx-h100-x4");
  profile::ProfileReading hopper = profile::read_profile_file(shipped + "/profiles/nccl-hopper.yaml");
  ASSERT_TRUE(hopper.profile);
  const ProfiledRuns::Options options{*hopper.profile, {}, {}, 4, {}, sim::ModelKind::link, {}};
  std::set<std::int64_t> times;
  std::optional<Picoseconds> before;
  for (const char* nic : {"", "box0.nic0", "box2.nic0", "box1.nic3"}) {
    const std::vector<std::string> names(*nic == 0 ? 0 : 1, nic);
    const auto topology = without(whole, names);
    ASSERT_TRUE(topology);
    const auto candidates = planners::make_candidates(*topology, on(*topology, CollectiveKind::all_reduce),
                                                      planners::nccl_planners(), {.paths = planners::Paths::software});
    ASSERT_TRUE(candidates);
    const planners::Candidate* const tree = candidates->find("nccl/tree");
    ASSERT_NE(tree, nullptr) << nic;
    EXPECT_EQ(tree->schedule.channel_count(), *nic == 0 ? 32U : 28U) << nic;
    const auto ran = ProfiledRuns(*topology, *candidates, options).run("nccl/tree", {16 << 20});
    ASSERT_TRUE(ran) << nic;
    if (*nic == 0) {
      before = ran->report.elapsed;
    } else {
      times.insert(ran->report.elapsed.count);
      EXPECT_GT(ran->report.elapsed, *before) << nic;
    }
  }
  EXPECT_EQ(times.size(), 1U);
}

}  // namespace
}  // namespace espalier::forecast
