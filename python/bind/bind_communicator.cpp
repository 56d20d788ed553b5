#include <map>
#include <mutex>

#include "base/element.h"
#include "engine/communicator/communicator.h"
#include "engine/launch/detect_launch.h"
#include "engine/launch/join_options.h"
#include "engine/launch/shared_secret.h"
#include "engine/rendezvous/secret.h"
#include "forecast/sources/advisor.h"
#include "forecast/sources/count_plans.h"
#include "python/bind/bindings.h"
#include "python/bind/call_arrays.h"
#include "python/bind/lone_rank.h"
#include "topology/generate/generate.h"

namespace espalier::python {
namespace {

/// What the communicators of one job share. `mutex` is taken without the GIL only; the rest belongs to the GIL.
struct SharedJob {
  explicit SharedJob(bool reaches_memory) : shares_memory(reaches_memory) {}

  const bool shares_memory;  ///< Its ranks are of one machine, and reach each other's memory.
  std::mutex mutex;          ///< One thread calls at a time.
  bool is_noting = false;
  std::vector<py::object> noted;  ///< What the calls of an open group work on, with their communicators.
  std::vector<std::shared_ptr<const CountArrays>> noted_counts;
};

/// A call under way; what it works on stays until it has ended.
struct StartedCall {
  CallHandle handle;
  py::object send, receive, shares;
  std::shared_ptr<const CountArrays> counts;
};

ScheduleSource advised(const Topology& topology, const std::string& algorithm, bool shares_memory) {
  forecast::AdvisorOptions options{.algorithm = algorithm, .leaves_chunk_to_engine = true};
  options.may_be_replaced = algorithm == "auto";
  options.shares_memory = shares_memory;
  return forecast::Advisor::source(std::make_shared<forecast::Advisor>(topology, options));
}

ScheduleSource fully_connected(std::size_t ranks, const std::string& algorithm, bool shares_memory) {
  if (ranks == 1) return schedule_of_lone_rank;
  return advised(value_of(generate_fully_connected({.ranks = static_cast<std::int64_t>(ranks), .wire = {}})), algorithm,
                 shares_memory);
}

class PythonCommunicator {
 public:
  PythonCommunicator(std::shared_ptr<Communicator> ranks, std::shared_ptr<SharedJob> shared)
      : ranks_(std::move(ranks)), shared_(std::move(shared)) {}
  PythonCommunicator(const PythonCommunicator&) = delete;
  PythonCommunicator& operator=(const PythonCommunicator&) = delete;
  ~PythonCommunicator() { close(); }

  static std::unique_ptr<PythonCommunicator> join(std::optional<std::uint32_t> rank, std::optional<std::uint32_t> world,
                                                  std::optional<std::string> rendezvous, const std::string& transport,
                                                  double timeout, const std::string& algorithm,
                                                  const Topology* topology) {
    const auto environment = engine::rendezvous::process_environment();
    const auto launch = value_of(engine::launch::detect_launch(environment, {rank, world, std::move(rendezvous)}));
    engine::launch::SharedSecret secret;
    const bool is_given = environment.contains("ESPALIER_SECRET") || environment.contains("ESPALIER_SECRET_FILE");
    if (!is_given && launch.world == 1) {
      secret.text = value_of(engine::rendezvous::random_secret());  // Nobody else is to know it.
    } else {
      secret = value_of(engine::launch::secret_of(launch, environment));
    }
    JobOptions options;
    options.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(timeout * 1000));
    options.rendezvous = engine::launch::join_options(launch, secret.text, options.timeout);
    options.transport = value_of(parse_transport(transport));
    if (topology != nullptr && topology->rank_count() != launch.world) {
      throw ErrorRaised({ErrorCode::invalid_input,
                         "the job has " + std::to_string(launch.world) + " ranks, the topology has " +
                             std::to_string(topology->rank_count()),
                         "start as many processes as the topology has ranks"});
    }
    if (topology != nullptr) engine::set_rails(options.verbs, *topology);
    options.agreed = {{"topology", topology == nullptr ? "fully connected" : topology->name()},
                      {"algorithm", algorithm},
                      {"transport", transport}};
    const bool shares_memory = launch.is_one_machine && takes_shared_memory(options.transport);
    ScheduleSource source = topology == nullptr ? fully_connected(launch.world, algorithm, shares_memory)
                                                : advised(*topology, algorithm, shares_memory);
    std::shared_ptr<Communicator> ranks;
    std::string notice;
    options.rendezvous.on_notice = [&notice](const std::string& text) { notice = text; };
    {
      const py::gil_scoped_release release;
      auto joined = Communicator::join(std::move(options), std::move(source));
      if (launch.rank == 0 && !secret.path.empty()) std::remove(secret.path.c_str());
      ranks = value_of(std::move(joined));
      if (topology != nullptr && algorithm == "auto" && !shares_memory) {
        ranks->plan_counts(forecast::plans_for_counts(*topology));
      }
    }
    if (!notice.empty() && PyErr_WarnEx(PyExc_RuntimeWarning, notice.c_str(), 2) != 0) throw py::error_already_set();
    return std::make_unique<PythonCommunicator>(std::move(ranks), std::make_shared<SharedJob>(shares_memory));
  }

