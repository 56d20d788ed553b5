#pragma once

// Tested by: python/tests/behaviour.py

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/rational.h"
#include "base/result.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier::python {

namespace py = pybind11;

/// An Error on its way to Python, where it becomes espalier.Error.
struct ErrorRaised : std::runtime_error {
  explicit ErrorRaised(Error of) : std::runtime_error(of.message), error(std::move(of)) {}
  Error error;
  std::optional<std::uint32_t> rank;  ///< To blame, where a job failed.
};

/// The value, or espalier.Error in Python.
template <class T>
T value_of(Result<T> result) {
  if (!result) throw ErrorRaised(std::move(result.error()));
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

/// A schedule with the network that its routes belong to. Python never changes one, so it is verified once at most.
struct Plan {
  std::shared_ptr<const Topology> topology;
  Schedule schedule;
  mutable bool is_verified = false;  ///< Guarded by the GIL.
  std::string planner = {};          ///< As tables print it: "nccl/ring"; empty: not known.
  std::string gpu = {};              ///< Of the machine that it was planned on; empty: not said.
};

/// The plan's schedule, or espalier.Error where it breaks a rule. Requires: the GIL.
const Schedule& verified(const Plan& plan);

/// fractions.Fraction of an exact number.
py::object fraction_of(const Rational& value);

/// A read-only view of memory that `owner` keeps alive; nothing is copied.
template <class T>
py::array view_of(const py::dtype& type, const std::vector<T>& values, const py::object& owner) {
  py::array view(type, {static_cast<py::ssize_t>(values.size())}, {static_cast<py::ssize_t>(sizeof(T))}, values.data(),
                 owner);
  view.attr("flags").attr("writeable") = false;
  return view;
}

/// Collective by name, on the topology's ranks; `root`: a rank's number, where one is given.
/// `shares`: of unequal shards, or none.
Collective collective_on(const Topology& topology, const std::string& name, std::optional<std::int64_t> root,
                         std::vector<std::int64_t> shares = {});

void bind_topology(py::module_& module);
void bind_schedule(py::module_& module);
void bind_planners(py::module_& module);
void bind_simulation(py::module_& module);
void bind_communicator(py::module_& module);
void bind_launch(py::module_& module);
void bind_calibrate(py::module_& module);
void bind_estimate(py::module_& module);
void bind_experts(py::module_& module);
/// The engine for espalier.torch (engine_api.h).
void bind_engine(py::module_& module);

}  // namespace espalier::python
