#include "engine/launch/local_job.h"
#include "python/bind/bindings.h"

namespace espalier::python {
namespace {

/// Starts the ranks and waits for them; a failure is raised with the rank to blame, an interrupt as KeyboardInterrupt.
void run_ranks(const std::string& program, const std::vector<std::string>& arguments, std::uint32_t world, double grace,
               const py::function& on_line) {
  engine::launch::LocalJobOptions options;
  options.world = world;
  options.program = program;
  options.arguments = arguments;
  options.grace = std::chrono::milliseconds(static_cast<std::int64_t>(grace * 1000));
  options.on_error_line = [&](std::uint32_t rank, const std::string& line) {
    const py::gil_scoped_acquire acquire;
    try {
      on_line(rank, py::reinterpret_steal<py::str>(
                        PyUnicode_DecodeUTF8(line.data(), static_cast<py::ssize_t>(line.size()), "replace")));
    } catch (py::error_already_set& raised) {
      raised.discard_as_unraisable("espalier.run");
    }
  };
  Result<engine::launch::LocalJobResult> job;
  {
    const py::gil_scoped_release release;
    job = engine::launch::run_local_job(options);
  }
  const auto ended = value_of(std::move(job));
  if (ended.was_interrupted) {
    PyErr_SetNone(PyExc_KeyboardInterrupt);
    throw py::error_already_set();
  }
  if (!ended.first_failed) return;
  ErrorRaised raised({ErrorCode::unavailable, ended.summary(), ""});
  raised.rank = *ended.first_failed;
  throw raised;
}

}  // namespace

void bind_launch(py::module_& module) {
  module.def("run_ranks", &run_ranks, py::arg("program"), py::arg("arguments"), py::arg("world"), py::arg("grace"),
             py::arg("on_line"));
}

}  // namespace espalier::python
