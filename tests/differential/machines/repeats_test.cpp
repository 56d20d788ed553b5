#include "sim/compiled/repeats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/check.h"
#include "planners/planner.h"
#include "planners/planning_problem.h"
#include "schedule/layout.h"
#include "schedule/loads.h"
#include "schedule/symmetry/symmetry.h"
#include "schedule/verify/verify.h"
#include "sim/repeating_simulator.h"
#include "sim/simulate.h"
#include "topology/generate/generate.h"
#include "topology/yaml/read_topology.h"

namespace espalier {
namespace {

Topology read(const std::string& text) {
  TopologyReading reading = read_topology_text(text, "boxes.yaml");
  ESPALIER_CHECK(reading.topology.has_value(), "the machine reads");
  return *std::move(reading.topology);
}

Topology shipped(const std::string& name) {
  TopologyReading reading =
      read_topology_file(std::filesystem::path(ESPALIER_SOURCE_DIR "/configs") / (name + ".yaml"));
  ESPALIER_CHECK(reading.topology.has_value(), "shipped machines read");
  return *std::move(reading.topology);
}

/// Boxes of four GPUs behind a switch, and a switch for each rail; the ring passes every box, and its hops share the
/// links to the box's switch. `slow`: the first link is not like the others.
std::string boxes(int count, bool slow) {
  std::string nodes, links;
  for (int rail = 0; rail < 4; ++rail) nodes += "  - {id: rail" + std::to_string(rail) + ", kind: switch}\n";
  for (int box = 0; box < count; ++box) {
    const std::string name = "box" + std::to_string(box);
    nodes += "  - {id: " + name + ".sw, kind: switch, host: " + name + "}\n";
    for (int gpu = 0; gpu < 4; ++gpu) {
      const std::string id = name + ".gpu" + std::to_string(gpu);
      nodes += "  - {id: " + id + ", kind: gpu, host: " + name + "}\n";
      const std::string latency = slow && box == 0 && gpu == 0 ? "2 us" : "1 us";
      links += "  - {between: [" + id + ", " + name + ".sw], bandwidth: 400 GB/s, latency: " + latency + "}\n";
      links += "  - {between: [" + id + ", rail" + std::to_string(gpu) + "], bandwidth: 50 GB/s, latency: 3 us}\n";
    }
  }
  return "espalier: 1\nname: boxes\nnodes:\n" + nodes + "links:\n" + links;
}

Schedule plan_by(const char* planner, const Topology& topology, CollectiveKind kind) {
  const auto collective = make_collective(kind, topology.rank_count(), std::nullopt);
  auto schedule = planners::plan_unbounded(topology, *collective, *planners::find_planner(planner));
  ESPALIER_CHECK(schedule.has_value(), "there is a plan");
  return *std::move(schedule);
}

Schedule plan_ring_of(const Topology& topology, CollectiveKind kind) { return plan_by("ring", topology, kind); }

/// What a schedule moves, whatever the order and whichever number a slice has: by slice its length, and its transfers.
std::vector<std::pair<std::int64_t, std::vector<std::tuple<RouteId, std::uint32_t, Action>>>> moves_of(
    const Schedule& schedule) {
  std::vector<std::pair<std::int64_t, std::vector<std::tuple<RouteId, std::uint32_t, Action>>>> moves;
  for (const Slice& slice : schedule.slices) moves.push_back({slice.length, {}});
  for (const Transfer& transfer : schedule.transfers) {
    moves[transfer.first_slice.index()].second.emplace_back(transfer.route, transfer.channel_value, transfer.action());
  }
  for (auto& of_slice : moves) std::ranges::sort(of_slice.second);
  std::ranges::sort(moves);
  return moves;
}

bool has_equal_slices(const Schedule& schedule, Bytes size) {
  const auto layout = Layout::make(schedule, size, 4);
  for (std::size_t slice = 1; slice < schedule.slices.size(); ++slice) {
    if (layout->range(SliceId(slice), 1).length() != layout->range(SliceId(0), 1).length()) return false;
  }
  return true;
}

/// Of a size at a small chunk; past it tests take long.
constexpr std::int64_t max_chunks = 1 << 12;

struct Compared {
  int runs = 0;
  int with_unequal_slices = 0;  ///< Of them.
  int in_step = 0;              ///< Of them.
};

/// What the part gives, against the whole.
void expect_same(const Schedule& schedule, const ScheduleSymmetry& symmetry, const Topology& topology,
                 Compared& compared) {
  ASSERT_TRUE(sim::can_repeat(schedule, topology, symmetry));
  const sim::Repeats repeats = sim::make_repeats(schedule, topology, symmetry);
  EXPECT_EQ(repeats.part.transfers.size() * repeats.times, schedule.transfers.size());
  const auto whole = sim::Simulator::make(schedule, topology);
  const auto part = sim::Simulator::make_unverified(repeats.part, topology, {}, repeats.places);
  ASSERT_TRUE(whole && part);
  // Of fewer elements than slices, too, or of some more.
  constexpr std::int64_t sizes[] = {16, 96, 256, 1088, 1 << 16, 1 << 22, 1 << 28};
  for (const std::int64_t size : sizes) {
    if (!sim::are_parts_alike(schedule, symmetry, {size}, 4)) continue;
    for (const std::int64_t chunk : {std::int64_t{4096}, std::int64_t{1} << 18U, size}) {
      for (const std::uint32_t ahead : {0U, 1U, 6U}) {
        if (size / chunk > max_chunks) continue;
        sim::Options options;
        options.size = {size};
        options.chunk = {chunk};
        options.ahead = ahead;
        const auto expected = whole->run(options);
        const auto found = part->run(options);
        ASSERT_TRUE(expected && found);
        EXPECT_EQ(found->elapsed, expected->elapsed) << size << " in " << chunk << ", ahead " << ahead;
        EXPECT_EQ(found->events * repeats.times, expected->events);
        for (std::size_t i = 0; i < topology.link_count(); ++i) {
          EXPECT_EQ(found->links[repeats.places.links[i].index()], expected->links[i]);
        }
        ++compared.runs;
        if (ahead != 0) ++compared.in_step;
        if (!has_equal_slices(schedule, {size})) ++compared.with_unequal_slices;
      }
    }
  }
}

std::optional<ScheduleSymmetry> find_repeats(const Schedule& schedule, const Topology& topology) {
  return find_symmetry(schedule, topology, MoveOrder::same);
}

constexpr CollectiveKind kinds[] = {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                    CollectiveKind::reduce_scatter};

TEST(Repeats, StandForTheWhole) {
  Compared compared;
  for (const int count : {2, 4, 6}) {
    const Topology topology = read(boxes(count, false));
    for (const CollectiveKind kind : kinds) {
      const Schedule schedule = plan_ring_of(topology, kind);
      if (const auto repeats = find_repeats(schedule, topology)) {
        expect_same(schedule, *repeats, topology, compared);
      }
    }
  }
  EXPECT_GT(compared.runs, 20);
  EXPECT_GT(compared.with_unequal_slices, 5);
}

TEST(Repeats, AreNotFoundWhereALinkIsUnlike) {
  const Topology topology = read(boxes(4, true));
  for (const CollectiveKind kind : kinds) {
    EXPECT_FALSE(find_repeats(plan_ring_of(topology, kind), topology));
  }
}

TEST(Repeats, AreFoundOnceImagesAreTogether) {
  Compared compared;
  int reordered = 0;
  for (const int count : {2, 4, 6}) {
    const Topology topology = read(boxes(count, false));
    for (const char* planner : {"flat", "packing", "tree"}) {
      for (const CollectiveKind kind : kinds) {
        SCOPED_TRACE(std::string(planner) + " on " + std::to_string(count) + " boxes");
        const Schedule before = plan_by(planner, topology, kind);
        Schedule schedule = before;
        put_images_together(schedule, topology);
        EXPECT_EQ(moves_of(schedule), moves_of(before));
        EXPECT_TRUE(verify(schedule, topology).ok());
        if (schedule.transfers == before.transfers) continue;
        ++reordered;
        const auto repeats = find_repeats(schedule, topology);
        ASSERT_TRUE(repeats);
        expect_same(schedule, *repeats, topology, compared);
      }
    }
  }
  EXPECT_GT(reordered, 5);
  EXPECT_GT(compared.runs, 20);
  EXPECT_GT(compared.with_unequal_slices, 5);
}

TEST(Repeats, StayApartWhereALinkIsUnlike) {
  const Topology topology = read(boxes(4, true));
  for (const CollectiveKind kind : kinds) {
    const Schedule before = plan_by("flat", topology, kind);
    Schedule schedule = before;
    put_images_together(schedule, topology);
    EXPECT_EQ(schedule.transfers, before.transfers);
  }
}

/// Packings and trees where automorphisms are no shift of the ranks: meshes turned round, cubes, tori, dies of a
/// package.
TEST(Repeats, AreFoundByAnyMapOfTheRanks) {
  Compared compared;
  std::map<std::string, std::uint32_t> max_parts;
  const std::vector<Topology> machines = {*generate_mesh({{4, 4}, {}}), *generate_torus({{3, 4}, {}}),
                                          *generate_hypercube({.dimensions = 3, .wire = {}}), shipped("mi250")};
  for (const Topology& topology : machines) {
    const planners::PlanningProblem problem(topology);
    for (const char* planner : {"flat", "packing", "tree"}) {
      for (const CollectiveKind kind : kinds) {
        SCOPED_TRACE(std::string(planner) + " on " + topology.name());
        const Schedule before = plan_by(planner, topology, kind);
        Schedule schedule = before;
        put_images_together(schedule, topology, problem.automorphic_ranks());
        EXPECT_TRUE(verify(schedule, topology).ok());
        EXPECT_EQ(compute_loads(schedule, topology).time_per_byte, compute_loads(before, topology).time_per_byte);
        const auto symmetry = find_repeats(schedule, topology);
        if (!symmetry) continue;
        std::uint32_t& most = max_parts[topology.name()];
        most = std::max(most, symmetry->times);
        expect_same(schedule, *symmetry, topology, compared);
      }
    }
  }
  EXPECT_EQ(max_parts.size(), machines.size());
  for (const auto& [name, parts] : max_parts) EXPECT_GE(parts, 4U) << name;
  EXPECT_GT(compared.runs, 100);
  EXPECT_GT(compared.in_step, 50);
}

/// An all_to_all has slices that stay, and channels that carry several blocks, each to another rank.
TEST(Repeats, AreFoundWhereBlocksDiffer) {
  Compared compared;
  std::uint32_t max_parts = 0;
  const std::vector<Topology> machines = {*generate_mesh({{3, 3}, {}}),
                                          *generate_torus({{3, 4}, {}}),
                                          *generate_hypercube({.dimensions = 3, .wire = {}}),
                                          shipped("mi250"),
                                          shipped("dgx-a100-x2"),
                                          read(boxes(4, false))};
  for (const Topology& topology : machines) {
    const planners::PlanningProblem problem(topology);
    for (const char* planner : {"flat", "pairwise", "lp"}) {
      SCOPED_TRACE(std::string(planner) + " on " + topology.name());
      const Schedule before = plan_by(planner, topology, CollectiveKind::all_to_all);
      Schedule schedule = before;
      const auto likely = problem.automorphic_ranks();
      put_images_together(schedule, topology, likely);
      EXPECT_TRUE(verify(schedule, topology).ok());
      EXPECT_EQ(moves_of(schedule), moves_of(before));
      const auto symmetry = find_symmetry(schedule, topology, MoveOrder::same, likely);
      if (!symmetry) continue;
      max_parts = std::max(max_parts, symmetry->times);
      expect_same(schedule, *symmetry, topology, compared);
    }
  }
  EXPECT_GE(max_parts, 8U);
  EXPECT_GT(compared.runs, 50);
  EXPECT_GT(compared.in_step, 25);
}

/// A lane that carries two slices is refused: its transfers wait for each other.
TEST(Repeats, AreNotLookedForWhereALaneCarriesTwoSlices) {
  const Topology topology = read(boxes(4, false));
  Schedule schedule = plan_by("packing", topology, CollectiveKind::all_reduce);
  put_images_together(schedule, topology);
  ASSERT_TRUE(find_repeats(schedule, topology));
  for (Transfer& transfer : schedule.transfers) transfer.channel_value = 0;
  EXPECT_FALSE(find_repeats(schedule, topology));
}

TEST(Repeats, AreFoundOnShippedMachines) {
  Compared compared;
  for (const char* name : {"dgx-h100-x4", "dgx-a100-x2", "dgx2", "mi300x"}) {
    SCOPED_TRACE(name);
    const Topology topology = shipped(name);
    const Schedule schedule = plan_ring_of(topology, CollectiveKind::all_reduce);
    if (const auto repeats = find_repeats(schedule, topology)) expect_same(schedule, *repeats, topology, compared);
  }
  EXPECT_GT(compared.runs, 6);
}

/// Trees of rails begin in machines that are spread evenly, so that one rail stands for all.
TEST(Repeats, AreFoundInTreesOfRailsOverManyBoxes) {
  Compared compared;
  for (const int count : {8, 12}) {
    const auto topology = generate_rail_boxes({.boxes = count, .gpus_per_box = 4, .rails = 4, .spines = 0});
    ASSERT_TRUE(topology);
    Schedule schedule = plan_by("tree", *topology, CollectiveKind::all_reduce);
    put_images_together(schedule, *topology);
    const auto symmetry = find_repeats(schedule, *topology);
    ASSERT_TRUE(symmetry) << count;
    EXPECT_EQ(symmetry->times, 4U);
    expect_same(schedule, *symmetry, *topology, compared);
  }
  EXPECT_GT(compared.runs, 20);
}

/// The same boxes as software finds them: other rates and latencies, and a time per chunk.
Topology with_software(const Topology& topology) {
  std::vector<Link> links(topology.links().begin(), topology.links().end());
  for (Link& link : links) {
    link.nominal.bytes_per_second = link.nominal.bytes_per_second / 5 * 4;
    link.latency.count *= 3;
    link.overhead.count += 1'700'000;
  }
  auto made = Topology::make("software", {topology.nodes().begin(), topology.nodes().end()}, std::move(links));
  ESPALIER_CHECK(made.has_value(), "the machine is one");
  return *std::move(made);
}

TEST(RepeatingSimulator, SaysWhatTheWholeDoesOnEveryNetwork) {
  const Topology boxes_alone = read(boxes(4, false));
  const Topology of_software = with_software(boxes_alone);
  Schedule schedule = plan_by("packing", boxes_alone, CollectiveKind::all_reduce);
  put_images_together(schedule, boxes_alone);
  const auto symmetry = find_symmetry(schedule, boxes_alone, MoveOrder::same);
  ASSERT_TRUE(symmetry);
  const auto known = std::make_shared<const ScheduleSymmetry>(*symmetry);
  const auto first = sim::RepeatingSimulator::make_unverified(schedule, boxes_alone, {}, known);
  ASSERT_TRUE(first);
  const auto there = first->on(of_software, {});
  const auto made_there = sim::RepeatingSimulator::make_unverified(schedule, of_software, {}, known);
  const auto whole = sim::Simulator::make(schedule, of_software);
  ASSERT_TRUE(there && made_there && whole);
  const auto expect_equal = [&](const sim::Options& options, bool is_a_part) {
    EXPECT_EQ(there->parts(options), is_a_part ? symmetry->times : 1);
    EXPECT_EQ(sim::simulated_parts(schedule, of_software, {}, known.get(), options), there->parts(options));
    const auto expected = whole->run(options), shared = there->run(options), own = made_there->run(options);
    ASSERT_TRUE(expected && shared && own);
    for (const auto* found : {&*shared, &*own}) {
      EXPECT_EQ(found->elapsed, expected->elapsed);
      EXPECT_EQ(found->events, expected->events);
      EXPECT_EQ(found->links, expected->links);
    }
  };
  for (const std::int64_t size : {1 << 10, 1 << 20, 1 << 26}) {
    sim::Options options;
    options.size = {size};
    options.chunk = {1 << 16};
    options.payload_ppm = 937'500;
    options.launch = {5'000'000};
    expect_equal(options, true);
    options.ahead = 2;
    expect_equal(options, true);
    options.ahead = 0;
    options.conditions.jitter_ppm = 20'000;
    expect_equal(options, false);
  }
}

TEST(RepeatingSimulator, RunsAllWhereEnginesTellPartsApart) {
  const Topology topology = read(boxes(4, false));
  Schedule schedule = plan_by("packing", topology, CollectiveKind::all_reduce);
  put_images_together(schedule, topology);
  const auto symmetry = find_symmetry(schedule, topology, MoveOrder::same);
  ASSERT_TRUE(symmetry);
  const auto known = std::make_shared<const ScheduleSymmetry>(*symmetry);
  sim::CopyEngines engines;
  engines.message = {300'000};
  const auto first = sim::RepeatingSimulator::make_unverified(schedule, topology, {}, known);
  ASSERT_TRUE(first);
  const auto there = first->on(topology, engines);
  const auto whole = sim::Simulator::make(schedule, topology, engines);
  ASSERT_TRUE(there && whole);
  sim::Options options;
  options.size = {1 << 20};
  options.chunk = {1 << 16};
  EXPECT_EQ(there->parts(options), 1U);
  EXPECT_EQ(there->run(options)->elapsed, whole->run(options)->elapsed);
}

}  // namespace
}  // namespace espalier
