#pragma once

// Tested by: python/tests/behaviour.py

#include <cstddef>
#include <cstdint>

// The engine for extension modules that are compiled where they are used (espalier.torch, against the PyTorch that is
// there). No type of the standard library crosses, and nothing throws: both sides may have been compiled by different
// compilers and with different C++ libraries. The header stands alone.

namespace espalier::python {

/// Null where the call went well, else what went wrong: text that is good until the thread's next call.
using Outcome = const char*;

// As CollectiveKind, ElementType and ReduceOperation, in their order.
enum class EngineCollective : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  reduce,
  all_to_all,
  gather,
  scatter
};
enum class EngineElement : std::uint8_t {
  int8,
  uint8,
  int32,
  uint32,
  int64,
  uint64,
  float16,
  bfloat16,
  float32,
  float64
};
enum class EngineOperation : std::uint8_t { sum, prod, min, max, avg };

/// As CallArguments.
struct EngineCall {
  EngineCollective collective = EngineCollective::all_reduce;
  const void* send = nullptr;
  void* receive = nullptr;
  std::size_t count = 0;
  EngineElement element = EngineElement::uint8;
  EngineOperation operation = EngineOperation::sum;
  std::uint32_t root = 0;
  // Of an all_to_all with counts per peer, where each of the four has a number for each rank; else null.
  const std::int64_t* send_counts = nullptr;
  const std::int64_t* send_displacements = nullptr;
  const std::int64_t* receive_counts = nullptr;
  const std::int64_t* receive_displacements = nullptr;
};

/// What `end` deletes.
class Endable {
 public:
  Endable() = default;
  Endable(const Endable&) = delete;
  Endable& operator=(const Endable&) = delete;
  virtual void end() = 0;

 protected:
  virtual ~Endable() = default;
};

/// A rank of a job: Communicator, which says what its calls do.
class EngineJob : public Endable {
 public:
  [[nodiscard]] virtual std::uint32_t rank() const = 0;
  [[nodiscard]] virtual std::uint32_t size() const = 0;
  /// "shm", "tcp" or "verbs".
  [[nodiscard]] virtual const char* transport(std::uint32_t peer) const = 0;
  virtual Outcome run(const EngineCall& call) = 0;
  virtual Outcome send(const void* data, std::size_t bytes, std::uint32_t peer) = 0;
  virtual Outcome receive(void* data, std::size_t bytes, std::uint32_t peer) = 0;
  virtual Outcome barrier() = 0;
  virtual void group_begin() = 0;
  virtual Outcome group_end() = 0;
  virtual void abort(const char* reason) = 0;
  /// Of the job's GPU.
  virtual Outcome allocate(std::size_t bytes, void** data) = 0;
  virtual void free(void* data) = 0;
  virtual Outcome register_buffer(void* data, std::size_t bytes) = 0;
  virtual Outcome deregister_buffer(void* data) = 0;
};

/// A GPU that the engine can work on.
class EngineGpu : public Endable {};

/// Where rank 0 of a job listens.
class EnginePlace : public Endable {
 public:
  /// What the others join by: address and a fresh secret.
  [[nodiscard]] virtual const char* text() const = 0;
};

/// A plan file and the message sizes that it is for, in bytes; `most` below zero: all that are as large.
struct EnginePlan {
  const char* path = "";
  std::int64_t least = 0;
  std::int64_t most = -1;
};

/// What the environment says (docs/torch.md), alike on all ranks.
struct EngineSettings {
  const char* transport = "auto";
  const char* algorithm = "auto";
  const char* topology = "";  ///< A file; empty: all ranks connected alike.
  const EnginePlan* plans = nullptr;
  std::size_t plan_count = 0;
  const char* device_tensors = "auto";
};

/// Which job a rank joins, and how.
struct EngineJoin {
  EngineSettings settings;
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  std::int64_t timeout_ms = 0;
  bool is_whole_job = false;         ///< The topology and the plans have to be for as many ranks.
  const char* place = "";            ///< The text of rank 0's.
  EnginePlace* own_place = nullptr;  ///< Rank 0's, taken over.
  EngineGpu* gpu = nullptr;          ///< Which the job is to work on, taken over; null: the host.
  void (*warn)(const char* text) = nullptr;
};

class Engine {
 public:
  /// The same on ranks that reach each other by loopback, and only there.
  virtual const char* machine() = 0;
  virtual Outcome listen(bool is_one_machine, EnginePlace** place) = 0;
  /// Collective.
  virtual Outcome join(const EngineJoin& terms, EngineJob** job) = 0;
  virtual Outcome open_gpu(int index, EngineGpu** gpu) = 0;

 protected:
  ~Engine() = default;
};

/// The name of the capsule that `_espalier.engine` is.
inline constexpr const char* engine_capsule = "espalier.engine";

}  // namespace espalier::python
