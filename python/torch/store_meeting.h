#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "engine/communicator/communicator.h"
#include "python/torch/c10d_versions.h"

namespace espalier::python {

/// An error of the engine as the exception that PyTorch makes a RuntimeError of.
[[noreturn]] void raise_runtime_error(const Error& error);

/// Ranks that find each other through a c10d store: rank 0 listens on a free port and leaves address and a fresh secret
/// in the store, under `name`. Whoever can read the store can join, as with gloo.
struct Meeting {
  c10::intrusive_ptr<c10d::Store> store;
  std::string name;  ///< A prefix of keys that no other meeting of this store has.
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  std::chrono::milliseconds patience{};        ///< Until all have come.
  const std::atomic<bool>* is_over = nullptr;  ///< Ends the wait for the store early.

  /// The schedules of a job; `shares_memory`: its ranks are of one machine, and reach each other's memory.
  using MakeSchedules = std::function<ScheduleSource(bool shares_memory)>;

  /// Joins; collective. `options.rendezvous` is filled in here. Throws std::runtime_error where it fails.
  [[nodiscard]] std::unique_ptr<Communicator> join(JobOptions options, const MakeSchedules& schedules) const;

 private:
  /// Waits without holding the store, which other threads of this process may need meanwhile.
  [[nodiscard]] std::string await(const std::string& key) const;
  void leave(const std::string& key, const std::string& text) const;
};

}  // namespace espalier::python
