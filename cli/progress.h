#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "cli/console.h"

namespace espalier::cli {

/// A bar on standard error for work of known length; draws nothing where Console::draws_progress says so.
class Progress {
 public:
  Progress(const Console& console, std::string what, std::size_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// One more step begins, described by a few words.
  void step(const std::string& detail);

 private:
  [[nodiscard]] std::string time_left(std::size_t done) const;

  bool enabled_;
  std::string what_;
  std::size_t total_;
  std::size_t done_ = 0;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point started_;
};

}  // namespace espalier::cli
