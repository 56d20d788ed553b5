#include <espalier/planner.h>
#include <espalier/simulate.h>
#include <espalier/topology.h>
#include <fmt/format.h>

// Plans an all-gather on a machine by spanning-tree packing and holds its simulated time against the bound.
int main(int argc, char** argv) {
  using namespace espalier;
  const TopologyReading machine = read_topology_file(argc > 1 ? argv[1] : "configs/dgx1v-degraded.yaml");
  for (const Diagnostic& finding : machine.diagnostics) fmt::print(stderr, "{}", render(finding, false));
  if (!machine.topology) return 1;
  const auto collective = make_collective(CollectiveKind::all_gather, machine.topology->rank_count(), {});
  const auto schedule = planners::plan(*machine.topology, *collective, *planners::find_planner("packing"));
  if (!schedule) return fmt::print(stderr, "{}\n", schedule.error().message), 1;
  const auto bound = planners::compute_bound(*machine.topology, *collective);
  const auto run = sim::simulate(*schedule, *machine.topology, {.size = {1 << 30}, .chunk = {1 << 16}});
  if (!run) return fmt::print(stderr, "{}\n", run.error().message), 1;
  fmt::print("1 GiB all_gather: {:.1f} GB/s busbw, {:.1f} % of the bound\n", run->busbw(*collective) / 1e9,
             100 * run->of_bound(bound->time_per_byte, *collective));
}
