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

/// Whether the step after a chunk's last one waited only until the chunk had left its source, not until it arrived.
bool ends_with_departure(const Schedule& schedule, const sim::CriticalStep& last, const sim::CriticalStep* next) {
  if (next == nullptr || last.link.is_none()) return false;
  const Transfer& transfer = schedule.transfers[last.transfer.index()];
  const Route route = schedule.route(transfer.route);
  if (last.link != route.links.front()) return false;
  if (route.links.size() > 1) return true;
  const Transfer& after = schedule.transfers[next->transfer.index()];
  const Route following = schedule.route(after.route);
  const bool same_lane =
      after.channel() == transfer.channel() && following.src == route.src && following.dst == route.dst;
  return same_lane || (following.dst == route.src && following.src != route.dst);
}

std::int64_t overhead_of(const Route& route, const Topology& topology) {
  std::int64_t overhead = 0;
  for (const LinkId link : route.links) overhead += topology.link(link).overhead.count;
  return overhead;
}

}  // namespace

std::string_view to_string(PathUse use) {
  switch (use) {
    case PathUse::moving: return "moving over";
    case PathUse::queueing: return "queueing for";
    case PathUse::latency: return "the latency of";
    case PathUse::overhead: return "messages on";
    case PathUse::reducing: return "reducing at";
    case PathUse::copying: return "in the copy engines of";
    case PathUse::in_backplane: return "in the backplane of";
  }
  ESPALIER_CHECK(false, "a use of time without a name");
}

std::vector<PathTime> divide_critical_path(const sim::Report& report, const Schedule& schedule,
                                           const Topology& topology) {
  PathSums sums(topology);
  const std::vector<sim::CriticalStep>& path = report.critical_path;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const sim::CriticalStep& step = path[i];
    const auto is_same_chunk = [&](std::size_t other) {
      return path[other].transfer == step.transfer && path[other].chunk == step.chunk;
    };
    std::int64_t left = (step.end - step.begin).count;
    const auto take = [&](PathUse use, std::int64_t most) {
      const std::int64_t taken = std::clamp<std::int64_t>(most, 0, left);
      sums.add(use, step, taken);
      left -= taken;
    };
    take(PathUse::queueing, step.queued.count);
    // The sender's overhead is in the first step of a chunk's way.
    const bool is_first = i == 0 || !is_same_chunk(i - 1);
    if (is_first && !step.reduces) {
      take(PathUse::overhead, overhead_of(schedule.route(schedule.transfers[step.transfer.index()].route), topology));
    }
    if (step.link.is_none()) {
      take(step.reduces ? PathUse::reducing : step.copies ? PathUse::copying : PathUse::in_backplane, left);
      continue;
    }
    const bool is_last = i + 1 == path.size() || !is_same_chunk(i + 1);
    const sim::CriticalStep* const next = i + 1 < path.size() ? &path[i + 1] : nullptr;
    const bool departs = is_last && ends_with_departure(schedule, step, next);
    if (!departs) take(PathUse::latency, topology.link(step.link).latency.count);
    take(PathUse::moving, left);
  }
  return sums.shares();
}

}  // namespace espalier
