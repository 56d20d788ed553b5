#include <algorithm>
#include <sstream>

#include "forecast/size_curve.h"
#include "planners/pacing_search.h"
#include "python/bind/bindings.h"
#include "schedule/parts.h"
#include "schedule/timeline/binary_timeline.h"
#include "schedule/verify/verify.h"
#include "sim/model.h"
#include "sim/simulate.h"

namespace espalier::python {
namespace {

/// A schedule made ready to be simulated at many sizes. Where nothing is told of chunks and no timeline is asked for,
/// sizes between powers of two are on a forecast::SizeCurve.
class PreparedSimulation {
 public:
  /// Errors: of a schedule that breaks a rule.
  static std::unique_ptr<PreparedSimulation> make(const Plan& plan) {
    verified(plan);
    return make_unverified(plan);
  }
  static std::unique_ptr<PreparedSimulation> make_unverified(const Plan& plan) {
    value_of(require_structure(plan.schedule, *plan.topology, "the schedule"));
    return std::unique_ptr<PreparedSimulation>(new PreparedSimulation(plan));
  }

  PreparedSimulation(const PreparedSimulation&) = delete;
  PreparedSimulation& operator=(const PreparedSimulation&) = delete;

  sim::Report run(std::int64_t size, std::optional<std::int64_t> chunk, std::optional<std::uint32_t> ahead,
                  const std::string& model, bool timeline) {
    sim::Options options;
    options.size = {size};
    options.model = value_of(sim::parse_model(model));
    const py::gil_scoped_release release;
    const bool is_free = !chunk && !ahead && forecast::is_for_curves(chunks_, options.size);
    if (!is_free) {
      options.set(choose_pacing(options, chunk, ahead));
    } else {
      sim::Report report = value_of(curve_of(options.model).at(options.size)).report;
      if (!timeline) return report;
      options.set({report.chunk, report.ahead});
    }
    options.record_timeline = timeline;
    return value_of(simulator_.run(options));
  }

  [[nodiscard]] const Collective& collective() const { return schedule_.collective; }
  [[nodiscard]] const Schedule& schedule() const { return schedule_; }
  [[nodiscard]] const Topology& topology() const { return *topology_; }

  /// What is given, the rest as it is fastest alone. Requires: no GIL.
  [[nodiscard]] Pacing choose_pacing(const sim::Options& options, std::optional<std::int64_t> chunk,
                                     std::optional<std::uint32_t> ahead) const {
    return chunk && ahead ? Pacing{{*chunk}, *ahead} : find_pacing(options, chunk, ahead);
  }

 private:
  explicit PreparedSimulation(const Plan& plan)
      : topology_(plan.topology),
        schedule_(plan.schedule),
        chunks_(schedule_, *topology_),
        simulator_(value_of(sim::Simulator::make_unverified(schedule_, *topology_))),
        of_links_(make_curve(sim::ModelKind::link)),
        fair_(make_curve(sim::ModelKind::fair)) {}

  std::unique_ptr<forecast::SizeCurve> make_curve(sim::ModelKind model) const {
    const auto run = [this, model](Bytes size, const Pacing& pacing) {
      sim::Options options;
      options.size = size;
      options.model = model;
      options.set(pacing);
      return simulator_.run(options);
    };
    const auto search = [this, model, run](Bytes size) -> Result<forecast::SizedRun> {
      sim::Options options;
      options.size = size;
      options.model = model;
      const auto pacing = search_pacing(options, {});
      if (!pacing) return tl::unexpected(pacing.error());
      return run(size, *pacing).map([](sim::Report report) {
        return forecast::SizedRun{std::move(report), nullptr, {}};
      });
    };
    return std::make_unique<forecast::SizeCurve>(
        search, [run](const forecast::SizedRun&, Bytes size, const Pacing& pacing) { return run(size, pacing); });
  }

  [[nodiscard]] forecast::SizeCurve& curve_of(sim::ModelKind model) {
    return model == sim::ModelKind::link ? *of_links_ : *fair_;
  }

  [[nodiscard]] Pacing find_pacing(const sim::Options& options, std::optional<std::int64_t> chunk,
                                   std::optional<std::uint32_t> ahead) const {
    planners::FixedPacing fixed;
    if (chunk) fixed.chunk = Bytes{*chunk};
    fixed.ahead = ahead;
    return value_of(search_pacing(options, fixed));
  }

  [[nodiscard]] Result<Pacing> search_pacing(sim::Options options, const planners::FixedPacing& fixed) const {
    const auto evaluate = [&](const Pacing& pacing, Picoseconds deadline) {
      options.set(pacing);
      return simulator_.run_until(options, deadline);
    };
    const auto best = planners::find_best_pacing(chunks_, options.size, fixed, evaluate);
    if (!best) return tl::unexpected(best.error());
    return Pacing{best->chunk, best->ahead};
  }

