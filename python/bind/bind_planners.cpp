#include <algorithm>

#include "forecast/profiled_runs.h"
#include "planners/bounds/bound.h"
#include "planners/chooser.h"
#include "planners/groups/plan_groups.h"
#include "planners/nccl/nccl.h"
#include "planners/packing/pruned_packing.h"
#include "planners/planner.h"
#include "python/bind/bind_compare.h"
#include "python/bind/bindings.h"
#include "sim/simulate.h"
#include "topology/names/group.h"

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

/// What `plan` is asked for besides the collective.
struct PlanRequest {
  std::string algorithm;
  std::int64_t size = 0;
  planners::PackingLimits limits;
  std::string profile;  ///< A file, and how calls are launched; empty: links alone.
  std::string launch;
};

/// "packing/h2t3": a packing of a height and so many trees a root, as tables print it.
bool is_packing_variant(const std::string& algorithm) { return algorithm.starts_with("packing/"); }

/// The variant of the packing that is called so.
const planners::Candidate& variant_called(const std::string& name, const planners::Candidates& candidates) {
  if (const auto* const found = candidates.find(name)) return *found;
  std::string others;
  for (const planners::Candidate& candidate : candidates.made) {
    if (is_packing_variant(candidate.planner)) others += (others.empty() ? "there are " : ", ") + candidate.planner;
  }
  throw ErrorRaised({ErrorCode::unsupported, "no packing called " + name + " is worth having here",
                     others.empty() ? "use packing; k and max_depth limit its trees" : others});
}

/// Those that the algorithm stands for; packing within the limits.
std::vector<planners::Planner> planners_of(const PlanRequest& request) {
  std::vector<planners::Planner> found;
  if (request.algorithm == "auto") {
    const auto all = planners::all_planners();
    found.assign(all.begin(), all.end());
  } else if (!request.profile.empty() && request.algorithm.starts_with("nccl")) {
    for (const planners::Planner& planner : planners::nccl_planners()) {
      if (request.algorithm == "nccl" || request.algorithm == planner.name) found.push_back(planner);
    }
  }
  const bool is_variant = is_packing_variant(request.algorithm);
  if (found.empty()) found.push_back(value_of(planners::find_planner(is_variant ? "packing" : request.algorithm)));
  if (!request.limits.any()) return found;
  const auto packing = std::ranges::find(found, "packing", &planners::Planner::name);
  if (packing == found.end() || is_variant) {
    throw ErrorRaised({ErrorCode::unsupported,
                       "k and max_depth shape the trees of packing, not of " + request.algorithm,
                       "plan with algorithm=\"packing\", or leave them out"});
  }
  packing->plan = [limits = request.limits](const planners::PlanningProblem& problem, const Collective& collective,
                                            const planners::PlanContext& context) {
    return planners::plan_pruned_packing(problem, collective, limits, context);
  };
  return found;
}

/// The one that is fastest at the size on links alone.
const Schedule& fastest(const planners::Candidates& candidates, const Topology& topology, Bytes size) {
  const auto choice = planners::choose(
      candidates, size, [&](const Schedule& schedule, Bytes bytes, const Cut& cut, Picoseconds deadline) {
        return evaluate(topology, schedule, bytes, cut, deadline);
      });
  if (!choice) throw ErrorRaised(choice.error());
  return choice->candidate->schedule;
}

/// The schedule of a planner, or the one that is fastest at a size.
Plan plan(std::shared_ptr<Topology> topology, const std::string& name, const PlanRequest& request,
          std::optional<std::int64_t> root, std::vector<std::int64_t> shares) {
  const Collective collective = collective_on(*topology, name, root, std::move(shares));
  const py::gil_scoped_release release;
  std::optional<forecast::ProfiledRuns::Options> costs;
  if (!request.profile.empty()) costs = profiled_options(request.profile, request.launch);
  planners::CandidateOptions options;
  options.context.on_round = [](const planners::ProgramRound&) { check_signals(); };
  const bool is_choice = request.algorithm == "auto" || request.algorithm == "nccl";
  const bool is_variant = is_packing_variant(request.algorithm);
  options.for_choice = (request.algorithm == "auto" && !request.limits.any()) || is_variant;
  if (is_variant) options.named.push_back(request.algorithm);
  options.least_size = costs ? Bytes{} : Bytes{request.size};
  if (costs) options.paths = costs->profile.paths;
  const planners::Candidates candidates = value_of(planners::make_candidates(
      *topology, collective, planners_of(request), options, [](std::string_view) { check_signals(); }));
  if (candidates.made.empty()) throw ErrorRaised(candidates.refused.front().error);
  if (is_variant) return {topology, variant_called(request.algorithm, candidates).schedule, true};
  if (!is_choice) return {topology, candidates.made.front().schedule, true};
  if (!costs) return {topology, fastest(candidates, *topology, {request.size}), true};
  forecast::ProfiledRuns runs(*topology, candidates, *costs);
  return {topology, value_of(runs.run(request.algorithm, Bytes{request.size})).candidate->schedule, true};
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
  module.def("_bound", &bound_of, py::arg("topology"), py::arg("collective"), py::arg("root"), py::arg("shares"));
  py::class_<PlanRequest>(module, "_PlanRequest")
      .def(py::init([](std::string algorithm, std::int64_t size, std::uint32_t k, std::uint32_t max_depth,
                       std::string profile, std::string launch) {
        PlanRequest request{std::move(algorithm), size, {}, std::move(profile), std::move(launch)};
        request.limits.equal_trees = k;
        request.limits.most_height = max_depth;
        return request;
      }));
  module.def("_plan", &plan);
  module.def("_plan_of_groups", &plan_of_groups);
  module.def("_with_ranks", &with_only);
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
