// The extension module _torch: makes process groups, and lets them leave when the process ends.

#include <Python.h>
#include <pybind11/chrono.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include <tuple>
#include <vector>

#include "python/torch/process_group.h"

namespace espalier::python {
namespace {

namespace py = pybind11;

c10::intrusive_ptr<BackendBase> make_group(
    const py::capsule& engine, const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
    const std::chrono::milliseconds& timeout, const std::string& transport, const std::string& algorithm,
    const std::string& topology, const std::string& device_tensors,
    const std::vector<std::tuple<std::string, std::int64_t, std::int64_t>>& plans, bool is_whole_job) {
  BackendSettings settings{transport, algorithm, topology, {}, parse_device_tensors(device_tensors)};
  for (const auto& [path, least, most] : plans) settings.plans.push_back({path, least, most});
  auto* const calls = static_cast<Engine*>(PyCapsule_GetPointer(engine.ptr(), engine_capsule));
  const py::gil_scoped_release release;
  return c10::make_intrusive<ProcessGroupEspalier>(*calls, store, rank, size, timeout, settings, is_whole_job);
}

const ProcessGroupEspalier& ours(const BackendBase& group) {
  const auto* const found = dynamic_cast<const ProcessGroupEspalier*>(&group);
  if (found == nullptr) throw std::invalid_argument("this process group has another backend");
  return *found;
}

}  // namespace
}  // namespace espalier::python

PYBIND11_MODULE(_torch, module) {
  using namespace espalier::python;
  module.doc() = "The c10d backend. Use espalier.torch.";
  py::class_<ProcessGroupEspalier, c10::intrusive_ptr<ProcessGroupEspalier>, BackendBase>(module,
                                                                                          "ProcessGroupEspalier")
      .def_property_readonly("options", &ProcessGroupEspalier::getBackendOptions);
  module.def("make_group", &make_group);
  module.def("transports", [](const c10::intrusive_ptr<BackendBase>& group) { return ours(*group).transports(); });
  module.def("allocate_tensors_in_pages", &allocate_tensors_in_pages);
  module.def("leave_all", &ProcessGroupEspalier::leave_all, py::call_guard<py::gil_scoped_release>());
}
