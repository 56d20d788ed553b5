#include "planners/cut_search.h"
#include "python/bind/bindings.h"
#include "sim/simulate.h"

namespace espalier::python {
namespace {

/// A schedule made ready to be simulated at many sizes.
class PreparedSimulation {
 public:
  explicit PreparedSimulation(const Plan& plan)
      : topology_(plan.topology),
        schedule_(plan.schedule),
        chunks_(schedule_, *topology_),
        simulator_(value_of(sim::Simulator::make(schedule_, *topology_))) {}

  PreparedSimulation(const PreparedSimulation&) = delete;
  PreparedSimulation& operator=(const PreparedSimulation&) = delete;

  sim::Report run(std::int64_t size, std::optional<std::int64_t> chunk, std::optional<std::uint32_t> ahead,
                  const std::string& model, bool timeline) const {
    sim::Options options;
    options.size = {size};
    options.model = value_of(sim::parse_model(model));
    const py::gil_scoped_release release;
    Cut cut{{chunk.value_or(1)}, ahead.value_or(0)};
    if (!chunk || !ahead) cut = find_cut(options, chunk, ahead);
    options.set(cut);
    options.record_timeline = timeline;
    return value_of(simulator_.run(options));
  }

  [[nodiscard]] const Collective& collective() const { return schedule_.collective; }

 private:
  Cut find_cut(sim::Options options, std::optional<std::int64_t> chunk, std::optional<std::uint32_t> ahead) const {
    planners::FixedCut fixed;
    if (chunk) fixed.chunk = Bytes{*chunk};
    fixed.ahead = ahead;
    const auto evaluate = [&](const Cut& cut, Picoseconds deadline) {
      options.set(cut);
      return simulator_.run_until(options, deadline);
    };
    const auto best = planners::find_best_cut(chunks_, options.size, fixed, evaluate);
    if (!best) throw ErrorRaised(best.error());
    return {best->chunk, best->ahead};
  }

  std::shared_ptr<const Topology> topology_;
  Schedule schedule_;
  planners::ChunkModel chunks_;
  sim::Simulator simulator_;
};

py::dtype span_type() {
  py::list names, formats, offsets;
  const auto add = [&](const char* name, const char* format, std::size_t offset) {
    names.append(name);
    formats.append(format);
    offsets.append(offset);
  };
  add("lane", "u4", offsetof(Span, lane));
  add("transfer", "u4", offsetof(Span, transfer));
  add("chunk", "u4", offsetof(Span, chunk));
  add("phase", "u1", offsetof(Span, phase));
  add("begin", "i8", offsetof(Span, begin));
  add("end", "i8", offsetof(Span, end));
  return py::dtype(names, formats, offsets, sizeof(Span));
}

py::array_t<double> busy_of(const sim::Report& report) {
  py::array_t<double> result(static_cast<py::ssize_t>(report.links.size()));
  auto out = result.mutable_unchecked<1>();
  for (std::size_t i = 0; i < report.links.size(); ++i)
    out(static_cast<py::ssize_t>(i)) = report.links[i].busy.seconds();
  return result;
}

}  // namespace

void bind_simulation(py::module_& module) {
  py::class_<sim::Report>(module, "Report")
      .def_property_readonly(
          "size", [](const sim::Report& report) { return report.size.count; }, "Message size S in bytes.")
      .def_property_readonly(
          "time", [](const sim::Report& report) { return report.elapsed.seconds(); }, "Seconds.")
      .def_property_readonly(
          "picoseconds", [](const sim::Report& report) { return report.elapsed.count; }, "Exact.")
      .def_property_readonly(
          "algbw", [](const sim::Report& report) { return report.algbw(); }, "S / time, bytes per second.")
      .def_property_readonly(
          "chunk", [](const sim::Report& report) { return report.chunk.count; }, "Largest chunk in bytes.")
      .def_property_readonly("ahead", [](const sim::Report& report) { return report.ahead; })
      .def_property_readonly("link_busy", &busy_of, "Seconds that each link was busy, by link id.")
      .def_property_readonly(
          "spans",
          [](const py::object& self) -> py::object {
            const auto& report = self.cast<const sim::Report&>();
            if (!report.timeline) return py::none();
            return view_of(span_type(), report.timeline->spans, self);
          },
          "Read-only view of the timeline, or None: lane, transfer, chunk, phase (0 send, 1 wire, 2 recv, 3 reduce), "
          "begin and "
          "end in picoseconds.");
  py::class_<PreparedSimulation>(module, "Simulator",
                                 "A schedule made ready to be simulated at many sizes. Safe to share between threads.")
      .def(py::init<const Plan&>(), py::arg("schedule"))
      .def("run", &PreparedSimulation::run, py::arg("size"), py::arg("chunk") = py::none(),
           py::arg("ahead") = py::none(), py::arg("model") = "link", py::arg("timeline") = false,
           "One simulation of `size` bytes; what is not given of chunk (bytes) and ahead is chosen. The GIL is "
           "released.")
      .def("busbw",
           [](const PreparedSimulation& self, const sim::Report& report) { return report.busbw(self.collective()); });
}

}  // namespace espalier::python
