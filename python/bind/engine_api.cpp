#include "python/bind/engine_api.h"

#include <array>
#include <chrono>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "base/element.h"
#include "engine/communicator/communicator.h"
#include "engine/cuda/device/cuda_device.h"
#include "engine/cuda/kernels/embedded_kernels.h"
#include "engine/rendezvous/secret.h"
#include "engine/rendezvous/wire/listener.h"
#include "forecast/sources/count_plans.h"
#include "python/bind/bindings.h"
#include "python/bind/own_address.h"
#include "python/bind/schedule_choice.h"

namespace espalier::python {
namespace {

static_assert(static_cast<int>(EngineCollective::scatter) == static_cast<int>(CollectiveKind::scatter));
static_assert(static_cast<int>(EngineElement::float64) == static_cast<int>(ElementType::float64));
static_assert(static_cast<int>(EngineOperation::avg) == static_cast<int>(ReduceOperation::avg));

Outcome outcome_of(const Error& error) {
  thread_local std::string text;
  text = error.help.empty() ? error.message : error.message + " (" + error.help + ")";
  return text.c_str();
}

Outcome outcome_of(const Result<void>& result) { return result ? nullptr : outcome_of(result.error()); }

class GpuOfModule final : public EngineGpu {
 public:
  explicit GpuOfModule(std::unique_ptr<engine::Device> device) : device_(std::move(device)) {}
  void end() override { delete this; }
  std::unique_ptr<engine::Device> take() { return std::move(device_); }

 private:
  std::unique_ptr<engine::Device> device_;
};

class PlaceOfModule final : public EnginePlace {
 public:
  PlaceOfModule(engine::rendezvous::Listener listener, const std::string& host, const std::string& secret)
      : text_(host + " " + std::to_string(listener.port) + " " + secret), listener_(std::move(listener)) {}
  void end() override { delete this; }
  [[nodiscard]] const char* text() const override { return text_.c_str(); }
  engine::rendezvous::Listener take() { return std::move(listener_); }

 private:
  std::string text_;
  engine::rendezvous::Listener listener_;
};

class JobOfModule final : public EngineJob {
 public:
  explicit JobOfModule(std::unique_ptr<Communicator> ranks) : ranks_(std::move(ranks)) {}
  void end() override { delete this; }
  [[nodiscard]] std::uint32_t rank() const override { return ranks_->rank(); }
  [[nodiscard]] std::uint32_t size() const override { return ranks_->size(); }
  [[nodiscard]] const char* transport(std::uint32_t peer) const override {
    return ranks_->transports().at(peer).transport.c_str();
  }
  Outcome run(const EngineCall& call) override {
    CallArguments arguments{static_cast<CollectiveKind>(call.collective),
                            call.send,
                            call.receive,
                            call.count,
                            static_cast<ElementType>(call.element),
                            static_cast<ReduceOperation>(call.operation),
                            call.root};
    if (call.send_counts != nullptr) {
      const std::size_t ranks = size();
      arguments.send_blocks = {{call.send_counts, ranks}, {call.send_displacements, ranks}};
      arguments.receive_blocks = {{call.receive_counts, ranks}, {call.receive_displacements, ranks}};
    }
    return outcome_of(ranks_->run(arguments));
  }
  Outcome send(const void* data, std::size_t bytes, std::uint32_t peer) override {
    return outcome_of(ranks_->send(data, bytes, ElementType::uint8, peer));
  }
  Outcome receive(void* data, std::size_t bytes, std::uint32_t peer) override {
    return outcome_of(ranks_->receive(data, bytes, ElementType::uint8, peer));
  }
  Outcome barrier() override { return outcome_of(ranks_->barrier()); }
  void group_begin() override { ranks_->group_begin(); }
  Outcome group_end() override { return outcome_of(ranks_->group_end()); }
  void abort(const char* reason) override { ranks_->abort(reason); }
  Outcome allocate(std::size_t bytes, void** data) override {
    const auto made = ranks_->allocate(bytes, engine::MemorySpace::device);
    if (!made) return outcome_of(made.error());
    *data = *made;
    return nullptr;
  }
  void free(void* data) override { ranks_->free(data); }
  Outcome register_buffer(void* data, std::size_t bytes) override {
    return outcome_of(ranks_->register_buffer(data, bytes));
  }
  Outcome deregister_buffer(void* data) override { return outcome_of(ranks_->deregister_buffer(data)); }

