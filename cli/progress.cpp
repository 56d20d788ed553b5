#include "cli/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace espalier::cli {

Progress::Progress(const Console& console, std::string what, std::size_t total)
    : enabled_(console.draws_progress()),
      what_(std::move(what)),
      total_(std::max<std::size_t>(total, 1)),
      started_(std::chrono::steady_clock::now()) {}

Progress::~Progress() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
}

void Progress::step(const std::string& detail) {
  constexpr std::size_t bar_width = 24;
  constexpr auto patience = std::chrono::milliseconds(300);  // Short work needs no bar.
  const std::size_t begun = done_++;
  if (!enabled_ || std::chrono::steady_clock::now() - started_ < patience) return;
  const std::size_t filled = std::min(bar_width, begun * bar_width / total_);
  fmt::print(stderr, "\r\x1b[K{} [{}{}] {}/{} {}", what_, std::string(filled, '#'),
             std::string(bar_width - filled, '.'), begun, total_, detail.substr(0, 40));
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace espalier::cli
