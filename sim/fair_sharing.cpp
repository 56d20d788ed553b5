#include "sim/fair_sharing.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "base/check.h"
#include "sim/fair_rates.h"
#include "sim/max_min.h"

namespace espalier::sim {
namespace {

__extension__ using Weight = unsigned __int128;

/// A flow of the run: when it was on its way, and which.
struct Interval {
  TransferId transfer;
  std::uint32_t chunk = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

struct FlowEvent {
  std::int64_t time = 0;
  FlowIndex flow = 0;
  bool begins = false;
};

/// Who held back, and over what.
struct Sharer {
  std::uint32_t resource = 0;
  RouteId route;
  auto operator<=>(const Sharer&) const = default;
};

/// Splits a time in proportion to weights: rounded down, what is left over to the first ones.
/// Requires: weights that are not all zero.
std::map<Sharer, std::int64_t> split(std::int64_t time, const std::map<Sharer, Weight>& weights) {
  Weight sum = 0;
  for (const auto& [sharer, weight] : weights) sum += weight;
  // Proportions of 62 bits are enough, and times of 62 bits then fit.
  int shift = 0;
  while ((sum >> shift) >> 62U != 0) ++shift;
  const auto whole = std::max<Weight>(sum >> shift, 1);
  std::map<Sharer, std::int64_t> parts;
  std::int64_t left = time;
  for (const auto& [sharer, weight] : weights) {
    const auto part = static_cast<std::int64_t>(static_cast<Weight>(time) * (weight >> shift) / whole);
    parts[sharer] = part;
    left -= part;
  }
  for (auto& [sharer, part] : parts) {
    const std::int64_t more = std::min<std::int64_t>(left, 1);
    part += more;
    left -= more;
  }
  if (!parts.empty()) parts.begin()->second += left;
  return parts;
}

class Replay {
 public:
  Replay(const Program& program, const Network& network, const Conditions& conditions)
      : program_(program),
        network_(network),
        scale_(pick_rate_scale(network)),
        capacities_(scaled_capacities(network, scale_)),
        shares_(capacities_),
        changes_(conditions.changes) {
    std::ranges::stable_sort(changes_, {}, &RateChange::at);
  }

  void read(const Chunking& chunking, const History& history) {
    ChunkTrace trace;
    const std::vector<Transfer>& transfers = program_.schedule().transfers;
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      const std::uint32_t chunks = chunking.pieces(transfers[i]).count;
      for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
        history.trace({TransferId(i), chunk}, trace);
        const ChunkTrace::Step& first = trace.steps.front();
        if (first.busy == 0) continue;
        const auto flow = static_cast<FlowIndex>(flows_.size());
        flows_.push_back({TransferId(i), chunk, first.entry, first.entry + first.busy});
        events_.push_back({first.entry, flow, true});
        events_.push_back({first.entry + first.busy, flow, false});
      }
    }
    std::ranges::sort(events_, {}, [](const FlowEvent& event) { return std::pair(event.time, event.flow); });
  }

  /// What each step of the path is to be divided by.
  std::vector<std::map<Sharer, Weight>> weigh(const std::vector<CriticalStep>& path) {
    watch(path);
    std::vector<std::map<Sharer, Weight>> weights(path.size());
    std::size_t change = 0;
    for (std::size_t i = 0; i < events_.size();) {
      std::int64_t now = events_[i].time;
      if (change < changes_.size()) now = std::min(now, changes_[change].at.count);
      for (; i < events_.size() && events_[i].time == now; ++i) handle(events_[i]);
      for (; change < changes_.size() && changes_[change].at.count <= now; ++change) take(changes_[change]);
      static_cast<void>(shares_.solve());
      if (i == events_.size()) break;
      std::int64_t until = events_[i].time;
      if (change < changes_.size()) until = std::min(until, changes_[change].at.count);
      for (const FlowIndex flow : watched_now_) weigh(flow, until - now, weights[step_of_.at(flow)]);
    }
    return weights;
  }

 private:
  [[nodiscard]] std::span<const std::uint32_t> resources_of(FlowIndex flow) const {
    const Path& path = program_.path(program_.schedule().transfers[flows_[flow].transfer.index()]);
    return std::span(program_.steps()).subspan(path.begin, path.end - path.begin);
  }

