#include "planners/packing/split/demand_oracle.h"

#include <array>

#include "base/check.h"

namespace espalier::planners {

DemandOracle::DemandOracle(std::size_t vertex_count, std::span<const std::uint32_t> rank_vertices,
                           std::span<const std::int64_t> demands, WorkBudget& budget)
    : flow_(vertex_count + 1),
      budget_(budget),
      source_(static_cast<std::uint32_t>(vertex_count)),
      sinks_(rank_vertices.begin(), rank_vertices.end()) {
  for (std::size_t rank = 0; rank < demands.size(); ++rank) {
    if (demands[rank] == 0) continue;
    flow_.add_arc(source_, rank_vertices[rank], demands[rank]);
    total_ += demands[rank];
    ++first_edge_;
  }
}

std::uint32_t DemandOracle::add_edge(std::uint32_t tail, std::uint32_t head, std::int64_t capacity) {
  return flow_.add_arc(tail, head, capacity) - first_edge_;
}

void DemandOracle::add_tree(std::uint32_t vertex, std::int64_t weight, std::span<const std::uint32_t> members) {
  flow_.add_arc(source_, vertex, weight);
  for (const std::uint32_t member : members) flow_.add_arc(vertex, member, weight);
  total_ += weight;
}

std::int64_t DemandOracle::spare(std::uint32_t tail, std::uint32_t head, std::int64_t most) {
  const std::array sources{tail, source_};
  const std::int64_t flow = flow_.run(sources, std::span(&head, 1), total_ + most);
  budget_.spend(flow_.pass_count() * static_cast<std::int64_t>(flow_.arc_count()));
  ESPALIER_CHECK(flow >= total_, "the other trees can no longer be packed");
  return flow - total_;
}

std::int64_t DemandOracle::shortfall(std::size_t rank) {
  const std::int64_t flow = flow_.run(source_, sinks_[rank], total_);
  budget_.spend(flow_.pass_count() * static_cast<std::int64_t>(flow_.arc_count()));
  return total_ - flow;
}

bool DemandOracle::is_satisfied() {
  for (std::size_t tried = 0; tried < sinks_.size(); ++tried) {
    const std::size_t rank = (likeliest_ + tried) % sinks_.size();
    if (budget_.is_spent()) return false;
    if (shortfall(rank) == 0) continue;
    likeliest_ = rank;
    return false;
  }
  return true;
}

void DemandOracle::apply(std::span<const Change> changes, std::int64_t amount) {
  for (const Change& change : changes) set_capacity(change.edge, capacity(change.edge) + change.sign * amount);
}

std::int64_t DemandOracle::apply_most(std::span<const Change> changes, std::int64_t amount) {
  if (amount == 0) return 0;
  apply(changes, amount);
  const std::size_t first = likeliest_;
  for (std::size_t tried = 0; tried < sinks_.size() && amount > 0; ++tried) {
    const std::size_t rank = (first + tried) % sinks_.size();
    // A rank is short by what the smallest changed cut around it lost too much, so giving that much back repairs it.
    const std::int64_t short_of = budget_.is_spent() ? amount : shortfall(rank);
    if (short_of == 0) continue;
    ESPALIER_CHECK(short_of <= amount, "the condition did not hold before the change");
    apply(changes, -short_of);
    amount -= short_of;
    likeliest_ = rank;
  }
  return amount;
}

}  // namespace espalier::planners
