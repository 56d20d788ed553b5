#include "engine/cuda/device/gpu_graph.h"

#include "engine/cuda/device/launch_shape.h"

namespace espalier::engine::cuda {
namespace {

constexpr int this_thread_alone = 1;  // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: other threads may go on meanwhile.

}  // namespace

Result<std::unique_ptr<GpuGraph>> GpuGraph::capture(GpuProgram& program) {
  std::unique_ptr<GpuGraph> graph(new GpuGraph(program));
  if (auto done = graph->set_up(); !done) return tl::unexpected(done.error());
  return graph;
}

GpuGraph::~GpuGraph() {
  const DriverApi& api = gpus_.front()->driver().api();
  if (executable_ != nullptr) api.destroy_executable(executable_);
  if (graph_ != nullptr) api.destroy_graph(graph_);
  for (const DriverHandle event : events_) api.destroy_event(event);
  for (const DriverHandle stream : streams_) api.destroy_stream(stream);
}

const Driver& GpuGraph::use(std::size_t gpu) const {
  gpus_[gpu]->make_current();
  return gpus_[gpu]->driver();
}

Result<void> GpuGraph::set_up() {
  for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
    const Driver& driver = use(gpu);
    DriverHandle stream = nullptr;
    if (auto done = driver.check(driver.api().make_stream(&stream, non_blocking_stream), "make a stream"); !done) {
      return done;
    }
    streams_.push_back(stream);
    DriverHandle event = nullptr;
    if (auto done = driver.check(driver.api().make_event(&event, event_without_timing), "make an event"); !done) {
      return done;
    }
    events_.push_back(event);
  }
  const Driver& driver = use(0);
  auto done = driver.check(driver.api().begin_capture(streams_.front(), this_thread_alone), "begin a capture");
  if (!done) return done;
  done = record();
  use(0);
  // Also after a failure, as the stream stays in capture otherwise.
  const auto ended = driver.check(driver.api().end_capture(streams_.front(), &graph_), "end a capture");
  if (!done) return done;
  if (!ended) return ended;
  return driver.check(driver.api().make_executable(&executable_, graph_, 0), "make a graph ready");
}

/// All streams begin behind the first one, which ends behind all.
Result<void> GpuGraph::record() {
  const Driver& first = use(0);
  auto done = first.check(first.api().record_event(events_.front(), streams_.front()), "record an event");
  for (std::size_t gpu = 1; done && gpu < gpus_.size(); ++gpu) {
    const Driver& driver = use(gpu);
    done = driver.check(driver.api().stream_wait(streams_[gpu], events_.front(), 0), "let a stream wait");
  }
  if (done) done = program_.enqueue(streams_);
  for (std::size_t gpu = 1; done && gpu < gpus_.size(); ++gpu) {
    const Driver& driver = use(gpu);
    done = driver.check(driver.api().record_event(events_[gpu], streams_[gpu]), "record an event");
    use(0);
    if (done) done = first.check(first.api().stream_wait(streams_.front(), events_[gpu], 0), "let a stream wait");
  }
  return done;
}

Result<void> GpuGraph::launch(DriverHandle stream) {
  if (auto well = program_.check(); !well) return well;
  const Driver& driver = use(0);
  return driver.check(driver.api().launch_graph(executable_, stream), "launch a graph");
}

}  // namespace espalier::engine::cuda
