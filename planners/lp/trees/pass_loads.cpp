#include "planners/lp/trees/pass_loads.h"

#include <algorithm>
#include <limits>

namespace espalier::planners {

PassLoads::PassLoads(const ResourceGraph& graph) : first_{0} {
  std::vector<double> taken(graph.capacity.size(), 1);
  for (const ResourceGraph::Edge& edge : graph.edges) {
    std::vector<std::uint32_t> uses = edge.resources;
    if (graph.mirrored) {
      const auto& back = graph.edges[edge.mirror].resources;
      uses.insert(uses.end(), back.begin(), back.end());
    }
    std::ranges::sort(uses);
    for (std::size_t i = 0; i < uses.size(); ++i) {
      if (i == 0 || uses[i] != uses[i - 1]) {
        resources_.push_back(uses[i]);
      } else {
        taken[uses[i]] = 2;  // there and back
      }
    }
    first_.push_back(static_cast<std::uint32_t>(resources_.size()));
  }
  for (std::size_t r = 0; r < graph.capacity.size(); ++r) {
    capacity_.push_back(graph.capacity[r].convert_to<double>() / taken[r]);
  }
  clear(1);
}

void PassLoads::clear(double fill) {
  full_ = capacity_;
  for (double& full : full_) full *= fill;
  passes_.assign(capacity_.size(), 0);
  step_.assign(capacity_.size(), 0);
  set_sharpness(sharpness_);
}

void PassLoads::set_sharpness(unsigned power) {
  sharpness_ = power;
  for (std::uint32_t r = 0; r < step_.size(); ++r) set_step(r);
}

void PassLoads::add(std::span<const std::uint32_t> path, int sign) {
  for (const std::uint32_t edge : path) {
    for (const std::uint32_t r : resources_of(edge)) {
      passes_[r] += sign;
      set_step(r);
    }
  }
}

double PassLoads::cost(std::span<const std::uint32_t> path) const {
  double sum = 0;
  for (const std::uint32_t edge : path) sum += cost(edge);
  return sum;
}

void PassLoads::limit(double fullest, double slack) {
  most_ = full_;
  for (std::size_t r = 0; r < full_.size(); ++r) most_[r] *= passes_[r] > slack * full_[r] ? fullest : slack;
}

bool PassLoads::fits(std::uint32_t edge) const {
  return std::ranges::all_of(resources_of(edge), [&](std::uint32_t r) { return passes_[r] + 1 <= most_[r]; });
}

std::size_t PassLoads::count_fuller(double fullness) const {
  std::size_t count = 0;
  for (std::size_t r = 0; r < full_.size(); ++r) count += passes_[r] >= fullness * full_[r] ? 1U : 0U;
  return count;
}

double PassLoads::fullest() const {
  double most = 0;
  for (std::size_t r = 0; r < full_.size(); ++r) most = std::max(most, passes_[r] / full_[r]);
  return most;
}

double PassLoads::room(std::uint32_t edge, double fill) const {
  double least = std::numeric_limits<double>::infinity();
  for (const std::uint32_t r : resources_of(edge)) least = std::min(least, capacity_[r] * fill);
  return least;
}

double PassLoads::power_of(double fullness) const {
  for (unsigned power = sharpness_; power > 1; power /= 2) fullness *= fullness;
  return fullness;
}

}  // namespace espalier::planners
