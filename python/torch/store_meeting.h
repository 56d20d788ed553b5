#pragma once

// Tested by: python/tests/torch_backend.py

#include <atomic>
#include <string>

#include "python/torch/c10d_versions.h"
#include "python/torch/engine_job.h"

namespace espalier::python {

/// Ranks that find each other through a c10d store: rank 0 listens on a free port and leaves address and a fresh secret
/// in the store, under `name`. Whoever can read the store can join, as with gloo.
///
/// A store may outlive groups, and later ones have the names of earlier ones. So each rank asks under a number that
/// nobody had before, is answered under that number, and leaves nothing of either behind.
struct Meeting {
  Engine& engine;
  c10::intrusive_ptr<c10d::Store> store;
  std::string name;                            ///< A prefix of keys that no other meeting under way has.
  const std::atomic<bool>* is_over = nullptr;  ///< Ends the wait for the store early.

  struct Joined {
    Owned<EngineJob> job;
    std::string session;  ///< The same on all ranks, and never again.
  };
  /// Joins; collective. The place of `terms` is filled in here, and its GPU taken over. Throws std::runtime_error where
  /// it fails, also when not all came within the terms' timeout.
  [[nodiscard]] Joined join(EngineJoin terms, Owned<EngineGpu> gpu = nullptr) const;

 private:
  struct Found {
    std::string session;
    std::string place;
    Owned<EnginePlace> own;  ///< Rank 0's.
  };
  [[nodiscard]] Found invite(const EngineJoin& terms) const;
  [[nodiscard]] Found ask(const EngineJoin& terms) const;
  /// Waits without holding the store, which other threads of this process may need meanwhile.
  [[nodiscard]] std::string await(const std::string& key, const EngineJoin& terms) const;
  void leave(const std::string& key, const std::string& text) const;
};

}  // namespace espalier::python
