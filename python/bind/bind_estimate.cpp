#include "python/bind/bindings.h"
#include "sim/time_table.h"

namespace espalier::python {
namespace {

sim::TimeTable times_at(const std::vector<std::pair<std::int64_t, std::int64_t>>& points) {
  std::vector<sim::TimeTable::Point> known;
  for (const auto& [size, time] : points) known.push_back({{size}, {time}});
  return value_of(sim::TimeTable::make(std::move(known)));
}

}  // namespace

void bind_estimate(py::module_& module) {
  py::class_<sim::TimeTable>(module, "TimeTable")
      .def(py::init(&times_at))
      .def("at", [](const sim::TimeTable& table, std::int64_t size) {
        if (size < 0) throw py::value_error("a negative size");  // espalier/_estimate.py says it in its words.
        return table.at({size}).seconds();
      });
}

}  // namespace espalier::python
