#pragma once

// Tested by: tests/unit/engine/launch/local_job_test.cpp

#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace espalier::engine::launch {

/// Cuts a stream into lines, passes them on, and keeps the last ones.
class LineTail {
 public:
  using Sink = std::function<void(const std::string& line)>;

  /// Keeps `kept` lines; a line longer than `longest` bytes is cut into several.
  LineTail(std::size_t kept, Sink sink, std::size_t longest = 4096);

  void append(std::string_view bytes);
  /// Passes on what came without a newline at the end.
  void finish();
  [[nodiscard]] std::vector<std::string> lines() const { return {lines_.begin(), lines_.end()}; }

 private:
  void end_line();
  std::size_t kept_;
  Sink sink_;
  std::size_t longest_;
  std::string open_;
  std::deque<std::string> lines_;
};

}  // namespace espalier::engine::launch
