// The fake driver: streams, events, graphs.
#include "tests/support/fake_cuda/fake_driver.h"

using namespace espalier::test;  // NOLINT: what follows are the library's own names.
using espalier::engine::cuda::DeviceAddress;
using espalier::engine::cuda::DriverHandle;
using espalier::engine::cuda::DriverStatus;

extern "C" {

DriverStatus cuStreamCreate(DriverHandle* stream, unsigned) {
  ENTER(cuStreamCreate);
  *stream = new FakeStream();
  return status_success;
}

DriverStatus cuStreamDestroy_v2(DriverHandle stream) {
  const std::lock_guard lock(fake().mutex);
  delete static_cast<FakeStream*>(stream);
  return status_success;
}

DriverStatus cuStreamQuery(DriverHandle stream) {
  ENTER(cuStreamQuery);
  if (is_capturing(stream)) return stream_capture_unsupported;
  return advance(stream_of(stream)) ? status_success : status_not_ready;
}

DriverStatus cuStreamSynchronize(DriverHandle stream) {
  for (;;) {
    {
      ENTER(cuStreamSynchronize);
      if (is_capturing(stream)) return stream_capture_unsupported;
      if (advance(stream_of(stream))) return status_success;
    }
    std::this_thread::yield();
  }
}

DriverStatus cuStreamWaitValue32_v2(DriverHandle stream, DeviceAddress word, std::uint32_t value, unsigned) {
  ENTER(cuStreamWaitValue32_v2);
  give(stream_of(stream), [=] {
    const std::uint32_t seen = __atomic_load_n(reinterpret_cast<const std::uint32_t*>(word), __ATOMIC_ACQUIRE);
    return static_cast<std::int32_t>(seen - value) >= 0;
  });
  return status_success;
}

DriverStatus cuEventCreate(DriverHandle* event, unsigned) {
  ENTER(cuEventCreate);
  *event = new FakeEvent();
  return status_success;
}

DriverStatus cuEventDestroy_v2(DriverHandle event) {
  const std::lock_guard lock(fake().mutex);
  delete static_cast<FakeEvent*>(event);
  return status_success;
}

DriverStatus cuEventRecord(DriverHandle event, DriverHandle stream) {
  ENTER(cuEventRecord);
  auto* const recorded = static_cast<FakeEvent*>(event);
  recorded->stream = &stream_of(stream);
  recorded->graph = recorded->stream->captured_by;
  if (recorded->graph != nullptr) {
    recorded->captured = recorded->graph->tokens++;
    give(*recorded->stream, [at = recorded->captured](const std::vector<Token>& tokens) -> Work {
      return [token = tokens[at]] { return *token = true; };
    });
    return status_success;
  }
  recorded->token = std::make_shared<bool>(false);
  give(*recorded->stream, Work([token = recorded->token] { return *token = true; }));
  return status_success;
}

DriverStatus cuEventQuery(DriverHandle event) {
  ENTER(cuEventQuery);
  auto* const asked = static_cast<FakeEvent*>(event);
  if (asked->graph != nullptr) return stream_capture_unsupported;
  if (asked->token && !*asked->token) advance(*asked->stream);
  return !asked->token || *asked->token ? status_success : status_not_ready;
}

DriverStatus cuStreamWaitEvent(DriverHandle stream, DriverHandle event, unsigned) {
  ENTER(cuStreamWaitEvent);
  auto* const awaited = static_cast<FakeEvent*>(event);
  FakeStream& waiting = stream_of(stream);
  if (awaited->graph != nullptr) {
    FakeGraph& graph = *awaited->graph;
    if (waiting.captured_by == nullptr) graph.streams.push_back(&waiting);
    waiting.captured_by = &graph;
    give(waiting, [at = awaited->captured](const std::vector<Token>& tokens) -> Work {
      return [token = tokens[at]] { return *token; };
    });
    if (&waiting == graph.streams.front()) graph.is_joined[awaited->stream] = true;
    return status_success;
  }
  if (awaited->token) {
    give(waiting, Work([token = awaited->token, other = awaited->stream] {
           if (!*token) advance(*other);
           return *token;
         }));
  }
  return status_success;
}

DriverStatus cuStreamIsCapturing(DriverHandle stream, int* status) {
  ENTER(cuStreamIsCapturing);
  *status = is_capturing(stream) ? 1 : 0;
  return status_success;
}

DriverStatus cuThreadExchangeStreamCaptureMode(int* mode) {
  ENTER(cuThreadExchangeStreamCaptureMode);
  std::swap(capture_mode(), *mode);
  return status_success;
}

DriverStatus cuStreamBeginCapture_v2(DriverHandle stream, int) {
  ENTER(cuStreamBeginCapture_v2);
  if (is_capturing(stream) || stream == nullptr) return stream_capture_unsupported;
  auto* const graph = new FakeGraph();
  graph->streams.push_back(&stream_of(stream));
  stream_of(stream).captured_by = graph;
  ++captures();
  return status_success;
}

DriverStatus cuStreamEndCapture(DriverHandle stream, DriverHandle* captured) {
  ENTER(cuStreamEndCapture);
  FakeGraph* const graph = stream_of(stream).captured_by;
  if (graph == nullptr) return invalid_value;
  --captures();
  bool is_joined = true;
  for (FakeStream* const of : graph->streams) {
    of->captured_by = nullptr;
    is_joined = is_joined && (of == graph->streams.front() || graph->is_joined[of]);
  }
  *captured = is_joined ? graph : nullptr;
  return is_joined ? status_success : stream_capture_unjoined;
}

DriverStatus cuGraphInstantiateWithFlags(DriverHandle* executable, DriverHandle graph, unsigned long long) {
  ENTER(cuGraphInstantiateWithFlags);
  *executable = new FakeGraph(*static_cast<FakeGraph*>(graph));
  return status_success;
}

/// Each captured stream's work in its order, all of them side by side.
DriverStatus cuGraphLaunch(DriverHandle executable, DriverHandle stream) {
  ENTER(cuGraphLaunch);
  const auto& graph = *static_cast<FakeGraph*>(executable);
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < graph.tokens; ++i) tokens.push_back(std::make_shared<bool>(false));
  auto streams = std::make_shared<std::map<FakeStream*, FakeStream>>();
  for (const FakeGraph::Node& node : graph.nodes) (*streams)[node.stream].work.push_back(node.make(tokens));
  give(stream_of(stream), Work([streams] {
         bool is_done = true;
         for (auto& [captured, of] : *streams) is_done = advance(of) && is_done;
         return is_done;
       }));
  return status_success;
}

DriverStatus cuGraphExecDestroy(DriverHandle executable) {
  const std::lock_guard lock(fake().mutex);
  delete static_cast<FakeGraph*>(executable);
  return status_success;
}

DriverStatus cuGraphDestroy(DriverHandle graph) {
  const std::lock_guard lock(fake().mutex);
  delete static_cast<FakeGraph*>(graph);
  return status_success;
}

}  // extern "C"
