#include "planners/bounds/bound.h"
#include "planners/chooser.h"
#include "planners/planner.h"
#include "python/bind/bindings.h"
#include "sim/simulate.h"

namespace espalier::python {
namespace {

/// (time_per_byte, cut as node ids, what, busbw in bytes/s or None, whether it is a floor).
py::tuple bound_of(const Topology& topology, const std::string& name, std::optional<std::int64_t> root,
                   std::vector<std::int64_t> shares) {
  const Collective collective = collective_on(topology, name, root, std::move(shares));
  Bound bound;
  {
    const py::gil_scoped_release release;
    bound = value_of(planners::compute_bound(topology, collective));
  }
  py::list cut;
  for (const NodeId node : bound.cut) cut.append(topology.node(node).id);
  const bool moves = bound.time_per_byte != 0;
  const py::object busbw = moves ? py::object(py::float_(to_double(collective.busbw_factor() / bound.time_per_byte)))
                                 : py::object(py::none());
  return py::make_tuple(fraction_of(bound.time_per_byte), cut, bound.what, busbw, bound.is_floor);
}

/// Lets Ctrl-C end a long call. Requires: the GIL is released.
void check_signals() {
  const py::gil_scoped_acquire acquire;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

Result<std::optional<RunReport>> evaluate(const Topology& topology, const Schedule& schedule, Bytes size,
                                          const Cut& cut, Picoseconds deadline) {
  check_signals();
  sim::Options options;
  options.size = size;
  options.set(cut);
  return sim::simulate_unverified_until(deadline, schedule, topology, options);
}

/// The schedule of a planner, or the one that is fastest at a size.
Plan plan(std::shared_ptr<Topology> topology, const std::string& name, const std::string& algorithm, std::int64_t size,
          std::optional<std::int64_t> root, std::vector<std::int64_t> shares) {
  const Collective collective = collective_on(*topology, name, root, std::move(shares));
  const py::gil_scoped_release release;
  planners::PlanContext context;
  context.on_round = [](const planners::ProgramRound&) { check_signals(); };
  if (algorithm != "auto") {
    const planners::Planner planner = value_of(planners::find_planner(algorithm));
    return {topology, value_of(planners::plan(*topology, collective, planner, context))};
  }
  planners::CandidateOptions options;
  options.context = context;
  options.for_choice = true;
  options.least_size = {size};
  planners::Candidates candidates = value_of(planners::make_candidates(
      *topology, collective, planners::all_planners(), options, [](std::string_view) { check_signals(); }));
  if (candidates.made.empty()) throw ErrorRaised(candidates.refused.front().error);
  const auto choice = planners::choose(
      candidates, {size}, [&](const Schedule& schedule, Bytes bytes, const Cut& cut, Picoseconds deadline) {
        return evaluate(*topology, schedule, bytes, cut, deadline);
      });
  if (!choice) throw ErrorRaised(choice.error());
  return {topology, choice->candidate->schedule};
}

}  // namespace

void bind_planners(py::module_& module) {
  module.def("_bound", &bound_of, py::arg("topology"), py::arg("collective"), py::arg("root"), py::arg("shares"));
  module.def("_plan", &plan, py::arg("topology"), py::arg("collective"), py::arg("algorithm"), py::arg("size"),
             py::arg("root"), py::arg("shares"));
  module.def(
      "planners",
      [] {
        py::list names;
        for (const planners::Planner& planner : planners::all_planners()) names.append(std::string(planner.name));
        return names;
      },
      "The names that plan's algorithm takes, beside auto.");
}

}  // namespace espalier::python
