#include "sweep/run_sweep.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <thread>

#include "sweep/unit_run.h"

namespace espalier::sweep {
namespace {

/// What one thread does next.
struct Task {
  enum class Kind : std::uint8_t { open, plan, run };
  Kind kind = Kind::open;
  std::size_t unit = 0;
  std::size_t number = 0;  ///< Of the planner or of the key.
};

/// The tasks of a sweep, dealt to threads: rows first, since they let plans be forgotten, then plans, then new units.
class Foreman {
 public:
  Foreman(const Spec& spec, const std::vector<Unit>& units, const OnRow& on_row)
      : spec_(spec), units_(units), on_row_(on_row), open_(units.size()) {}

  Result<void> run(unsigned threads) {
    std::vector<std::thread> others;
    for (unsigned i = 1; i < threads; ++i) {
      try {
        others.emplace_back([this] { work(); });
      } catch (const std::system_error&) {
        break;  // Fewer threads give the same rows.
      }
    }
    work();
    for (std::thread& other : others) other.join();
    return result_;
  }

 private:
  struct Open {
    std::unique_ptr<UnitRun> run;
    std::size_t left = 0;  ///< Plans, then rows, that are not done.
  };

  void work() {
    std::unique_lock lock(mutex_);
    while (result_) {
      const auto task = next_task();
      if (task) {
        ++busy_;
        lock.unlock();
        std::optional<Row> row = perform(*task);
        lock.lock();
        --busy_;
        complete(*task, std::move(row));
        changed_.notify_all();
      } else if (busy_ == 0) {
        return;
      } else {
        changed_.wait(lock);
      }
    }
  }

  std::optional<Task> next_task() {
    for (std::deque<Task>* queue : {&runs_, &plans_}) {
      if (queue->empty()) continue;
      const Task task = queue->front();
      queue->pop_front();
      return task;
    }
    if (next_unit_ == units_.size()) return std::nullopt;
    const Task task{Task::Kind::open, next_unit_++, 0};
    open_[task.unit].run = std::make_unique<UnitRun>(spec_, units_[task.unit]);
    return task;
  }

  /// Without the lock.
  std::optional<Row> perform(const Task& task) {
    UnitRun& unit = *open_[task.unit].run;
    switch (task.kind) {
      case Task::Kind::open: unit.open(); return std::nullopt;
      case Task::Kind::plan: unit.plan(task.number); return std::nullopt;
      case Task::Kind::run: return unit.run(units_[task.unit].keys[task.number]);
    }
    return std::nullopt;
  }

  void complete(const Task& task, std::optional<Row> row) {
    Open& open = open_[task.unit];
    if (task.kind == Task::Kind::open) {
      open.left = open.run->planner_count();
      for (std::size_t i = 0; i < open.left; ++i) plans_.push_back({Task::Kind::plan, task.unit, i});
      if (open.left == 0) begin_rows(task.unit);
      return;
    }
    --open.left;
    if (task.kind == Task::Kind::plan) {
      if (open.left == 0) begin_rows(task.unit);
      return;
    }
    if (open.left == 0) open.run.reset();
    if (auto taken = on_row_(std::move(*row)); !taken && result_) result_ = taken;
  }

  void begin_rows(std::size_t unit) {
    Open& open = open_[unit];
    open.run->seal();
    open.left = units_[unit].keys.size();
    for (std::size_t i = 0; i < open.left; ++i) runs_.push_back({Task::Kind::run, unit, i});
  }

  const Spec& spec_;
  const std::vector<Unit>& units_;
  const OnRow& on_row_;
  std::mutex mutex_;  // of all below, but for what `perform` uses
  std::condition_variable changed_;
  std::vector<Open> open_;
  std::deque<Task> runs_, plans_;
  std::size_t next_unit_ = 0;
  std::size_t busy_ = 0;
  Result<void> result_;
};

}  // namespace

Result<void> run_sweep(const Spec& spec, const std::vector<Unit>& units, unsigned threads, const OnRow& on_row) {
  return Foreman(spec, units, on_row).run(threads);
}

std::uint64_t count_rows(const std::vector<Unit>& units) {
  std::uint64_t count = 0;
  for (const Unit& unit : units) count += unit.keys.size();
  return count;
}

void leave_out(std::vector<Unit>& units, const std::vector<Row>& rows) {
  for (Unit& unit : units) {
    std::erase_if(unit.keys, [&](const Key& key) { return std::ranges::binary_search(rows, key, {}, &Row::key); });
  }
  std::erase_if(units, [](const Unit& unit) { return unit.keys.empty(); });
}

}  // namespace espalier::sweep
