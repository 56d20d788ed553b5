// How good and how fast plans are: load over optimum, trees per root, heights and planning time, over the networks of
// tests/data/planner_cases.json, the shipped machines and generated ones. One thread; times are medians and include
// verification and the bound.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/height_floor.h"
#include "planners/planner.h"
#include "schedule/loads.h"
#include "schedule/schedule_shape.h"
#include "tests/support/planner_cases.h"
#include "topology/generate/generate.h"
#include "topology/without.h"
#include "topology/yaml/read_topology.h"

namespace espalier::bench {
namespace {

struct Input {
  std::string name;
  std::function<Result<Topology>()> make;
};

struct Flags {
  std::string planner = "packing";
  std::string collective = "all_gather";
  std::string filter;
  std::string set = "cases";
  std::size_t max_ranks = 128;
  int repeats = 3;
};

std::optional<Flags> read_flags(int count, char** words) {
  Flags flags;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string key = words[i];
    const std::string value = words[i + 1];
    if (key == "-a") {
      flags.planner = value;
    } else if (key == "-c") {
      flags.collective = value;
    } else if (key == "--filter") {
      flags.filter = value;
    } else if (key == "--set") {
      flags.set = value;
    } else if (key == "--most-ranks") {
      flags.max_ranks = std::strtoul(value.c_str(), nullptr, 10);
    } else if (key == "-n") {
      flags.repeats = std::max(1, std::atoi(value.c_str()));
    } else {
      return std::nullopt;
    }
  }
  return count % 2 == 1 ? std::optional(flags) : std::nullopt;
}

std::vector<Input> case_inputs(std::size_t max_ranks) {
  std::vector<Input> inputs;
  for (const test::PlannerCase& known : test::read_planner_cases(max_ranks)) {
    if (!known.find("all_gather")) continue;
    inputs.push_back({known.name, [graph = known.graph] { return Result<Topology>(test::make_topology(graph)); }});
  }
  return inputs;
}

std::vector<Input> machine_inputs() {
  std::vector<Input> inputs;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(ESPALIER_SOURCE_DIR) + "/configs")) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    inputs.push_back({file.stem().string(), [file]() -> Result<Topology> {
                        auto document = read_topology_file(file.string());
                        if (!document.topology)
                          return fail(ErrorCode::invalid_input, "unreadable: " + file.string(), "");
                        return *std::move(document.topology);
                      }});
  }
  return inputs;
}

std::vector<Input> generated_inputs() {
  const auto rails = [](std::int64_t boxes, std::int64_t spines) {
    return [=] { return generate_rail_boxes({.boxes = boxes, .spines = spines}); };
  };
  const auto torus = [](std::vector<std::int64_t> dims) {
    return [dims = std::move(dims)] { return generate_torus({dims, {}}); };
  };
  const auto broken = [](std::int64_t boxes) {
    return [=]() -> Result<Topology> {
      auto whole = generate_rail_boxes({.boxes = boxes});
      return whole ? without(*whole, std::vector<std::string>{"box0.nic3"}) : std::move(whole);
    };
  };
  return {
      {"torus 4x4", torus({4, 4})},
      {"torus 8x8", torus({8, 8})},
      {"torus 16x16", torus({16, 16})},
      {"torus 8x8x8", torus({8, 8, 8})},
      {"torus 10x10x10", torus({10, 10, 10})},
      {"fat-tree k=8", [] { return generate_fat_tree({.k = 8}); }},
      {"fat-tree k=16", [] { return generate_fat_tree({.k = 16}); }},
      {"dragonfly 72", [] { return generate_dragonfly({}); }},
      {"leaf-spine 64, 4:1",
       [] { return generate_leaf_spine({.leaves = 8, .ranks_per_leaf = 8, .spines = 4, .oversubscription = 4}); }},
      {"rails x16", rails(16, 0)},
      {"rails x16, spines", rails(16, 8)},
      {"rails x16, a NIC dead", broken(16)},
      {"rails x128", rails(128, 0)},
      {"rails x128, spines", rails(128, 8)},
      {"rails x128, a NIC dead", broken(128)},
      {"random 32 + 8", [] { return generate_random({.ranks = 32, .switches = 8, .extra = 80, .seed = 7}); }},
      {"random 64 + 16", [] { return generate_random({.ranks = 64, .switches = 16, .extra = 160, .seed = 7}); }},
      {"random 96 + 24", [] { return generate_random({.ranks = 96, .switches = 24, .extra = 240, .seed = 7}); }},
      {"random 192 + 48", [] { return generate_random({.ranks = 192, .switches = 48, .extra = 480, .seed = 7}); }},
  };
}

