#include "sim/fair/max_min.h"

#include <algorithm>

#include "base/check.h"

namespace espalier::sim {

MaxMin::MaxMin(std::vector<std::int64_t> capacities) : resources_(capacities.size()) {
  for (std::size_t i = 0; i < capacities.size(); ++i) resources_[i].capacity = capacities[i];
}

void MaxMin::mark(std::uint32_t resource) {
  if (resources_[resource].is_dirty) return;
  resources_[resource].is_dirty = true;
  dirty_.push_back(resource);
}

void MaxMin::make_room(FlowIndex flow, std::size_t hops) {
  if (flow >= flows_.size()) flows_.resize(std::max<std::size_t>(flow + 1, 2 * flows_.size()));
  if (hops > stride_) {
    std::vector<std::uint32_t> wider(flows_.size() * hops);
    for (std::size_t i = 0; i * stride_ < places_.size(); ++i) {
      std::copy_n(places_.begin() + static_cast<std::ptrdiff_t>(i * stride_), stride_,
                  wider.begin() + static_cast<std::ptrdiff_t>(i * hops));
    }
    stride_ = hops;
    places_.swap(wider);
  }
  if (places_.size() < flows_.size() * stride_) places_.resize(flows_.size() * stride_);
}

void MaxMin::add(FlowIndex flow, std::span<const std::uint32_t> resources) {
  make_room(flow, resources.size());
  flows_[flow].resources = resources;
  flows_[flow].rate = 0;
  for (std::uint32_t hop = 0; hop < resources.size(); ++hop) {
    std::vector<Member>& members = resources_[resources[hop]].members;
    place(flow, hop) = static_cast<std::uint32_t>(members.size());
    members.push_back({flow, hop});
  }
  mark(resources.front());
}

void MaxMin::remove(FlowIndex flow) {
  const std::span<const std::uint32_t> resources = flows_[flow].resources;
  for (std::size_t hop = 0; hop < resources.size(); ++hop) {
    std::vector<Member>& members = resources_[resources[hop]].members;
    const std::uint32_t at = place(flow, hop);
    members[at] = members.back();
    place(members[at].flow, members[at].hop) = at;
    members.pop_back();
    if (!members.empty()) mark(resources[hop]);
  }
  flows_[flow].resources = {};
}

void MaxMin::set_capacity(std::uint32_t resource, std::int64_t capacity) {
  ESPALIER_CHECK(capacity >= 0, "a capacity is not negative");
  if (resources_[resource].capacity == capacity) return;
  resources_[resource].capacity = capacity;
  mark(resource);
}

std::span<const FlowIndex> MaxMin::solve() {
  changed_.clear();
  if (dirty_.empty()) return changed_;
  if (++visit_ == 0) {  // The numbers went round: none may look visited.
    for (Resource& resource : resources_) resource.visit = 0;
    for (Flow& flow : flows_) flow.visit = 0;
    visit_ = 1;
  }
  for (const std::uint32_t start : dirty_) {
    Resource& resource = resources_[start];
    resource.is_dirty = false;
    if (resource.visit == visit_ || resource.members.empty()) continue;
    if (resource.members.size() == 1 && solve_alone(resource.members.front().flow)) continue;
    find_component(start);
    fill_component();
  }
  dirty_.clear();
  return changed_;
}

void MaxMin::set_rate(FlowIndex flow, std::int64_t rate) {
  if (flows_[flow].rate == rate) return;
  flows_[flow].rate = rate;
  changed_.push_back(flow);
}

/// A flow that shares with no other gets all that its resources have.
bool MaxMin::solve_alone(FlowIndex flow) {
  const std::span<const std::uint32_t> resources = flows_[flow].resources;
  std::int64_t least = resources_[resources.front()].capacity;
  for (const std::uint32_t index : resources) {
    if (resources_[index].members.size() != 1) return false;
    least = std::min(least, resources_[index].capacity);
  }
  set_rate(flow, least);
  return true;
}

void MaxMin::find_component(std::uint32_t start) {
  component_.assign(1, start);
  resources_[start].visit = visit_;
  for (std::size_t next = 0; next < component_.size(); ++next) {
    for (const Member& member : resources_[component_[next]].members) {
      Flow& flow = flows_[member.flow];
      if (flow.visit == visit_) continue;
      flow.visit = visit_;
      flow.has_rate = false;
      for (const std::uint32_t index : flow.resources) {
        if (resources_[index].visit == visit_) continue;
        resources_[index].visit = visit_;
        component_.push_back(index);
      }
    }
  }
}

std::int64_t MaxMin::level(const Resource& resource) {
  if (resource.capacity == 0) return 0;
  return std::max<std::int64_t>(1, resource.left / resource.waiting);
}

void MaxMin::fill_component() {
  const auto above = [](const Level& a, const Level& b) { return a.value > b.value; };
  levels_.clear();
  for (const std::uint32_t index : component_) {
    Resource& resource = resources_[index];
    resource.left = resource.capacity;
    resource.waiting = static_cast<std::uint32_t>(resource.members.size());
    levels_.push_back({level(resource), index});
  }
  std::ranges::make_heap(levels_, above);
  while (!levels_.empty()) {
    // A resource's level never falls while others get their rates, so the first entry that is up to date is lowest.
    // All that have its level are taken before any is filled: filling one could lift another by what a division leaves.
    lowest_.clear();
    std::int64_t lowest = 0;
    while (!levels_.empty() && (lowest_.empty() || levels_.front().value == lowest)) {
      std::ranges::pop_heap(levels_, above);
      Level& entry = levels_.back();
      const Resource& resource = resources_[entry.resource];
      if (resource.waiting == 0) {
        levels_.pop_back();
      } else if (const std::int64_t now = level(resource); now != entry.value) {
        entry.value = now;
        std::ranges::push_heap(levels_, above);
      } else {
        lowest = now;
        lowest_.push_back(entry.resource);
        levels_.pop_back();
      }
    }
    for (const std::uint32_t index : lowest_) {
      for (const Member& member : resources_[index].members) {
        Flow& flow = flows_[member.flow];
        if (flow.has_rate) continue;
        flow.has_rate = true;
        set_rate(member.flow, lowest);
        for (const std::uint32_t passed : flow.resources) {
          resources_[passed].left = std::max<std::int64_t>(0, resources_[passed].left - lowest);
          --resources_[passed].waiting;
        }
      }
    }
  }
}

}  // namespace espalier::sim
