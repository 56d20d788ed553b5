#include <espalier/planner.h>
#include <espalier/schedule.h>
#include <espalier/simulate.h>
#include <espalier/topology.h>
#include <fmt/format.h>

#include <memory>
#include <vector>

// Which of ring, tree and spanning-tree packing is best on a machine at each message size, how near the best comes to
// what no schedule can beat, and which links limit it: which_is_best MACHINE.yaml COLLECTIVE. Links alone, no software.
namespace {

using namespace espalier;

struct Column {
  std::unique_ptr<const Schedule> schedule;  // The simulator refers to it.
  planners::ChunkModel chunks;
  sim::Simulator simulator;
};

/// Plans, verifies and readies one column. Errors: those of the planner.
Result<Column> make_column(const Topology& machine, const Collective& collective, std::string_view name) {
  auto schedule = planners::plan(machine, collective, *planners::find_planner(name));
  if (!schedule) return tl::unexpected(schedule.error());
  auto kept = std::make_unique<const Schedule>(std::move(*schedule));
  auto simulator = sim::Simulator::make(*kept, machine);
  if (!simulator) return tl::unexpected(simulator.error());
  planners::ChunkModel chunks(*kept, machine);
  return Column{std::move(kept), std::move(chunks), std::move(*simulator)};
}

/// The run with the chunk that is best for this size.
Result<RunReport> run(const Column& column, Bytes size) {
  const auto evaluate = [&](const Pacing& pacing, Picoseconds deadline) -> Result<std::optional<RunReport>> {
    sim::Options options;
    options.size = size;
    options.set(pacing);
    const auto report = column.simulator.run_until(options, deadline);
    if (!report) return tl::unexpected(report.error());
    return *report ? std::optional<RunReport>(**report) : std::nullopt;
  };
  return planners::find_best_pacing(column.chunks, size, {}, evaluate);
}

int fail(const Error& error) {
  fmt::print(stderr, "error: {}\n", error.message);
  return 1;
}

void print_limits(const Topology& machine, const Column& best) {
  const Loads loads = compute_loads(*best.schedule, machine);
  fmt::print("# limits: links busy in {} at 1 GiB:", best.schedule->algorithm);
  for (std::size_t i = 0; i < loads.bottleneck_links.size() && i < 4; ++i)
    fmt::print("{} {}", i == 0 ? "" : ",", machine.link_name(loads.bottleneck_links[i]));
  fmt::print(" ({} as busy as the busiest)\n", loads.bottleneck_links.size());
}

int show(const Topology& machine, const Collective& collective) {
  const auto bound = planners::compute_bound(machine, collective);
  if (!bound) return fail(bound.error());
  std::vector<Column> columns;
  fmt::print("# {}  {}  {} ranks\n#       size", machine.name(), to_string(collective.kind), collective.rank_count);
  for (const std::string_view name : {"ring", "tree", "packing"}) {
    auto column = make_column(machine, collective, name);
    if (!column) return fail(column.error());
    columns.push_back(std::move(*column));
    fmt::print("  {:>9}   busbw", name);
  }
  fmt::print("  best     of bound\n#        (B)");
  for ([[maybe_unused]] const Column& column : columns) fmt::print("       (us)  (GB/s)");
  fmt::print("                (%)\n");
  std::size_t best = 0;
  for (std::int64_t size = 1 << 10; size <= 1 << 30; size *= 4) {
    std::vector<RunReport> runs;
    for (const Column& column : columns) {
      auto report = run(column, {size});
      if (!report) return fail(report.error());
      if (runs.empty() || report->elapsed < runs[best].elapsed) best = runs.size();
      runs.push_back(std::move(*report));
    }
    fmt::print("  {:>10}", size);
    for (const RunReport& report : runs)
      fmt::print("  {:9.2f}  {:6.2f}", static_cast<double>(report.elapsed.count) / 1e6, report.busbw(collective) / 1e9);
    fmt::print("  {:<7}  {:8.1f}\n", columns[best].schedule->algorithm,
               100 * runs[best].of_bound(bound->time_per_byte, collective));
  }
  print_limits(machine, columns[best]);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return fmt::print(stderr, "usage: which_is_best MACHINE.yaml COLLECTIVE\n"), 2;
  const TopologyReading machine = read_topology_file(argv[1]);
  for (const Diagnostic& finding : machine.diagnostics) fmt::print(stderr, "{}", render(finding, false));
  if (!machine.topology) return 1;
  const auto kind = parse_collective(argv[2]);
  if (!kind) return fail(kind.error());
  const auto collective = make_collective(*kind, machine.topology->rank_count(), {});
  return collective ? show(*machine.topology, *collective) : fail(collective.error());
}