/// Families of growing size, for planning time against the number of ranks.
std::vector<Input> scaling_inputs() {
  std::vector<Input> inputs;
  for (std::int64_t boxes = 2; boxes <= 512; boxes *= 2) {
    inputs.push_back({fmt::format("rails x{}", boxes), [=] { return generate_rail_boxes({.boxes = boxes}); }});
  }
  for (std::int64_t boxes = 2; boxes <= 128; boxes *= 2) {
    inputs.push_back({fmt::format("broken x{}", boxes), [=]() -> Result<Topology> {
                        auto whole = generate_rail_boxes({.boxes = boxes});
                        return whole ? without(*whole, std::vector<std::string>{"box0.nic3"}) : std::move(whole);
                      }});
  }
  for (std::int64_t side = 3; side <= 8; ++side) {
    inputs.push_back({fmt::format("torus {0}x{0}x{0}", side), [=] {
                        return generate_torus({{side, side, side}, {}});
                      }});
  }
  for (std::int64_t ranks = 8; ranks <= 64; ranks *= 2) {
    inputs.push_back(
        {fmt::format("random {}+{}", ranks, ranks / 4),
         [=] { return generate_random({.ranks = ranks, .switches = ranks / 4, .extra = ranks * 5 / 2, .seed = 7}); }});
  }
  return inputs;
}

