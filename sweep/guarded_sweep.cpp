#include "sweep/guarded_sweep.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <utility>

#include "base/error_text.h"
#include "base/send_signal.h"
#include "sweep/row_text.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ESPALIER_ONE_PROCESS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ESPALIER_ONE_PROCESS 1
#endif
#endif
#ifndef ESPALIER_ONE_PROCESS
#define ESPALIER_ONE_PROCESS 0
#endif

namespace espalier::sweep {
namespace {

constexpr RowStyle piped{RowFormat::json_lines, true};

Result<void> write_whole(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail(ErrorCode::unavailable, "a row could not be handed over: " + error_text(errno));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Result<void> write_row(int file, const Row& row) { return write_whole(file, row_text(row, piped)); }

/// A process that writes rows into a pipe.
struct Child {
  pid_t process = -1;
  int rows = -1;
};

/// Runs `work` in a process of its own, which ends when this one does.
Result<Child> start_child(const std::function<bool(int rows)>& work) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return fail(ErrorCode::unavailable, "no pipe: " + error_text(errno));
  const pid_t parent = getpid();
  const pid_t process = fork();
  if (process < 0) {
    const std::string why = error_text(errno);
    for (const int end : ends) close(end);
    return fail(ErrorCode::unavailable, "no process for the sweep: " + why);
  }
  if (process > 0) {
    close(ends[1]);
    return Child{process, ends[0]};
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // It ended before it could have been heard of.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) std::signal(signal, SIG_DFL);
  close(ends[0]);
  const bool is_done = work(ends[1]);
  _exit(is_done ? 0 : 1);
}

/// Every row that comes out of a pipe, until its other end is closed.
Result<void> read_rows_of(int file, const OnRow& on_row) {
  std::string text;
  std::array<char, 65536> part{};
  for (;;) {
    const ssize_t size = read(file, part.data(), part.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return {};  // What is left of a line was cut short by its writer's end.
    text.append(part.data(), static_cast<std::size_t>(size));
    const std::size_t whole = text.rfind('\n');
    if (whole == std::string::npos) continue;
    auto read = read_rows(std::string_view(text).substr(0, whole + 1), piped.format, "a worker of the sweep");
    if (!read) return tl::unexpected(read.error());
    text.erase(0, whole + 1);
    for (Row& row : read->rows) {
      if (auto taken = on_row(std::move(row)); !taken) return taken;
    }
  }
}

/// Waits; whether it ended as it should.
bool wait_for(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// Runs units in workers and writes all rows into one pipe. Single-threaded, so that it may fork.
class Supervisor {
 public:
  Supervisor(const Spec& spec, unsigned threads, const RunUnits& run, int rows)
      : spec_(spec), threads_(threads), run_(run), rows_(rows) {}

  bool run_all(std::vector<Unit> units) {
    while (!units.empty()) {
      if (try_units(units)) return true;
      if (is_stopped_) return false;
      leave_out_done(units);
      find_culprit(units);
      leave_out_done(units);
    }
    return true;
  }

 private:
  /// Unit by unit, and in the one that ends its worker key by key, until a key does so alone.
  void find_culprit(const std::vector<Unit>& units) {
    for (const Unit& unit : units) {
      if (is_stopped_ || try_units({unit})) continue;
      std::vector<Unit> left = {unit};
      leave_out_done(left);
      if (left.empty()) continue;
      for (const Key& key : left.front().keys) {
        Unit alone = unit;
        alone.keys = {key};
        if (is_stopped_ || try_units({alone})) continue;
        take({key, unit.alike, std::nullopt, "internal error: " + said_, std::nullopt});
      }
      return;
    }
  }

  /// Whether a worker did them all.
  bool try_units(const std::vector<Unit>& units) {
    const int said = memfd_create("espalier-sweep", MFD_CLOEXEC);
    const auto child = start_child([&](int rows) {
      if (said >= 0) dup2(said, STDERR_FILENO);
      return run_(spec_, units, threads_, [rows](const Row& row) { return write_row(rows, row); }).has_value();
    });
    if (!child) {
      is_stopped_ = true;
      return false;
    }
    const auto read = read_rows_of(child->rows, [this](Row row) { return take(std::move(row)); });
    close(child->rows);
    if (!read) send_signal(child->process, SIGKILL);
    const bool is_done = wait_for(child->process);
    is_stopped_ = is_stopped_ || !read;
    hear(said);
    return is_done;
  }

  Result<void> take(Row row) {
    auto written = write_row(rows_, row);
    done_.push_back(std::move(row));
    return written;
  }

  void leave_out_done(std::vector<Unit>& units) {
    std::ranges::sort(done_, {}, &Row::key);
    leave_out(units, done_);
  }

  /// Passes on what a worker said, and keeps its last words.
  void hear(int said) {
    said_ = "its process ended";
    if (said < 0) return;
    std::string text;
    std::array<char, 4096> part{};
    lseek(said, 0, SEEK_SET);
    for (ssize_t size = 0; (size = read(said, part.data(), part.size())) > 0;) {
      text.append(part.data(), static_cast<std::size_t>(size));
    }
    close(said);
    static_cast<void>(write_whole(STDERR_FILENO, text));  // With nobody to hear it, it goes on.
    constexpr std::string_view mark = "internal error at ";
    const std::size_t at = text.rfind(mark);
    if (at == std::string::npos) return;
    said_ = text.substr(at + mark.size());
    said_.resize(std::min(said_.find('\n'), said_.size()));
  }

  const Spec& spec_;
  unsigned threads_;
  const RunUnits& run_;
  int rows_;
  std::vector<Row> done_;
  std::string said_;
  bool is_stopped_ = false;
};

}  // namespace

GuardedSweep::GuardedSweep(const Spec& spec, const std::vector<Unit>& units, unsigned threads, RunUnits run)
    : spec_(spec), units_(units), threads_(threads), run_(std::move(run)) {
  if (ESPALIER_ONE_PROCESS != 0) return;
  const auto child = start_child([&](int rows) { return Supervisor(spec_, threads_, run_, rows).run_all(units_); });
  if (!child) return;  // It runs here, unguarded.
  supervisor_ = child->process;
  rows_ = child->rows;
}

GuardedSweep::~GuardedSweep() {
  if (rows_ >= 0) close(rows_);
  if (supervisor_ < 0) return;
  send_signal(supervisor_, SIGKILL);
  wait_for(supervisor_);
}

Result<void> GuardedSweep::read(const OnRow& on_row) {
  if (supervisor_ < 0) return run_(spec_, units_, threads_, on_row);
  if (auto taken = read_rows_of(rows_, on_row); !taken) return taken;
  if (wait_for(std::exchange(supervisor_, -1))) return {};
  return fail(ErrorCode::unavailable, "the processes of the sweep ended before all rows were there",
              "--resume goes on with the rows that are in its file");
}

}  // namespace espalier::sweep