  std::shared_ptr<const Topology> topology_;
  Schedule schedule_;
  planners::ChunkModel chunks_;
  sim::Simulator simulator_;
  std::unique_ptr<forecast::SizeCurve> of_links_, fair_;
};

/// Whether two networks differ in their ranks at most.
bool is_same_network(const Topology& one, const Topology& other) {
  const auto is_same_node = [](const Node& a, const Node& b) {
    return a.id == b.id && a.bandwidth == b.bandwidth && a.reduce_bandwidth == b.reduce_bandwidth;
  };
  return std::ranges::equal(one.links(), other.links()) && std::ranges::equal(one.nodes(), other.nodes(), is_same_node);
}

/// Schedules of one network that all begin at once, a report each; `links` of all are of the network's whole use.
std::vector<sim::Report> run_together(const std::vector<const PreparedSimulation*>& parts, std::int64_t size,
                                      std::optional<std::int64_t> chunk, std::optional<std::uint32_t> ahead,
                                      const std::string& model_name) {
  if (parts.empty()) return {};
  const Topology& topology = parts.front()->topology();
  sim::Options options;
  options.size = {size};
  options.model = value_of(sim::parse_model(model_name));
  const py::gil_scoped_release release;
  const sim::Network network(topology);
  const auto model = sim::make_model(options.model, network, {});
  std::vector<std::unique_ptr<sim::CompiledSchedule>> compiled;
  std::vector<sim::Report> reports;
  for (const PreparedSimulation* part : parts) {
    if (!is_same_network(part->topology(), topology)) {
      throw ErrorRaised({ErrorCode::invalid_input, "the schedules are of different networks",
                         "plan them on one network, with groups or ranks"});
    }
    const Pacing pacing = part->choose_pacing(options, chunk, ahead);
    compiled.push_back(std::make_unique<sim::CompiledSchedule>(
        value_of(sim::CompiledSchedule::make_unverified(part->schedule(), part->topology(), network))));
    const sim::RunId run = value_of(
        model->add(*compiled.back(), {options.size, pacing.chunk, options.element_size, 1'000'000, pacing.ahead}));
    model->enter_all(run, 0);
    sim::Report report;
    report.size = options.size;
    report.chunk = pacing.chunk;
    report.ahead = pacing.ahead;
    reports.push_back(std::move(report));
  }
  std::vector<sim::RankEnd> ended;
  while (model->next_time() != sim::never) model->advance(ended);
  for (const sim::RankEnd& end : ended) {
    Picoseconds& elapsed = reports[end.run.index()].elapsed;
    elapsed = std::max(elapsed, Picoseconds{end.time});
  }
  for (sim::Report& report : reports) report.links = model->links();
  return reports;
}

/// What a report is made of, but for what no Python caller has recorded.
py::tuple state_of(const sim::Report& report) {
  std::vector<std::pair<std::int64_t, std::int64_t>> links;
  for (const sim::LinkUse& use : report.links) links.emplace_back(use.bytes, use.busy.count);
  py::object timeline = py::none();
  if (report.timeline) {
    std::ostringstream out;
    value_of(write_binary_timeline(out, *report.timeline));
    timeline = py::bytes(out.str());
  }
  return py::make_tuple(report.size.count, report.chunk.count, report.ahead, report.elapsed.count, report.events, links,
                        timeline);
}

sim::Report report_of(const py::tuple& state) {
  sim::Report report;
  report.size = {state[0].cast<std::int64_t>()};
  report.chunk = {state[1].cast<std::int64_t>()};
  report.ahead = state[2].cast<std::uint32_t>();
  report.elapsed = {state[3].cast<std::int64_t>()};
  report.events = state[4].cast<std::uint64_t>();
  for (const auto& [bytes, busy] : state[5].cast<std::vector<std::pair<std::int64_t, std::int64_t>>>()) {
    report.links.push_back({bytes, {busy}});
  }
  if (!state[6].is_none()) report.timeline = value_of(read_binary_timeline(state[6].cast<std::string>(), "a pickle"));
  return report;
}

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
      .def(py::pickle(&state_of, &report_of))
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
  module.def("_run_together", &run_together);
  py::class_<PreparedSimulation>(module, "Simulator",
                                 "A schedule made ready to be simulated at many sizes. Safe to share between threads.")
      .def(py::init(&PreparedSimulation::make), py::arg("schedule"))
      .def_static("unverified", &PreparedSimulation::make_unverified, py::arg("schedule"),
                  "Of a schedule that need not keep its collective's promise: the time of a part of one, which no "
                  "bound holds for.")
      .def("run", &PreparedSimulation::run, py::arg("size"), py::arg("chunk") = py::none(),
           py::arg("ahead") = py::none(), py::arg("model") = "link", py::arg("timeline") = false,
           "One simulation of `size` bytes; what is not given of chunk (bytes) and ahead is chosen. The GIL is "
           "released.")
      .def("busbw",
           [](const PreparedSimulation& self, const sim::Report& report) { return report.busbw(self.collective()); })
      .def("evenly_dealt", [](const PreparedSimulation& self, const sim::Report& report) {
        return evenly_dealt(self.collective(), report.size, report.element_size).count;
      });
}

}  // namespace espalier::python