  /// Which flows the steps are that were held back.
  void watch(const std::vector<CriticalStep>& path) {
    for (std::size_t i = 0; i < path.size(); ++i) {
      if (path[i].reduces || path[i].queued.count == 0) continue;
      const std::pair key(path[i].transfer, path[i].chunk);
      const auto at = std::ranges::lower_bound(
          flows_, key, {}, [](const Interval& flow) { return std::pair(flow.transfer, flow.chunk); });
      ESPALIER_CHECK(at != flows_.end() && std::pair(at->transfer, at->chunk) == key, "what was held back has flowed");
      step_of_[static_cast<FlowIndex>(at - flows_.begin())] = i;
    }
  }

  void handle(const FlowEvent& event) {
    if (event.begins) {
      shares_.add(event.flow, resources_of(event.flow));
      if (step_of_.contains(event.flow)) watched_now_.push_back(event.flow);
    } else {
      shares_.remove(event.flow);
      std::erase(watched_now_, event.flow);
    }
  }

  void take(const RateChange& change) {
    const std::int64_t capacity = scaled_capacity(network_, scale_, change);
    shares_.set_capacity(change.link.value(), capacity);
    capacities_[change.link.index()] = capacity;
  }

  /// The resource that holds a flow back now: of those that it shares, the one of which least is left. Nothing when it
  /// has as much as it would have alone.
  [[nodiscard]] std::optional<std::uint32_t> find_bottleneck(FlowIndex flow) const {
    std::optional<std::uint32_t> bottleneck;
    std::int64_t least = 0;
    std::int64_t alone = never;
    for (const std::uint32_t resource : resources_of(flow)) {
      alone = std::min(alone, capacities_[resource]);
      Weight used = 0;
      std::size_t members = 0;
      shares_.for_each_on(resource, [&](FlowIndex other) {
        used += static_cast<Weight>(shares_.rate(other));
        ++members;
      });
      if (members == 1) continue;
      const auto capacity = static_cast<Weight>(capacities_[resource]);
      const std::int64_t left = used >= capacity ? 0 : static_cast<std::int64_t>(capacity - used);
      if (bottleneck && left >= least) continue;
      bottleneck = resource;
      least = left;
    }
    return shares_.rate(flow) >= alone ? std::nullopt : bottleneck;
  }

  void weigh(FlowIndex flow, std::int64_t duration, std::map<Sharer, Weight>& weights) const {
    const auto bottleneck = find_bottleneck(flow);
    if (!bottleneck || duration == 0) return;
    shares_.for_each_on(*bottleneck, [&](FlowIndex other) {
      if (other == flow) return;
      const RouteId route = program_.schedule().transfers[flows_[other].transfer.index()].route;
      weights[{*bottleneck, route}] += static_cast<Weight>(shares_.rate(other)) * static_cast<Weight>(duration);
    });
  }

  const Program& program_;
  const Network& network_;
  std::int64_t scale_;
  std::vector<std::int64_t> capacities_;  // now
  MaxMin shares_;
  std::vector<RateChange> changes_;  // by time
  std::vector<Interval> flows_;      // by transfer and chunk
  std::vector<FlowEvent> events_;    // by time
  std::map<FlowIndex, std::size_t> step_of_;
  std::vector<FlowIndex> watched_now_;
};

}  // namespace

std::vector<SharedTime> find_shared_times(const Program& program, const Chunking& chunking, const Network& network,
                                          const Conditions& conditions, const History& history,
                                          const std::vector<CriticalStep>& path) {
  Replay replay(program, network, conditions);
  replay.read(chunking, history);
  const auto weights = replay.weigh(path);
  std::map<Sharer, std::int64_t> sums;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (weights[i].empty()) continue;
    for (const auto& [sharer, time] : split(path[i].queued.count, weights[i])) sums[sharer] += time;
  }
  std::vector<SharedTime> shared;
  for (const auto& [sharer, time] : sums) {
    const Route route = program.schedule().route(sharer.route);
    if (time == 0) continue;
    shared.push_back({network.link(sharer.resource), network.node(sharer.resource), route.src, route.dst, {time}});
  }
  std::ranges::stable_sort(shared, [](const SharedTime& a, const SharedTime& b) { return a.time > b.time; });
  return shared;
}

}  // namespace espalier::sim
