// The extension module: errors, and one function per library that adds its part.

#include "base/units.h"
#include "python/bind/bind_compare.h"
#include "python/bind/bindings.h"
#include "schedule/collective.h"

namespace espalier::python {
namespace {

const char* name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_input: return "invalid_input";
    case ErrorCode::infeasible: return "infeasible";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::too_large: return "too_large";
    case ErrorCode::unavailable: return "unavailable";
  }
  return "";
}

/// espalier.Error with code, message, help and the rank to blame.
void raise(const ErrorRaised& raised) {
  const Error& error = raised.error;
  const py::object type = py::module_::import("espalier.errors").attr("Error");
  const py::object instance = type(name_of(error.code), error.message, error.help, raised.rank);
  PyErr_SetObject(type.ptr(), instance.ptr());
}

}  // namespace

py::object fraction_of(const Rational& value) {
  return py::module_::import("fractions").attr("Fraction")(to_string(value));
}

Collective collective_on(const Topology& topology, const std::string& name, std::optional<std::int64_t> root,
                         std::vector<std::int64_t> shares) {
  const CollectiveKind kind = value_of(parse_collective(name));
  const std::size_t ranks = topology.rank_count();
  std::optional<Rank> of;
  if (root) {
    if (*root < 0 || static_cast<std::uint64_t>(*root) >= ranks) {
      throw ErrorRaised({ErrorCode::invalid_input,
                         "root " + std::to_string(*root) + " is not one of the " + std::to_string(ranks) + " ranks",
                         "give a root from 0 to " + std::to_string(ranks - 1)});
    }
    of = Rank(static_cast<std::size_t>(*root));
  }
  return value_of(make_collective(kind, ranks, of, std::move(shares)));
}

}  // namespace espalier::python

PYBIND11_MODULE(_espalier, module) {
  using namespace espalier::python;
  module.doc() = "Espalier's libraries. Use the package espalier.";
  module.attr("_version") = ESPALIER_VERSION;
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const ErrorRaised& raised) {
      raise(raised);
    }
  });
  bind_topology(module);
  bind_schedule(module);
  bind_planners(module);
  bind_simulation(module);
  bind_compare(module);
  bind_communicator(module);
  bind_launch(module);
  bind_calibrate(module);
  bind_estimate(module);
  bind_experts(module);
  bind_engine(module);
}
