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

Collective collective_on(const Topology& topology, const std::string& name, std::int64_t root,
                         std::vector<std::int64_t> shares) {
  const std::optional<Rank> of = root < 0 ? std::nullopt : std::optional(Rank(static_cast<std::size_t>(root)));
  return value_of(make_collective(value_of(parse_collective(name)), topology.rank_count(), of, std::move(shares)));
}

}  // namespace espalier::python

PYBIND11_MODULE(_espalier, module) {
  using namespace espalier::python;
  module.doc() = "Espalier's libraries. Use the package espalier.";
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
}
