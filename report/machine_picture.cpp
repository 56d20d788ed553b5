#include "report/machine_picture.h"

#include "topology/draw/topology_svg.h"

namespace espalier::report {
namespace {

/// The loads of the links over the whole run.
std::vector<double> loads_of(const CloseRun& run) {
  std::vector<double> loads;
  loads.reserve(run.report.links.size());
  const double elapsed = run.report.elapsed.seconds();
  for (const sim::LinkUse& use : run.report.links) loads.push_back(elapsed > 0 ? use.busy.seconds() / elapsed : 0);
  return loads;
}

}  // namespace

std::vector<NodeId> smaller_side(const PlanReport& report) {
  std::vector<NodeId> side = report.bound.cut;
  if (2 * side.size() <= report.topology->node_count()) return side;
  // It says the same with fewer outlines.
  std::vector<bool> is_in(report.topology->node_count(), false);
  for (const NodeId node : side) is_in[node.index()] = true;
  side.clear();
  for (std::size_t i = 0; i < is_in.size(); ++i) {
    if (!is_in[i]) side.emplace_back(i);
  }
  return side;
}

std::string machine_picture(const PlanReport& report) {
  const std::vector<double> loads = report.run ? loads_of(*report.run) : std::vector<double>{};
  const std::vector<NodeId> side = smaller_side(report);
  const bool has_suspects = report.measured && report.measured->suspected != nullptr;
  return topology_svg(has_suspects ? *report.measured->suspected : *report.topology, {loads, side});
}

}  // namespace espalier::report
