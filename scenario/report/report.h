#pragma once

// Tested by: tests/unit/scenario/workload/averaging_test.cpp

#include <cstdint>
#include <string>
#include <vector>

#include "scenario/workload/job.h"
#include "sim/model.h"

namespace espalier::scenario {

/// Where the time of one rank went; the four add up to the time elapsed. At each moment the first that holds counts.
struct RankTime {
  std::int64_t compute = 0;  ///< It computed. All in picoseconds.
  std::int64_t exposed = 0;  ///< It did not, and took part in a call in which all ranks of the group took part.
  std::int64_t waiting = 0;  ///< It took part in calls, and each waited for other ranks to come.
  std::int64_t idle = 0;     ///< Nothing of that.
  friend bool operator==(const RankTime&, const RankTime&) = default;
};

/// When a task ran.
struct TaskTime {
  std::int64_t start = -1;
  std::int64_t end = -1;
};

/// How a call went.
struct CallTime {
  std::int64_t first_entry = -1;  ///< The first of its ranks took part.
  std::int64_t last_entry = -1;   ///< The last of its ranks took part; of an eager message, its sender.
  std::int64_t end = -1;          ///< The last of its ranks was through; an eager message had arrived.
  std::int64_t alone = 0;         ///< How long it takes on the idle network when all ranks take part at once.
  std::int64_t exposed = 0;       ///< Exposed time of all ranks that is booked to it (RankClock).
  std::uint32_t restarts = 0;     ///< How often it was planned anew and begun again.

  /// From the last rank's entry to the end; the time that the network had for it with everybody there.
  [[nodiscard]] std::int64_t duration() const { return end - last_entry; }
};

/// A dead or revived link that was noticed.
struct Replanning {
  std::int64_t time = 0;
  LinkId link;
  bool is_dead = false;
  /// Calls that were given up and begun again around it; where several links were found dead at once, with the first
  /// of them that a call used.
  std::uint32_t restarted = 0;
};

/// What a run of a job gave.
struct JobReport {
  Picoseconds elapsed;              ///< When the last task was over.
  std::vector<RankTime> ranks;      ///< By rank of the topology.
  std::vector<TaskTime> tasks;      ///< By task.
  std::vector<CallTime> calls;      ///< By call.
  std::vector<sim::LinkUse> links;  ///< By link: what it carried and how long it was busy, background included.
  std::vector<Replanning> replannings;
  std::uint64_t flows = 0;   ///< Background flows that began.
  std::uint64_t events = 0;  ///< How many times something served a chunk.
  Bytes chunk;               ///< The largest chunk of the calls that name none; zero when all do.
  std::size_t plans = 0;     ///< Plans that were made ready, and shapes of groups among them.
  std::size_t shapes = 0;
};

/// All calls of one label.
struct CallSummary {
  std::string label;
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::uint32_t group_size = 0;  ///< Ranks of the largest group.
  std::uint64_t calls = 0;
  Bytes bytes;               ///< Their message sizes added up.
  double mean_seconds = 0;   ///< Of CallTime::duration.
  double mean_slowdown = 0;  ///< Duration over time alone; 1 where nothing is in the way.
  double worst_slowdown = 0;
  CallId worst;
  double exposed = 0;  ///< The part of the time elapsed that is exposed and booked to them, in the mean over the ranks.
};

/// By label and kind, in the order of first calls.
std::vector<CallSummary> summarize_calls(const Job& job, const JobReport& report);

/// The mean over ranks, and the ranks with the most and the least of one part of their time.
struct RankSummary {
  double compute = 0;  ///< Parts of the time elapsed, 0 to 1, in the mean over the ranks that have tasks.
  double exposed = 0;
  double waiting = 0;
  double idle = 0;
  std::size_t ranks = 0;
};
RankSummary summarize_ranks(const Job& job, const JobReport& report);

/// Links by the part of the time that they were busy, busiest first, ties by id; those that carried nothing left out.
struct LinkBusy {
  LinkId link;
  double share = 0;
};
std::vector<LinkBusy> busiest_links(const JobReport& report, std::size_t count);

}  // namespace espalier::scenario
