#pragma once

// Tested by: tests/unit/engine/cuda/device/gpu_ranks_test.cpp

#include <string>

namespace espalier::engine {

/// A range on this thread's line of NVIDIA's tools (Nsight Systems), in the domain "espalier", until it ends. Where no
/// tool listens, or this build has no NVTX, it is nothing and its text is not made. Cost then: a load.
class NvtxRange {
 public:
  /// `make_text` gives what the tool shows.
  template <class MakeText>
  explicit NvtxRange(const MakeText& make_text) : is_shown_(is_listening()) {
    if (is_shown_) begin(make_text());
  }
  ~NvtxRange() {
    if (is_shown_) end();
  }
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;

  /// Whether a tool listens: asked once in a process.
  static bool is_listening();

 private:
  static void begin(const std::string& text);
  static void end();

  bool is_shown_;
};

}  // namespace espalier::engine
