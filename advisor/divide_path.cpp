#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "advisor/run_limits.h"
#include "base/check.h"
#include "base/format_units.h"

namespace espalier {
namespace {

/// Adds up times by use and class, and within these by link or node.
class PathSums {
 public:
  explicit PathSums(const Topology& topology) : topology_(topology) {}

  void add(PathUse use, const sim::CriticalStep& step, std::int64_t time) {
    if (time == 0) return;
    std::string where, at;
    if (step.link.is_none()) {
      where = topology_.node(step.node).is_rank ? "ranks" : "switches";
      at = topology_.node(step.node).id;
    } else {
      const Link& link = topology_.link(step.link);
      where = link.link_class.empty() ? format_bandwidth(link.bandwidth()) : link.link_class;
      at = topology_.link_name(step.link);
    }
    Sum& sum = sums_[{use, std::move(where)}];
    sum.time += time;
    sum.parts[std::move(at)] += time;
  }

  [[nodiscard]] std::vector<PathTime> shares() const {
    std::vector<PathTime> shares;
    for (const auto& [key, sum] : sums_) {
      const auto most = std::ranges::max_element(sum.parts, {}, [](const auto& part) { return part.second; });
      shares.push_back({key.first, key.second, {sum.time}, most->first, {most->second}});
    }
    std::ranges::stable_sort(shares, [](const PathTime& a, const PathTime& b) { return a.time > b.time; });
    return shares;
  }

 private:
  struct Sum {
    std::int64_t time = 0;
    std::map<std::string, std::int64_t> parts;
  };
  const Topology& topology_;
  std::map<std::pair<PathUse, std::string>, Sum> sums_;
};

/// What sharing cost, where it was shared; what no other flow explains (jitter, rates that changed) at the slowest link
/// of the step that lost most.
void add_sharing(PathSums& sums, const sim::Report& report) {
  std::int64_t rest = 0;
  const sim::CriticalStep* most = nullptr;
  for (const sim::CriticalStep& step : report.critical_path) {
    if (step.reduces) continue;
    rest += step.queued.count;
    if (most == nullptr || step.queued > most->queued) most = &step;
  }
  for (const sim::SharedTime& shared : report.shared) {
    sim::CriticalStep place;
    place.link = shared.link;
    place.node = shared.node;
    sums.add(PathUse::sharing, place, shared.time.count);
    rest -= shared.time.count;
  }
  if (most != nullptr) sums.add(PathUse::sharing, *most, rest);
}

}  // namespace

std::string_view to_string(PathUse use) {
  switch (use) {
    case PathUse::moving: return "moving over";
    case PathUse::queueing: return "queueing for";
    case PathUse::sharing: return "sharing";
    case PathUse::latency: return "the latency of";
    case PathUse::overhead: return "messages on";
    case PathUse::reducing: return "reducing at";
    case PathUse::copying: return "in the copy engines of";
    case PathUse::in_backplane: return "in the backplane of";
  }
  ESPALIER_CHECK(false, "a use of time without a name");
}

std::vector<PathTime> divide_critical_path(const sim::Report& report, const Schedule& schedule,
                                           const Topology& topology, sim::ModelKind model) {
  const bool is_fair = model == sim::ModelKind::fair;
  PathSums sums(topology);
  if (is_fair) add_sharing(sums, report);
  for (const sim::CriticalStep& step : report.critical_path) {
    std::int64_t left = (step.end - step.begin).count;
    const auto take = [&](PathUse use, const sim::CriticalStep& place, std::int64_t most) {
      const std::int64_t taken = std::clamp<std::int64_t>(most, 0, left);
      sums.add(use, place, taken);
      left -= taken;
      return taken;
    };
    if (is_fair && !step.reduces) {
      left -= step.queued.count;
    } else {
      take(PathUse::queueing, step, step.queued.count);
    }
    take(PathUse::overhead, step, step.overhead.count);
    std::int64_t latency = step.latency.count;
    if (is_fair && latency > 0) {
      // Of the whole route, in one step.
      sim::CriticalStep place = step;
      for (const LinkId link : schedule.route(schedule.transfers[step.transfer.index()].route).links) {
        place.link = link;
        latency -= take(PathUse::latency, place, std::min(latency, topology.link(link).latency.count));
      }
    }
    take(PathUse::latency, step, latency);
    const PathUse rest = !step.link.is_none() ? PathUse::moving
                         : step.reduces       ? PathUse::reducing
                         : step.copies        ? PathUse::copying
                                              : PathUse::in_backplane;
    take(rest, step, left);
  }
  return sums.shares();
}

}  // namespace espalier
