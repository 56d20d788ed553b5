#include "cli/progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/printable.h"

namespace espalier::cli {

Progress::Progress(const Console& console, std::string what, std::size_t total)
    : enabled_(console.draws_progress()),
      what_(std::move(what)),
      total_(std::max<std::size_t>(total, 1)),
      started_(std::chrono::steady_clock::now()) {}

Progress::~Progress() {
  if (drawn_) Console::write_error("\r\x1b[K");
}

/// ", 3 min left", as if what is left took as long as what is done.
std::string Progress::time_left(std::size_t done) const {
  const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  constexpr double patience = 3;  // Seconds; before, it would be a guess.
  if (done == 0 || passed < patience) return {};
  const double left = passed / static_cast<double>(done) * static_cast<double>(total_ - std::min(done, total_));
  constexpr double minute = 60, hour = 3600;
  if (left < 2 * minute) return fmt::format(", {:.0f} s left", left);
  return left < 2 * hour ? fmt::format(", {:.0f} min left", left / minute)
                         : fmt::format(", {:.0f} h left", left / hour);
}

void Progress::step(const std::string& detail) {
  constexpr std::size_t bar_width = 24;
  constexpr auto patience = std::chrono::milliseconds(300);  // Short work needs no bar.
  const std::size_t begun = done_++;
  if (!enabled_ || std::chrono::steady_clock::now() - started_ < patience) return;
  const std::size_t filled = std::min(bar_width, begun * bar_width / total_);
  Console::write_error(fmt::format("\r\x1b[K{} [{}{}] {}/{}{} {}", what_, std::string(filled, '#'),
                                   std::string(bar_width - filled, '.'), begun, total_, time_left(begun),
                                   printable_line(detail.substr(0, 40))));
  drawn_ = true;
}

}  // namespace espalier::cli