 private:
  std::unique_ptr<Communicator> ranks_;
};

BackendSettings settings_of(const EngineSettings& given) {
  BackendSettings settings{given.transport, given.algorithm, given.topology, {}, given.device_tensors};
  for (std::size_t i = 0; i < given.plan_count; ++i) {
    const EnginePlan& plan = given.plans[i];
    settings.plans.push_back({plan.path, plan.least, plan.most < 0 ? std::nullopt : std::optional(plan.most)});
  }
  return settings;
}

Result<std::unique_ptr<Communicator>> join_job(const EngineJoin& terms, std::unique_ptr<engine::Device> device,
                                               engine::rendezvous::Listener listener) {
  const BackendSettings settings = settings_of(terms.settings);
  const auto transport = parse_transport(settings.transport);
  if (!transport) return tl::unexpected(transport.error());
  auto schedules = schedules_for(settings, terms.world, terms.is_whole_job);
  if (!schedules) return tl::unexpected(schedules.error());
  JobOptions options;
  options.transport = *transport;
  options.timeout = std::chrono::milliseconds(terms.timeout_ms);
  options.agreed = agreed_settings(settings);
  options.verbs = std::move(schedules->verbs);
  options.rendezvous.rank = terms.rank;
  options.rendezvous.world = terms.world;
  options.rendezvous.timeout = options.timeout;
  options.rendezvous.listener = std::move(listener);
  std::istringstream place(terms.place);
  place >> options.rendezvous.host >> options.rendezvous.port >> options.rendezvous.secret;
  if (terms.warn != nullptr) {
    options.rendezvous.on_notice = [warn = terms.warn](const std::string& text) { warn(text.c_str()); };
  }
  if (device) {
    options.make_device = [held = std::make_shared<std::unique_ptr<engine::Device>>(std::move(device))] {
      return std::move(*held);
    };
  }
  const bool shares_memory = options.rendezvous.host == loopback_address && takes_shared_memory(options.transport);
  auto joined = Communicator::join(std::move(options), schedules->source(shares_memory));
  if (joined && !shares_memory && schedules->balanced_on) {
    (*joined)->plan_counts(forecast::plans_for_counts(*std::move(schedules->balanced_on)));
  }
  return joined;
}

class EngineOfModule final : public Engine {
 public:
  const char* machine() override {
    thread_local std::string text;
    text = machine_id();
    return text.c_str();
  }

  Outcome listen(bool is_one_machine, EnginePlace** place) override {
    const std::string host = is_one_machine ? loopback_address : own_address();
    auto listener = engine::rendezvous::listen_on(host, 0);
    if (!listener) return outcome_of(listener.error());
    const auto secret = engine::rendezvous::random_secret();
    if (!secret) return outcome_of(secret.error());
    *place = new PlaceOfModule(*std::move(listener), host, *secret);
    return nullptr;
  }

  Outcome join(const EngineJoin& terms, EngineJob** job) override {
    auto* const gpu = static_cast<GpuOfModule*>(terms.gpu);
    auto* const place = static_cast<PlaceOfModule*>(terms.own_place);
    auto joined = join_job(terms, gpu == nullptr ? nullptr : gpu->take(),
                           place == nullptr ? engine::rendezvous::Listener{} : place->take());
    if (gpu != nullptr) gpu->end();
    if (place != nullptr) place->end();
    if (!joined) return outcome_of(joined.error());
    *job = new JobOfModule(*std::move(joined));
    return nullptr;
  }

  Outcome open_gpu(int index, EngineGpu** gpu) override {
    const auto image = engine::cuda::embedded_kernels();
    if (image.empty()) {
      return outcome_of(
          {ErrorCode::unsupported,
           "this package was built without CUDA kernels (" + std::string(engine::cuda::why_no_kernels()) + ")",
           "build it where nvcc is found (docs/gpu.md)"});
    }
    const auto driver = engine::cuda::Driver::load();
    if (!driver) return outcome_of(driver.error());
    auto opened = engine::cuda::CudaDevice::open(*driver, index, image);
    if (!opened) return outcome_of(opened.error());
    *gpu = new GpuOfModule(*std::move(opened));
    return nullptr;
  }
};

}  // namespace

void bind_engine(py::module_& module) {
  static EngineOfModule engine;
  module.attr("engine") = py::capsule(static_cast<Engine*>(&engine), engine_capsule);
}

}  // namespace espalier::python
