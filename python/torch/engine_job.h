#pragma once

// Tested by: python/tests/torch_backend.py

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "python/bind/engine_api.h"

namespace espalier::python {

/// What the engine says in the words of torch.distributed: its barrier is an all_reduce of a byte, and its command has
/// options that are arguments here.
inline std::string in_torch_words(std::string text) {
  const auto replace = [&text](const std::string& before, const std::string& after) {
    for (std::size_t at = text.find(before); at != std::string::npos; at = text.find(before, at + after.size())) {
      text.replace(at, before.size(), after);
    }
  };
  replace("all_reduce of 1 uint8, max", "barrier");
  replace("raise --timeout if it may be that slow", "init_process_group(timeout=) says how long to wait");
  return text;
}

/// Throws std::runtime_error, which PyTorch makes a RuntimeError of, where a call of the engine went wrong.
inline void expect(Outcome outcome) {
  if (outcome == nullptr) return;
  const std::string text = in_torch_words(outcome);
  // As whoever knows other backends looks for it.
  const bool is_late = text.find("nothing moved for") != std::string::npos;
  throw std::runtime_error(is_late ? "the timeout passed in " + text : text);
}

struct EndsItself {
  void operator()(Endable* what) const { what->end(); }
};
template <class T>
using Owned = std::unique_ptr<T, EndsItself>;

/// One side of an all_to_all with counts: bytes anywhere in memory, one run of them for each rank.
class PeerBytes {
 public:
  explicit PeerBytes(std::size_t ranks) : counts_(ranks), places_(ranks) {}
  void set(std::size_t rank, const void* data, std::size_t bytes) {
    counts_[rank] = static_cast<std::int64_t>(bytes);
    places_[rank] = bytes == 0 ? 0 : reinterpret_cast<std::int64_t>(data);
  }
  /// Makes the places displacements from the first of them, which it gives; null where there are no bytes.
  void* measure() {
    std::int64_t first = 0;
    for (const std::int64_t place : places_) {
      if (place != 0 && (first == 0 || place < first)) first = place;
    }
    for (std::int64_t& place : places_) place = place == 0 ? 0 : place - first;
    return reinterpret_cast<void*>(first);
  }
  [[nodiscard]] const std::int64_t* counts() const { return counts_.data(); }
  [[nodiscard]] const std::int64_t* displacements() const { return places_.data(); }

 private:
  std::vector<std::int64_t> counts_;
  std::vector<std::int64_t> places_;
};

/// Sends and receives so many bytes of each rank, by direct messages. Throws std::runtime_error where it fails.
inline void exchange_bytes(EngineJob& ranks, PeerBytes& sent, PeerBytes& received) {
  EngineCall call;
  call.collective = EngineCollective::all_to_all;
  call.send = sent.measure();
  call.receive = received.measure();
  call.send_counts = sent.counts();
  call.send_displacements = sent.displacements();
  call.receive_counts = received.counts();
  call.receive_displacements = received.displacements();
  expect(ranks.run(call));
}

}  // namespace espalier::python
