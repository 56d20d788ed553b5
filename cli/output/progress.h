#pragma once

// Tested by: tests/unit/cli/output/progress_test.cpp

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>

#include "cli/output/console.h"

namespace espalier::cli {

/// How long work is shown on standard error: as a bar where it is a terminal, as a line now and then where it is a
/// file. A thread of its own shows it, so that a long step is seen, too. Safe to step from any thread.
class Progress {
 public:
  /// When what is shown: nothing of short work.
  struct Pace {
    std::chrono::milliseconds first_bar{300};
    std::chrono::milliseconds next_bar{200};
    std::chrono::milliseconds line{10'000};
  };

  /// Work of `total` steps; 0 while their number is not known.
  Progress(const Console& console, std::string what, std::size_t total, Pace pace);
  Progress(const Console& console, std::string what, std::size_t total)
      : Progress(console, std::move(what), total, Pace{}) {}
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// One more step begins, described by a few words.
  void step(const std::string& detail);
  /// The step that is under way, described anew.
  void describe(const std::string& detail);
  /// Whether anything has been shown.
  [[nodiscard]] bool is_shown();
  /// The number of steps, once it is known.
  void expect(std::size_t total);

 private:
  using Clock = std::chrono::steady_clock;

  void show_until_done(const Pace& pace);
  void show() const;
  [[nodiscard]] std::string count_text() const;
  [[nodiscard]] std::string time_left(double passed) const;

  const ProgressStyle style_;
  const std::string what_;
  const Clock::time_point started_ = Clock::now();

  std::mutex mutex_;  ///< Of all below.
  std::condition_variable changed_;
  std::size_t total_;
  std::size_t begun_ = 0;
  std::string detail_;
  bool is_over_ = false;
  bool is_shown_ = false;
  std::thread shower_;
};

}  // namespace espalier::cli