/// Milliseconds of processor time: what one thread takes, however busy the machine is.
double cpu_ms() { return 1e3 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// The most hops from rank to rank that some rank is away from another.
std::uint32_t eccentricity_of(const Topology& topology) {
  std::uint32_t farthest = 0;
  for (std::size_t r = 0; r < topology.rank_count(); ++r) {
    // Nodes in the order of the ranks passed on the way to them: forwarding costs nothing.
    std::vector<std::uint32_t> hops(topology.node_count(), UINT32_MAX);
    std::deque<NodeId> open = {topology.node_of(Rank(r))};
    hops[open.front().index()] = 0;
    while (!open.empty()) {
      const NodeId node = open.front();
      open.pop_front();
      for (const LinkId link : topology.out_links(node)) {
        const NodeId head = topology.link(link).head;
        const bool is_rank = !topology.rank_of(head).is_none();
        const std::uint32_t reached = hops[node.index()] + (is_rank ? 1 : 0);
        if (reached >= hops[head.index()]) continue;
        hops[head.index()] = reached;
        is_rank ? open.push_back(head) : open.push_front(head);
      }
    }
    for (std::size_t to = 0; to < topology.rank_count(); ++to) {
      farthest = std::max(farthest, hops[topology.node_of(Rank(to)).index()]);
    }
  }
  return farthest;
}

struct Summary {
  int planned = 0;
  int exact = 0;
  int near = 0;
  int few_trees = 0;
  int few_routed_trees = 0;
  int shallow = 0;
  int provably_high = 0;
};

void print_row(const Input& input, const Flags& flags, Summary& summary) {
  const auto topology = input.make();
  if (!topology) {
    fmt::print("{:28} {}\n", input.name, topology.error().message);
    return;
  }
  const auto collective = make_collective(*parse_collective(flags.collective), topology->rank_count(), std::nullopt);
  const planners::Planner planner = *planners::find_planner(flags.planner);
  std::vector<double> times;
  std::optional<Schedule> schedule;
  for (int i = 0; i < flags.repeats; ++i) {
    const double begin = cpu_ms();
    auto made = planners::plan(*topology, *collective, planner);
    times.push_back(cpu_ms() - begin);
    if (!made) {
      fmt::print("{:28} {:5} {:>9} {:10.1f} ms  {}\n", input.name, topology->rank_count(), "-", times.back(),
                 made.error().message);
      return;
    }
    schedule = *std::move(made);
    if (times.back() > 5000) break;
  }
  std::sort(times.begin(), times.end());
  const Rational time = compute_loads(*schedule, *topology).time_per_byte;
  const Rational ratio = schedule->bound ? Rational(time / schedule->bound->time_per_byte) : Rational(1);
  const ScheduleShape shape = measure_shape(*schedule);
  const std::uint32_t eccentricity = eccentricity_of(*topology);
  fmt::print("{:28} {:5} {:9.6f} {:7} {:7} {:7} {:5} {:10.1f} ms\n", input.name, topology->rank_count(),
             ratio.convert_to<double>(), shape.trees_per_root, shape.routed_trees_per_root, shape.height, eccentricity,
             times[times.size() / 2]);
  std::fflush(stdout);
  ++summary.planned;
  if (ratio != 1) fmt::print("{:28} is not exact: {}\n", "", ratio.str());
  summary.exact += ratio == 1 ? 1 : 0;
  summary.near += shape.trees_per_root <= 8 ? 1 : 0;
  summary.few_trees += shape.trees_per_root <= 4 ? 1 : 0;
  summary.few_routed_trees += shape.routed_trees_per_root <= 16 ? 1 : 0;
  if (shape.height <= 2 * eccentricity) {
    ++summary.shallow;
  } else if (has_root(collective->kind) && flags.set != "scaling") {
    constexpr std::size_t max_trees = 16;
    const bool inward = reduces(collective->kind);
    const HeightFloor floor = find_height_floor(*topology, inward ? Direction::reversed : Direction::forward,
                                                collective->root, 2 * eccentricity, max_trees);
    if (floor == HeightFloor::none) return;
    fmt::print("{:28} twice the eccentricity is impossible: {}\n", "", to_string(floor));
    ++summary.provably_high;
  }
}

int run(const Flags& flags) {
  std::vector<Input> inputs;
  if (flags.set == "cases") inputs = case_inputs(flags.max_ranks);
  if (flags.set == "machines") inputs = machine_inputs();
  if (flags.set == "generated") inputs = generated_inputs();
  if (flags.set == "scaling") inputs = scaling_inputs();
  fmt::print("{} by {}\n{:28} {:>5} {:>9} {:>7} {:>7} {:>7} {:>5} {:>13}\n", flags.collective, flags.planner, "network",
             "ranks", "to bound", "trees", "routed", "height", "ecc", "time");
  Summary summary;
  for (const Input& input : inputs) {
    if (input.name.find(flags.filter) != std::string::npos) print_row(input, flags, summary);
  }
  fmt::print(
      "{} planned: {} at the bound, {} with at most 8 trees a root, {} with at most 4, {} with at most 16 routed "
      "trees, {} no "
      "higher than twice "
      "the eccentricity, which is impossible with 16 trees for {}\n",
      summary.planned, summary.exact, summary.near, summary.few_trees, summary.few_routed_trees, summary.shallow,
      summary.provably_high);
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace espalier::bench

int main(int count, char** words) {
  const auto flags = espalier::bench::read_flags(count, words);
  if (!flags) {
    fmt::print(
        stderr,
        "usage: bench_planners [--set cases|machines|generated|scaling] [-c COLLECTIVE] [-a PLANNER] [--filter TEXT] "
        "[--most-ranks N] [-n REPEATS]\n");
    return 2;
  }
  return espalier::bench::run(*flags);
}
