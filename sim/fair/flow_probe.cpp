#include "sim/fair/flow_probe.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "sim/limits.h"

namespace espalier::sim {
namespace {

__extension__ using Weight = unsigned __int128;

/// What a flow could have alone, and what holds it back from that.
struct Bottleneck {
  std::int64_t alone = never;
  std::optional<std::uint32_t> resource;  ///< Of those that it shares, the one of which least is left.
};

Bottleneck find_bottleneck(std::span<const std::uint32_t> resources, const MaxMin& shares) {
  Bottleneck found;
  Weight least = 0;
  for (const std::uint32_t resource : resources) {
    found.alone = std::min(found.alone, shares.capacity(resource));
    Weight used = 0;
    std::size_t members = 0;
    shares.for_each_on(resource, [&](FlowIndex other) {
      used += static_cast<Weight>(shares.rate(other));
      ++members;
    });
    if (members == 1) continue;
    const auto capacity = static_cast<Weight>(shares.capacity(resource));
    const Weight left = used >= capacity ? 0 : capacity - used;
    if (found.resource && left >= least) continue;
    found.resource = resource;
    least = left;
  }
  return found;
}

}  // namespace

void FlowProbe::probe(std::span<const Probe> probes) {
  lost_.assign(probes.size(), {});
  index_.clear();
  for (std::uint32_t i = 0; i < probes.size(); ++i) {
    lost_[i].probe = probes[i];
    index_[{probes[i].run, probes[i].chunk.transfer, probes[i].chunk.chunk}] = i;
  }
}

void FlowProbe::begin(FlowIndex flow, RunId run, ChunkId chunk) {
  const auto at = index_.find({run, chunk.transfer, chunk.chunk});
  if (at != index_.end()) begun_.push_back({flow, at->second});
}

void FlowProbe::end(FlowIndex flow) {
  std::erase_if(begun_, [&](const Begun& begun) { return begun.flow == flow; });
}

void FlowProbe::settle(std::int64_t now, const MaxMin& shares, const std::function<Flow(FlowIndex)>& look_up) {
  const auto duration = static_cast<Weight>(now - settled_);
  settled_ = now;
  if (duration == 0) return;
  for (const Begun& begun : begun_) {
    Loss& loss = lost_[begun.loss];
    const Flow held = look_up(begun.flow);
    const Bottleneck bottleneck = find_bottleneck(held.resources, shares);
    const std::int64_t could = std::min(bottleneck.alone, capacities_[loss.probe.resource]);
    const auto blame = [&](std::uint32_t resource, FlowIndex other, std::int64_t rate) {
      const Flow flow = look_up(other);
      loss.weights[{resource, flow.run, flow.src, flow.dst}] += static_cast<Weight>(rate) * duration;
    };
    if (held.ahead != begun.flow) {
      loss.lost += static_cast<Weight>(could) * duration;
      blame(loss.probe.resource, held.ahead, could);
      continue;
    }
    if (!bottleneck.resource || shares.rate(begun.flow) >= could) continue;
    loss.lost += static_cast<Weight>(could - shares.rate(begun.flow)) * duration;
    shares.for_each_on(*bottleneck.resource, [&](FlowIndex other) {
      if (other != begun.flow) blame(*bottleneck.resource, other, shares.rate(other));
    });
  }
}

/// Splits a time in proportion to weights: rounded down, what is left over to the first ones. Nothing where all weights
/// are zero.
std::map<FlowProbe::Sharer, std::int64_t> FlowProbe::split(std::int64_t time, const std::map<Sharer, Weight>& weights) {
  Weight sum = 0;
  for (const auto& [sharer, weight] : weights) sum += weight;
  if (sum == 0) return {};
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
  parts.begin()->second += left;
  return parts;
}

std::vector<Blame> FlowProbe::take() const {
  std::vector<Blame> waited;
  for (std::uint32_t i = 0; i < lost_.size(); ++i) {
    const Loss& loss = lost_[i];
    std::int64_t time = loss.probe.length();
    // Undisturbed, a flow takes longer than alone for others only.
    if (is_disturbed_) {
      const auto full = static_cast<Weight>(capacities_[loss.probe.resource]);
      time = static_cast<std::int64_t>(std::min<Weight>(static_cast<Weight>(time), loss.lost / full));
    }
    for (const auto& [sharer, part] : split(time, loss.weights)) {
      if (part > 0) waited.push_back({i, sharer.resource, sharer.run, sharer.src, sharer.dst, part});
    }
  }
  return waited;
}

}  // namespace espalier::sim
