#include "sweep/guarded/guarded_sweep.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string_view>
#include <utility>

#include "base/send_signal.h"
#include "sweep/guarded/worker.h"
#include "sweep/row_text.h"

namespace espalier::sweep {
namespace {

constexpr RowStyle piped{RowFormat::json_lines, true};

Result<void> write_row(int file, const Row& row) { return write_whole(file, row_text(row, piped)); }

/// Hands over every row of some lines.
Result<void> take_rows(std::string_view lines, const OnRow& on_row) {
  auto read = read_rows(lines, piped.format, "a worker of the sweep");
  if (!read) return tl::unexpected(read.error());
  for (Row& row : read->rows) {
    if (auto taken = on_row(std::move(row)); !taken) return taken;
  }
  return {};
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
    WorkerEnd end = run_worker(
        [&](int rows) {
          return run_(spec_, units, threads_, [rows](const Row& row) { return write_row(rows, row); }).has_value();
        },
        [this](std::string_view lines) { return take_rows(lines, [this](Row row) { return take(std::move(row)); }); });
    is_stopped_ = is_stopped_ || end.is_stopped;
    said_ = std::move(end.said);
    return end.is_done && !end.is_stopped;
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
  if (!may_use_workers()) return;
  const auto child = start_worker([&](int rows) { return Supervisor(spec_, threads_, run_, rows).run_all(units_); });
  if (!child) return;  // It runs here, unguarded.
  supervisor_ = child->process;
  rows_ = child->lines;
}

GuardedSweep::~GuardedSweep() {
  if (rows_ >= 0) close(rows_);
  if (supervisor_ < 0) return;
  send_signal(supervisor_, SIGKILL);
  wait_for(supervisor_);
}

Result<void> GuardedSweep::read(const OnRow& on_row) {
  if (supervisor_ < 0) return run_(spec_, units_, threads_, on_row);
  if (auto taken = read_lines_of(rows_, [&](std::string_view lines) { return take_rows(lines, on_row); }); !taken)
    return taken;
  if (wait_for(std::exchange(supervisor_, -1))) return {};
  return fail(ErrorCode::unavailable, "the processes of the sweep ended before all rows were there",
              "--resume goes on with the rows that are in its file");
}

}  // namespace espalier::sweep
