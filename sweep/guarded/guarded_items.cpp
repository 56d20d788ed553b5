#include "sweep/guarded/guarded_items.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "base/parallel.h"
#include "base/send_signal.h"
#include "sweep/guarded/worker.h"

namespace espalier::sweep {
namespace {

// A line between processes: what it tells, the item, a space, and text without an end of line.
constexpr char begun = 'b', done = 'd', lost = 'l', refused = 'r';

struct Told {
  char what = 0;
  std::size_t item = 0;
  std::string_view text;
};

std::string line_of(char what, std::size_t item, std::string_view text) {
  return fmt::format("{}{} {}\n", what, item, text);
}

Result<void> for_each_line(std::string_view lines, const std::function<Result<void>(const Told&)>& take) {
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(line.size() + 1);
    const std::size_t space = line.find(' ');
    Told told{line.front(), 0, line.substr(space + 1)};
    std::from_chars(line.data() + 1, line.data() + space, told.item);
    if (auto taken = take(told); !taken) return taken;
  }
  return {};
}

/// Does all items on threads; the first error ends it. Whether there was none.
bool do_items(const std::vector<std::size_t>& items, unsigned threads, const DoItem& work,
              const std::function<Result<void>(const std::string&)>& write) {
  std::mutex mutex;  // of `is_good` and what is written
  bool is_good = true;
  run_parallel(items.size(), threads, [&](std::size_t i) {
    {
      const std::scoped_lock lock(mutex);
      if (is_good) is_good = write(line_of(begun, items[i], "")).has_value();
      if (!is_good) return;
    }
    const auto line = work(items[i]);
    const std::scoped_lock lock(mutex);
    if (!is_good) return;
    is_good = write(line ? line_of(done, items[i], *line) : line_of(refused, items[i], line.error().message)) && line;
  });
  return is_good;
}

/// Has items done by workers, and passes on their lines. Single-threaded, so that it may fork.
class Dispatcher {
 public:
  Dispatcher(unsigned threads, const DoItem& work, int lines) : threads_(threads), work_(work), lines_(lines) {}

  bool do_all(std::vector<std::size_t> items) {
    while (!items.empty() && !is_stopped_) {
      if (try_items(items)) return true;
      if (open_.empty()) return false;
      // What ended the worker is among what it had begun.
      for (const std::size_t item : std::exchange(open_, {})) {
        if (is_stopped_ || try_items({item})) continue;
        open_.clear();
        if (!is_stopped_) pass_on(line_of(lost, item, said_));
        closed_.insert(item);
      }
      std::erase_if(items, [&](std::size_t item) { return closed_.contains(item); });
    }
    return !is_stopped_;
  }

 private:
  bool try_items(const std::vector<std::size_t>& items) {
    WorkerEnd end = run_worker(
        [&](int lines) {
          return do_items(items, threads_, work_,
                          [lines](const std::string& line) { return write_whole(lines, line); });
        },
        [this](std::string_view lines) {
          return for_each_line(lines, [this](const Told& told) { return take(told); });
        });
    is_stopped_ = is_stopped_ || end.is_stopped;
    said_ = std::move(end.said);
    return end.is_done && !is_stopped_;
  }

  Result<void> take(const Told& told) {
    if (told.what == begun) return open_.insert(told.item), Result<void>();
    open_.erase(told.item);
    closed_.insert(told.item);
    is_stopped_ = is_stopped_ || told.what == refused;
    return pass_on(line_of(told.what, told.item, told.text));
  }

  Result<void> pass_on(const std::string& line) {
    auto written = write_whole(lines_, line);
    is_stopped_ = is_stopped_ || !written;
    return written;
  }

  unsigned threads_;
  const DoItem& work_;
  int lines_;
  std::set<std::size_t> open_, closed_;  ///< Begun and not done; done, lost or refused.
  std::string said_;
  bool is_stopped_ = false;
};

}  // namespace

GuardedItems::GuardedItems(std::vector<std::size_t> items, unsigned threads, DoItem work)
    : items_(std::move(items)), threads_(threads), work_(std::move(work)) {
  if (!may_use_workers()) return;
  const auto worker = start_worker([&](int lines) { return Dispatcher(threads_, work_, lines).do_all(items_); });
  if (!worker) return;  // They are done here, unguarded.
  supervisor_ = worker->process;
  lines_ = worker->lines;
}

GuardedItems::~GuardedItems() {
  if (lines_ >= 0) close(lines_);
  if (supervisor_ < 0) return;
  send_signal(supervisor_, SIGKILL);
  wait_for(supervisor_);
}

Result<void> GuardedItems::read(const OnLine& on_line, const OnLine& on_lost) {
  const auto take = [&](const Told& told) -> Result<void> {
    if (told.what == begun) return {};
    if (told.what == refused) return fail(ErrorCode::unavailable, std::string(told.text));
    return told.what == done ? on_line(told.item, told.text) : on_lost(told.item, told.text);
  };
  if (supervisor_ < 0) {
    Result<void> taken;
    do_items(items_, threads_, work_, [&](const std::string& line) {
      if (taken) taken = for_each_line(line, take);
      return taken;
    });
    return taken;
  }
  if (auto taken = read_lines_of(lines_, [&](std::string_view lines) { return for_each_line(lines, take); }); !taken)
    return taken;
  if (wait_for(std::exchange(supervisor_, -1))) return {};
  return fail(ErrorCode::unavailable, "the processes of the sweep ended before all rows were there",
              "--resume goes on with the rows that are in its file");
}

}  // namespace espalier::sweep
