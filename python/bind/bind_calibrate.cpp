#include <set>

#include "compare/fit/calibrate.h"
#include "python/bind/bind_compare.h"
#include "python/bind/bindings.h"
#include "schedule/collective.h"
#include "schedule/verify/verify.h"
#include "sim/simulate.h"

namespace espalier::python {
namespace {

/// A run that was measured: what ran, at which size and chunk (bytes), and how long it took (seconds).
struct MeasuredRun {
  const Plan* plan = nullptr;  ///< The caller keeps it.
  std::int64_t size = 0;
  std::int64_t chunk = 0;
  double seconds = 0;
};

/// Of a fit, which simulates the runs many times over. Requires: the GIL is released.
void let_ctrl_c_end_it() {
  const py::gil_scoped_acquire acquire;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

Result<std::vector<double>> simulate_runs(const std::vector<MeasuredRun>& runs, const Topology& topology,
                                          std::span<const std::size_t> which) {
  let_ctrl_c_end_it();
  std::vector<double> seconds;
  for (const std::size_t index : which) {
    const MeasuredRun& run = runs[index];
    sim::Options options;
    options.size = {run.size};
    options.set({{run.chunk}, 0});
    const auto report = sim::simulate_unverified(run.plan->schedule, topology, options);
    if (!report) return tl::unexpected(report.error());
    seconds.push_back(report->elapsed.seconds());
  }
  return seconds;
}

/// What compare::calibrate says of runs given as (plan, size, chunk, seconds), by name.
py::dict calibrate(const Topology& topology,
                   const std::vector<std::tuple<const Plan*, std::int64_t, std::int64_t, double>>& given,
                   std::size_t hold_out) {
  std::vector<MeasuredRun> runs;
  std::vector<double> seconds;
  std::set<const Plan*> verified;
  bool any_reduces = false;
  for (const auto& [plan, size, chunk, time] : given) {
    if (verified.insert(plan).second) value_of(require_verified(plan->schedule, topology, "a run's schedule"));
    runs.push_back({plan, size, chunk, time});
    seconds.push_back(time);
    any_reduces = any_reduces || reduces(plan->schedule.collective.kind);
  }
  compare::CalibrateOptions options;
  options.hold_out_parts = hold_out;
  compare::Calibration fit = [&] {
    const py::gil_scoped_release release;
    return value_of(compare::calibrate(
        topology, seconds, any_reduces,
        [&](const Topology& changed, std::span<const std::size_t> which) {
          return simulate_runs(runs, changed, which);
        },
        options));
  }();
  py::list parameters;
  for (const compare::FittedParameter& fitted : fit.parameters) {
    py::dict row;
    row["name"] = fitted.parameter.name();
    row["state"] = std::string(to_string(fitted.state));
    row["given"] = fitted.parameter.given;
    row["value"] = fitted.value;
    row["standard_error"] = fitted.standard_error;
    parameters.append(row);
  }
  py::list notes;
  for (const compare::Ambiguity& ambiguity : fit.ambiguities) notes.append(ambiguity.action);
  py::dict result;
  result["parameters"] = parameters;
  result["notes"] = notes;
  result["before"] = fit.before;
  result["after"] = fit.after;
  result["weights"] = fit.weights;
  result["errors_before"] = summary_of(fit.errors_before);
  result["errors_after"] = summary_of(fit.errors_after);
  result["hold_out"] = fit.hold_out.parts == 0 ? py::object(py::none()) : summary_of(fit.hold_out.errors);
  result["converged"] = fit.converged;
  result["topology"] = std::make_shared<Topology>(std::move(fit.topology));
  return result;
}

}  // namespace

void bind_calibrate(py::module_& module) {
  module.def("calibrate", &calibrate, py::arg("topology"), py::arg("runs"), py::arg("hold_out"));
}

}  // namespace espalier::python
