#include "cli/output/progress.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <system_error>

#include "base/printable.h"

namespace espalier::cli {
namespace {

/// "12 s", "3 min", "5 h".
std::string rough_time(double seconds) {
  constexpr double minute = 60, hour = 3600;
  if (seconds < 2 * minute) return fmt::format("{:.0f} s", seconds);
  return seconds < 2 * hour ? fmt::format("{:.0f} min", seconds / minute) : fmt::format("{:.0f} h", seconds / hour);
}

/// A thread that takes no signals: those are for the thread that works.
template <class Work>
std::thread start_quietly(const Work& work) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  try {
    thread = std::thread(work);
  } catch (const std::system_error&) {
    thread = {};  // No thread to be had: the work goes on unseen.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

Progress::Progress(const Console& console, std::string what, std::size_t total, Pace pace)
    : style_(console.progress_style()), what_(std::move(what)), total_(total) {
  if (style_ != ProgressStyle::none) shower_ = start_quietly([this, pace] { show_until_done(pace); });
}

Progress::~Progress() {
  {
    const std::scoped_lock lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  if (shower_.joinable()) shower_.join();
  if (is_shown_ && style_ == ProgressStyle::bar) std::fputs("\r\x1b[K", stderr);
}

void Progress::step(const std::string& detail) {
  const std::scoped_lock lock(mutex_);
  ++begun_;
  detail_ = detail;
}

void Progress::describe(const std::string& detail) {
  const std::scoped_lock lock(mutex_);
  detail_ = detail;
}

bool Progress::is_shown() {
  const std::scoped_lock lock(mutex_);
  return is_shown_;
}

void Progress::expect(std::size_t total) {
  const std::scoped_lock lock(mutex_);
  total_ = total;
}

void Progress::show_until_done(const Pace& pace) {
  const bool is_bar = style_ == ProgressStyle::bar;
  std::unique_lock lock(mutex_);
  for (auto next = started_ + (is_bar ? pace.first_bar : pace.line);
       !changed_.wait_until(lock, next, [&] { return is_over_; }); next += is_bar ? pace.next_bar : pace.line) {
    show();
    is_shown_ = true;
  }
}

/// ", 3 min left", as if what is left took as long as what is done; nothing while that would be a guess.
std::string Progress::time_left(double passed) const {
  constexpr double patience = 3;  // Seconds.
  const std::size_t done = begun_ > 0 ? begun_ - 1 : 0;
  if (done == 0 || done >= total_ || passed < patience) return {};
  return ", " + rough_time(passed / static_cast<double>(done) * static_cast<double>(total_ - done)) + " left";
}

/// "3/12": steps begun, of all that are known of.
std::string Progress::count_text() const {
  return total_ > 0 ? fmt::format(" {}/{}", std::min(begun_, total_), total_) : "";
}

/// Requires: the lock.
void Progress::show() const {
  constexpr std::size_t bar_width = 24, longest_detail = 60;
  const double passed = std::chrono::duration<double>(Clock::now() - started_).count();
  const std::string detail = (detail_.empty() ? "" : " ") + printable_line(detail_.substr(0, longest_detail));
  std::string text;
  if (style_ == ProgressStyle::lines) {
    text = fmt::format("{}{}{} ({} so far{})\n", what_, count_text(), detail, rough_time(passed), time_left(passed));
  } else if (total_ == 0) {
    text = fmt::format("\r\x1b[K{}{} ({})", what_, detail, rough_time(passed));
  } else {
    const std::size_t done = begun_ > 0 ? begun_ - 1 : 0;
    const std::size_t filled = std::min(bar_width, done * bar_width / total_);
    text = fmt::format("\r\x1b[K{} [{}{}]{}{}{}", what_, std::string(filled, '#'), std::string(bar_width - filled, '.'),
                       count_text(), time_left(passed), detail);
  }
  Console::write_error(text);
}

}  // namespace espalier::cli