  /// Leaves; calls that were started end before.
  void close() {
    {
      const py::gil_scoped_release release;
      for (const auto& [memory, array] : registered_) {
        const std::lock_guard lock(shared_->mutex);
        if (ranks_ != nullptr) static_cast<void>(ranks_->deregister_buffer(memory));
      }
      ranks_.reset();
    }
    started_.clear();
    registered_.clear();
  }

  Communicator& ranks() const {
    if (ranks_ == nullptr) {
      throw ErrorRaised({ErrorCode::invalid_input, "this communicator was closed", "make another"});
    }
    return *ranks_;
  }

  void run(const py::object& self, const CallArrays& call) {
    const auto counts = call.count_arrays(ranks());
    CallArguments arguments = call.arguments(ranks(), counts.get());
    keep_if_noting(self, call.send, call.receive, call.shares);
    if (shared_->is_noting && counts) shared_->noted_counts.push_back(counts);
    finish([&](Communicator& ranks) { return ranks.run(arguments); });
  }

  std::shared_ptr<StartedCall> start(const CallArrays& call) {
    std::erase_if(started_, [](const auto& earlier) { return earlier->handle.test(); });
    const auto counts = call.count_arrays(ranks());
    CallArguments arguments = call.arguments(ranks(), counts.get());
    auto started = std::make_shared<StartedCall>(
        StartedCall{value_of(ranks().start(arguments)), call.send, call.receive, call.shares, counts});
    started_.push_back(started);
    return started;
  }

  void send(const py::object& self, const py::array& data, std::uint32_t peer) {
    keep_if_noting(self, data, py::none());
    const auto type = checked_type(data);
    finish([&, count = static_cast<std::size_t>(data.size()), bytes = data.data()](Communicator& ranks) {
      return ranks.send(bytes, count, type, peer);
    });
  }

  void receive(const py::object& self, py::array data, std::uint32_t peer) {
    keep_if_noting(self, data, py::none());
    const auto type = checked_type(data);
    finish([&, count = static_cast<std::size_t>(data.size()), bytes = data.mutable_data()](Communicator& ranks) {
      return ranks.receive(bytes, count, type, peer);
    });
  }

  py::array exchange_counts(const py::array_t<std::int64_t, py::array::c_style>& sent) {
    py::array_t<std::int64_t> received(static_cast<py::ssize_t>(ranks().size()));
    const std::span to(sent.data(), static_cast<std::size_t>(sent.size()));
    const std::span from(received.mutable_data(), ranks().size());
    finish([&](Communicator& ranks) { return ranks.exchange_counts(to, from); });
    return received;
  }

  void barrier() {
    finish([](Communicator& ranks) { return ranks.barrier(); });
  }

  void group_begin() {
    ranks().group_begin();
    shared_->is_noting = true;
  }

  void group_end() {
    shared_->is_noting = false;
    const std::vector<py::object> kept = std::exchange(shared_->noted, {});
    const auto kept_counts = std::exchange(shared_->noted_counts, {});
    finish([](Communicator& ranks) { return ranks.group_end(); });
  }

  std::unique_ptr<PythonCommunicator> split(const std::vector<std::uint32_t>& members, const std::string& name,
                                            const std::string& algorithm) {
    ScheduleSource source = fully_connected(members.size(), algorithm, shared_->shares_memory);
    std::shared_ptr<Communicator> part;
    finish([&](Communicator& ranks) -> Result<void> {
      auto made = ranks.split(members, name, std::move(source));
      if (!made) return tl::unexpected(made.error());
      part = std::move(*made);
      return {};
    });
    return std::make_unique<PythonCommunicator>(std::move(part), shared_);
  }

  /// Bytes that the peers of this machine reach; they are given back when no array shows them any more.
  py::array allocate(std::size_t bytes) {
    struct Memory {
      std::shared_ptr<Communicator> ranks;
      std::shared_ptr<SharedJob> shared;
      void* data;
    };
    auto memory = std::make_unique<Memory>(Memory{ranks_, shared_, nullptr});
    finish([&](Communicator& ranks) -> Result<void> {
      const auto data = ranks.allocate(bytes);
      if (!data) return tl::unexpected(data.error());
      memory->data = *data;
      return {};
    });
    void* data = memory->data;
    const py::capsule owner(memory.release(), [](void* held) {
      const std::unique_ptr<Memory> last(static_cast<Memory*>(held));
      const py::gil_scoped_release release;
      {
        const std::lock_guard lock(last->shared->mutex);
        last->ranks->free(last->data);
      }
      last->ranks.reset();
    });
    return py::array(py::dtype::of<std::uint8_t>(), {static_cast<py::ssize_t>(bytes)}, {1}, data, owner);
  }

