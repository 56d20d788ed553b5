#include "forecast/candidate_runs.h"
#include "planners/bounds/bound.h"
#include "planners/groups/plan_groups.h"
#include "planners/planner.h"
#include "python/bind/bind_compare.h"
#include "python/bind/bindings.h"
#include "schedule/traffic/traffic_matrix.h"
#include "topology/names/group.h"

namespace espalier::python {
namespace {

/// (blocks row by row, the bytes that make S or None) of a file or a law.
py::tuple load_matrix(const std::string& described, std::size_t ranks) {
  const TrafficMatrix matrix = value_of(load_traffic(described, ranks));
  return py::make_tuple(matrix.blocks, matrix.are_bytes ? py::object(py::int_(matrix.largest_line())) : py::none());
}

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

/// What `plan` is asked for besides the collective.
struct PlanRequest {
  std::string algorithm;
  std::int64_t size = 0;
  planners::PackingLimits limits;
  std::string profile;  ///< A file, and how calls are launched; empty: links alone.
  std::string launch;
  std::string gpu;  ///< Of the machine; may be empty.
};

/// The schedule of a planner, or the one that is fastest at a size.
Plan plan(std::shared_ptr<Topology> topology, const std::string& name, const PlanRequest& request,
          std::optional<std::int64_t> root, std::vector<std::int64_t> shares) {
  const Collective collective = collective_on(*topology, name, root, std::move(shares));
  const py::gil_scoped_release release;
  forecast::Question question{.machine = topology.get(),
                              .collective = collective,
                              .algorithms = {request.algorithm},
                              .sizes = {Bytes{request.size}},
                              .how = {.on_run = &check_signals},
                              .forms = forecast::PlanForms::schedules,
                              .packing = request.limits};
  if (!request.profile.empty()) question.how.profile = software_of(request.profile, request.launch);
  const bool is_choice =
      request.algorithm == "auto" || (question.how.profile && forecast::is_nccl_algorithm(request.algorithm));
  if (!is_choice && !forecast::is_packing_variant(request.algorithm))
    value_of(planners::find_planner(request.algorithm));
  const planners::Candidates candidates = value_of(forecast::plan(
      question, {[](std::string_view) { check_signals(); }, [](const planners::ProgramRound&) { check_signals(); }}));
  if (candidates.made.empty()) throw ErrorRaised(candidates.refused.front().error);
  const planners::Candidate* chosen = &candidates.made.front();
  std::optional<forecast::CandidateRuns> runs;
  if (is_choice) {
    runs.emplace(*topology, candidates, question.how);
    chosen = value_of(runs->run(request.algorithm, Bytes{request.size})).candidate;
  }
  return {topology, chosen->schedule, true, chosen->planner, request.gpu};
}

/// Refuses names of collectives and algorithms that there are not.
void check_names(const std::string& collective, const std::string& algorithm) {
  value_of(parse_collective(collective));
  const bool is_known =
      algorithm == "auto" || forecast::is_nccl_algorithm(algorithm) || forecast::is_packing_variant(algorithm);
  if (!is_known) value_of(planners::find_planner(algorithm));
}

/// The nodes that a list names are the only ranks.
std::shared_ptr<Topology> with_only(const Topology& topology, const std::string& ranks) {
  return std::make_shared<Topology>(value_of(with_ranks(topology, value_of(find_rank_nodes(topology, ranks)))));
}

/// A plan for each group, which share the links in the best way when all are at work.
std::vector<Plan> plan_of_groups(const Topology& topology, const std::string& name,
                                 const std::vector<std::string>& groups, std::optional<std::int64_t> root,
                                 const std::vector<std::int64_t>& shares) {
  std::vector<planners::GroupWork> works;
  for (const std::string& ranks : groups) {
    const auto restricted = with_only(topology, ranks);
    works.push_back({*restricted, collective_on(*restricted, name, root, shares)});
  }
  if (works.empty()) throw ErrorRaised({ErrorCode::invalid_input, "no groups", "give lists of ranks"});
  const py::gil_scoped_release release;
  planners::JointPlan joint = value_of(planners::plan_groups(works));
  std::vector<Plan> plans;
  for (std::size_t i = 0; i < works.size(); ++i) {
    plans.push_back({std::make_shared<Topology>(std::move(works[i].topology)), std::move(joint.schedules[i]), true});
  }
  return plans;
}

}  // namespace

void bind_planners(py::module_& module) {
  module.def("_load_traffic", &load_matrix, py::arg("described"), py::arg("ranks"));
  module.def("_bound", &bound_of, py::arg("topology"), py::arg("collective"), py::arg("root"), py::arg("shares"));
  py::class_<PlanRequest>(module, "_PlanRequest")
      .def(py::init([](std::string algorithm, std::int64_t size, std::uint32_t k, std::uint32_t max_depth,
                       std::string profile, std::string launch, std::string gpu) {
        PlanRequest request{std::move(algorithm), size, {}, std::move(profile), std::move(launch), std::move(gpu)};
        request.limits.equal_trees = k;
        request.limits.max_height = max_depth;
        return request;
      }));
  module.def("_plan", &plan);
  module.def("_plan_of_groups", &plan_of_groups);
  module.def("_with_ranks", &with_only);
  module.def("_check_names", &check_names, py::arg("collective"), py::arg("algorithm"));
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
