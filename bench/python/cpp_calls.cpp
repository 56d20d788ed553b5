// The calls that calls.py makes from Python, made from C++ in the same process: module `cpp_calls`.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/communicator/communicator.h"
#include "forecast/sources/advisor.h"
#include "schedule/json/schedule_json.h"
#include "sim/simulate.h"
#include "topology/generate/generate.h"

namespace espalier::bench {
namespace {

namespace py = pybind11;

template <class T>
T checked(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

/// Seconds that each of `times` calls takes, without the GIL.
template <class Call>
std::vector<double> time_calls(int times, Call call) {
  const py::gil_scoped_release release;
  std::vector<double> seconds;
  seconds.reserve(static_cast<std::size_t>(times));
  for (int i = 0; i < times; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return seconds;
}

/// As espalier.simulate of a schedule that was simulated before, with its chunks told: the run, and its busbw.
class PlanSimulation {
 public:
  explicit PlanSimulation(const std::string& json)
      : plan_(checked(read_plan(json, "plan"))),
        simulator_(checked(sim::Simulator::make(plan_.schedule, plan_.topology))) {}

  std::vector<double> times(std::int64_t size, std::int64_t chunk, std::uint32_t ahead, int times) const {
    return time_calls(times, [&] {
      sim::Options options;
      options.size = {size};
      options.set(Pacing{{chunk}, ahead});
      const sim::Report report = checked(simulator_.run(options));
      if (report.busbw(plan_.schedule.collective) <= 0) throw std::runtime_error("nothing was simulated");
    });
  }

 private:
  PlanFile plan_;
  sim::Simulator simulator_;
};

/// A rank of a job beside that of Python's communicator, with the same schedules.
class Ranks {
 public:
  Ranks(std::uint32_t rank, std::uint32_t world, std::uint16_t port, const std::string& secret) {
    JobOptions options;
    options.rendezvous.rank = rank;
    options.rendezvous.world = world;
    options.rendezvous.host = "127.0.0.1";
    options.rendezvous.port = port;
    options.rendezvous.secret = secret;
    auto advised = std::make_shared<forecast::Advisor>(
        checked(generate_fully_connected({.ranks = world, .wire = {}})),
        forecast::AdvisorOptions{.algorithm = "auto", .leaves_chunk_to_engine = true, .may_be_replaced = true});
    const py::gil_scoped_release release;
    ranks_ = checked(Communicator::join(std::move(options), forecast::Advisor::source(std::move(advised))));
  }

  void barrier() const {
    const py::gil_scoped_release release;
    checked(ranks_->barrier());
  }

  std::vector<double> times(py::array_t<float, py::array::c_style> data, int times) const {
    float* const memory = data.mutable_data();
    const auto count = static_cast<std::size_t>(data.size());
    return time_calls(
        times, [&] { checked(ranks_->all_reduce(memory, memory, count, ElementType::float32, ReduceOperation::sum)); });
  }

 private:
  std::unique_ptr<Communicator> ranks_;
};

}  // namespace
}  // namespace espalier::bench

PYBIND11_MODULE(cpp_calls, module) {
  namespace py = pybind11;
  using espalier::bench::PlanSimulation;
  using espalier::bench::Ranks;
  py::class_<PlanSimulation>(module, "PlanSimulation")
      .def(py::init<const std::string&>())
      .def("times", &PlanSimulation::times);
  py::class_<Ranks>(module, "Ranks")
      .def(py::init<std::uint32_t, std::uint32_t, std::uint16_t, const std::string&>())
      .def("barrier", &Ranks::barrier)
      .def("times", &Ranks::times);
}