  void register_buffer(const py::array& data) {
    void* const memory = const_cast<void*>(data.data());  // Read-only arrays may be sent from.
    finish([&, bytes = static_cast<std::size_t>(data.nbytes())](Communicator& ranks) {
      return ranks.register_buffer(memory, bytes);
    });
    registered_[memory] = data;
  }

  void deregister_buffer(const py::array& data) {
    void* const memory = const_cast<void*>(data.data());
    finish([&](Communicator& ranks) { return ranks.deregister_buffer(memory); });
    registered_.erase(memory);
  }

  void abort(const std::string& reason) { ranks().abort(reason); }

  void wait(StartedCall& call) {
    finish_with([&](Communicator&) { return call.handle.wait(); });
  }

 private:
  void keep_if_noting(const py::object& self, const py::object& send, const py::object& receive,
                      const py::object& shares = py::none()) {
    if (!shared_->is_noting) return;
    for (const py::object& kept : {self, send, receive, shares}) shared_->noted.push_back(kept);
  }

  template <class Call>
  void finish(Call call) {
    finish_with([&](Communicator& ranks) {
      const std::lock_guard lock(shared_->mutex);
      return call(ranks);
    });
  }

  /// Without the GIL; what failed is raised, an interrupt before it.
  template <class Call>
  void finish_with(Call call) {
    ranks();
    const std::shared_ptr<Communicator> ranks = ranks_;  // Another thread may close it meanwhile.
    Result<void> result;
    {
      const py::gil_scoped_release release;
      result = call(*ranks);
    }
    if (result) return;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    ErrorRaised raised(result.error());
    if (const auto failure = ranks->control().failure()) raised.rank = failure->rank;
    throw raised;
  }

  std::shared_ptr<Communicator> ranks_;
  std::shared_ptr<SharedJob> shared_;
  std::vector<std::shared_ptr<StartedCall>> started_;
  std::map<void*, py::array> registered_;  ///< Kept until they are deregistered.
};

}  // namespace

void bind_communicator(py::module_& module) {
  py::class_<StartedCall, std::shared_ptr<StartedCall>>(module, "StartedCall").def("test", [](const StartedCall& call) {
    return call.handle.test();
  });
  py::class_<PythonCommunicator>(module, "Communicator")
      .def(py::init(&PythonCommunicator::join), py::arg("rank"), py::arg("world"), py::arg("rendezvous"),
           py::arg("transport"), py::arg("timeout"), py::arg("algorithm"), py::arg("topology"))
      .def_property_readonly("rank", [](const PythonCommunicator& self) { return self.ranks().rank(); })
      .def_property_readonly("size", [](const PythonCommunicator& self) { return self.ranks().size(); })
      .def_property_readonly("transports",
                             [](const PythonCommunicator& self) {
                               std::vector<std::string> names;
                               for (const PeerTransport& peer : self.ranks().transports())
                                 names.push_back(peer.transport);
                               return names;
                             })
      .def(
          "run",
          [](const py::object& self, const std::string& kind, const py::object& send, const py::object& receive,
             const std::string& operation, std::uint32_t root, const py::object& shares, const py::object& counts) {
            self.cast<PythonCommunicator&>().run(self, {kind, send, receive, operation, root, shares, counts});
          },
          py::arg("kind"), py::arg("send"), py::arg("receive"), py::arg("operation"), py::arg("root"),
          py::arg("shares"), py::arg("counts") = py::none())
      .def(
          "start",
          [](PythonCommunicator& self, const std::string& kind, const py::object& send, const py::object& receive,
             const std::string& operation, std::uint32_t root, const py::object& shares, const py::object& counts) {
            return self.start({kind, send, receive, operation, root, shares, counts});
          },
          py::arg("kind"), py::arg("send"), py::arg("receive"), py::arg("operation"), py::arg("root"),
          py::arg("shares"), py::arg("counts") = py::none())
      .def("wait", &PythonCommunicator::wait)
      .def("send", [](const py::object& self, const py::array& data,
                      std::uint32_t peer) { self.cast<PythonCommunicator&>().send(self, data, peer); })
      .def("receive", [](const py::object& self, const py::array& data,
                         std::uint32_t peer) { self.cast<PythonCommunicator&>().receive(self, data, peer); })
      .def("exchange_counts", &PythonCommunicator::exchange_counts)
      .def("barrier", &PythonCommunicator::barrier)
      .def("group_begin", &PythonCommunicator::group_begin)
      .def("group_end", &PythonCommunicator::group_end)
      .def("split", &PythonCommunicator::split)
      .def("allocate", &PythonCommunicator::allocate)
      .def("register_buffer", &PythonCommunicator::register_buffer)
      .def("deregister_buffer", &PythonCommunicator::deregister_buffer)
      .def("abort", &PythonCommunicator::abort)
      .def("close", &PythonCommunicator::close);
}

}  // namespace espalier::python
