#include "compute/gpu.h"
#include "experts/exchange.h"
#include "python/bind/bindings.h"

namespace espalier::python {
namespace {

/// As `espalier experts --json` says it of one exchange.
py::dict experts_exchange(const Topology& topology, const std::string& software, std::int64_t tokens,
                          std::int64_t hidden, std::int64_t top_k, std::int64_t experts, std::int64_t sms,
                          std::int64_t max_boxes, const std::string& dispatch, const std::string& combine,
                          std::size_t ranks, const std::string& gpu) {
  const experts::Exchange exchange{value_of(experts::parse_software(software)),
                                   tokens,
                                   hidden,
                                   top_k,
                                   experts,
                                   sms,
                                   max_boxes,
                                   value_of(experts::parse_format(dispatch)),
                                   value_of(experts::parse_format(combine))};
  experts::MachineRates machine = value_of(experts::find_rates(topology, ranks));
  machine.multiprocessors = value_of(compute::find_gpu(gpu))->multiprocessors;
  py::list phases;
  double seconds = 0;
  for (const experts::Phase& phase : value_of(experts::predict(machine, exchange))) {
    seconds += phase.seconds;
    phases.append(py::dict(py::arg("name") = phase.name, py::arg("seconds") = phase.seconds,
                           py::arg("start") = phase.start, py::arg("limit") = experts::name_of(phase.limit)));
  }
  return py::dict(py::arg("seconds") = seconds, py::arg("ranks") = machine.ranks, py::arg("boxes") = machine.boxes,
                  py::arg("link_rate") = machine.link_rate, py::arg("nic_rate") = machine.nic_rate,
                  py::arg("phases") = phases);
}

}  // namespace

void bind_experts(py::module_& module) { module.def("_experts", &experts_exchange); }

}  // namespace espalier::python
