#include "forecast/sources/count_plans.h"

#include <algorithm>
#include <list>
#include <memory>
#include <mutex>

#include "planners/chunking.h"
#include "planners/planner.h"

namespace espalier::forecast {
namespace {

constexpr std::size_t max_kept = 64;
/// The part of the direct time that a plan has to gain: what predictions by loads alone do not tell apart.
constexpr double min_part = 0.1;
/// Seconds that two more hops through a host's network stack take, about.
constexpr double two_hops = 200e-6;
/// Seconds of planning, proving and compiling for each block, about (docs/traffic-matrices.md).
constexpr double planning_per_block = 4e-6;
/// Of a message, at most; and as far as senders are ahead. TCP's streams share cables unevenly: 16 MiB over two boxes
/// (docs/traffic-matrices.md) took 2.2 to 2.9 s in chunks of 64 KiB and 2.7 to 2.9 s in smaller ones; 4 MiB took 0.50
/// to 0.63 s in chunks of up to 16 KiB and 0.53 to 0.67 s in larger ones. Further ahead was no better.
constexpr std::int64_t max_chunks = 256;
constexpr std::uint32_t rounds_ahead = 2;

class CountPlans {
 public:
  explicit CountPlans(Topology topology) : topology_(std::move(topology)), network_(topology_) {
    min_rate_ = topology_.links().empty() ? 0 : INT64_MAX;
    for (const Link& link : topology_.links()) {
      min_rate_ = std::min(min_rate_, link.bandwidth().bytes_per_second);
    }
  }

  Result<SourcedSchedule> plan(const Collective& collective, Bytes size) {
    const std::scoped_lock lock(mutex_);
    const auto known = std::ranges::find_if(
        kept_, [&](const Kept& kept) { return kept.size == size && kept.collective == collective; });
    if (known != kept_.end()) {
      kept_.splice(kept_.begin(), kept_, known);
    } else {
      kept_.push_front({collective, size, plan_anew(collective, size)});
      if (kept_.size() > max_kept) kept_.pop_back();
    }
    const Kept& kept = kept_.front();
    return SourcedSchedule{kept.plan.schedule, kept.plan.chunk, false, rounds_ahead};
  }

 private:
  /// No schedule: direct messages.
  struct Plan {
    std::shared_ptr<const Schedule> schedule = nullptr;
    Bytes chunk{};
  };

  [[nodiscard]] Plan plan_anew(const Collective& collective, Bytes size) const {
    const auto blocks = static_cast<double>(collective.rank_count) * collective.rank_count;
    const double all_over_slowest =
        static_cast<double>(size.count) * collective.rank_count / static_cast<double>(min_rate_);
    if (min_rate_ <= 0 || all_over_slowest < two_hops + blocks * planning_per_block) return {};
    const auto direct = planned("flat", collective);
    auto balanced = planned("balance", collective);
    if (!direct || !balanced) return {};
    const double direct_seconds = planners::ChunkModel(*direct, topology_).pipelined_time(size);
    const planners::ChunkModel model(*balanced, topology_);
    const double gain = direct_seconds - model.pipelined_time(size);
    if (gain < std::max(two_hops, min_part * direct_seconds)) return {};
    return {std::make_shared<const Schedule>(*std::move(balanced)),
            std::max(model.choose(size), Bytes{size.count / max_chunks})};
  }

  [[nodiscard]] Result<Schedule> planned(std::string_view name, const Collective& collective) const {
    const auto planner = planners::find_planner(name);
    if (!planner) return tl::unexpected(planner.error());
    return planners::plan_unbounded(network_, collective, *planner);
  }

  struct Kept {
    Collective collective;
    Bytes size;
    Plan plan;
  };

  Topology topology_;
  planners::BundledNetwork network_;
  std::int64_t min_rate_ = 0;
  std::mutex mutex_;
  std::list<Kept> kept_;  ///< The last used first.
};

}  // namespace

ScheduleSource plans_for_counts(Topology topology) {
  return [plans = std::make_shared<CountPlans>(std::move(topology))](const Collective& collective, Bytes size) {
    return plans->plan(collective, size);
  };
}

}  // namespace espalier::forecast
