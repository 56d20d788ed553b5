#include "probe/probe_plan.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>

namespace espalier::probe {

/// Collects pairs that do not get into each other's way.
class ProbePlan::RoundBuilder {
 public:
  RoundBuilder(const Hops& hops, std::span<const PairPath> paths) : hops_(hops), paths_(paths), load_(hops.count()) {}

  [[nodiscard]] bool fits(std::uint32_t index) const {
    const PairPath& path = paths_[index];
    if (busy_.contains(path.from) || busy_.contains(path.to)) return false;
    constexpr double rounding = 1 + 1e-6;
    return std::ranges::all_of(path.shares, [&](const HopShare& share) {
      return load_[share.hop] + share.part * path.rate <= rounding * hops_[share.hop].rate;
    });
  }
  void add(std::uint32_t index) {
    const PairPath& path = paths_[index];
    busy_.insert({path.from, path.to});
    for (const HopShare& share : path.shares) load_[share.hop] += share.part * path.rate;
    round_.push_back(index);
  }
  [[nodiscard]] const Round& round() const { return round_; }

 private:
  const Hops& hops_;
  std::span<const PairPath> paths_;
  std::vector<double> load_;
  std::set<Rank> busy_;
  Round round_;
};

ProbePlan::ProbePlan(const Topology& topology, PlanLimits limits)
    : limits_(limits), hops_(topology), paths_(find_pair_paths(topology, hops_)), findings_(topology, hops_, paths_) {
  plan_first_rounds();
}

/// The pair first that crosses most hops which no pair crossed before, until all that can be crossed are.
void ProbePlan::plan_first_rounds() {
  std::vector<bool> is_crossed(hops_.count());
  const auto news_of = [&](std::uint32_t index) {
    return std::ranges::count_if(paths_[index].shares, [&](const HopShare& share) { return !is_crossed[share.hop]; });
  };
  while (first_.size() < limits_.max_rounds) {
    std::vector<std::pair<std::ptrdiff_t, std::uint32_t>> order;
    for (std::uint32_t i = 0; i < paths_.size(); ++i) {
      if (const auto news = news_of(i); news > 0) order.emplace_back(-news, i);
    }
    if (order.empty()) return;
    std::ranges::sort(order);
    RoundBuilder round(hops_, paths_);
    for (const auto& [negated, index] : order) {
      if (!round.fits(index) || news_of(index) == 0) continue;
      round.add(index);
      for (const HopShare& share : paths_[index].shares) is_crossed[share.hop] = true;
    }
    first_.push_back(round.round());
  }
}

std::optional<std::uint32_t> ProbePlan::find_parting(const Suspect& suspect, const std::set<std::uint32_t>& avoid,
                                                     const RoundBuilder& round) const {
  std::optional<std::uint32_t> best;
  auto best_distance = std::numeric_limits<std::ptrdiff_t>::max();
  const auto half = static_cast<std::ptrdiff_t>(suspect.hops.size());
  for (std::uint32_t i = 0; i < paths_.size(); ++i) {
    const PairPath& path = paths_[i];
    std::ptrdiff_t crossed = 0;
    bool may_clear = true;
    for (const HopShare& share : path.shares) {
      if (std::ranges::find(suspect.hops, share.hop) != suspect.hops.end()) {
        ++crossed;
      } else if (avoid.contains(share.hop)) {
        may_clear = false;
      }
    }
    const std::ptrdiff_t distance = std::abs(2 * crossed - half);
    if (!may_clear || crossed == 0 || crossed == half || distance >= best_distance) continue;
    if (tried_.contains(i) || !round.fits(i)) continue;
    const auto usual = findings_.usual_part(path.kind);
    if (!usual) continue;
    may_clear = std::ranges::all_of(path.shares, [&](const HopShare& share) {
      if (std::ranges::find(suspect.hops, share.hop) == suspect.hops.end()) return true;
      double slow = 0;
      for (const std::uint32_t flow : suspect.flows) {
        const MeasuredFlow& measured = findings_.flows()[flow];
        slow = std::max(slow, Findings::load(paths_[measured.path], share.hop, measured.result.rate));
      }
      return share.part * path.rate * *usual > Findings::clearance * slow;
    });
    if (!may_clear) continue;
    best = i;
    best_distance = distance;
  }
  return best;
}

Round ProbePlan::plan_parting_round() {
  const std::vector<Suspect> suspects = findings_.suspects();
  std::set<std::uint32_t> all;
  for (const Suspect& suspect : suspects) all.insert(suspect.hops.begin(), suspect.hops.end());
  RoundBuilder round(hops_, paths_);
  for (const Suspect& suspect : suspects) {
    constexpr int pairs_per_suspect = 2;
    for (int i = 0; i < pairs_per_suspect; ++i) {
      const auto parting = find_parting(suspect, all, round);
      if (!parting) break;
      round.add(*parting);
      tried_.insert(*parting);
    }
  }
  for (const Suspect& suspect : suspects) {
    if (suspect.is_confirmed) continue;
    const std::uint32_t path = findings_.flows()[suspect.flows.front()].path;
    if (repeated_.contains(path) || !round.fits(path)) continue;
    round.add(path);
    repeated_.insert(path);
  }
  return round.round();
}

std::optional<Round> ProbePlan::next() {
  if (findings_.rounds() >= limits_.max_rounds) return std::nullopt;
  current_ = findings_.rounds() < first_.size() ? first_[findings_.rounds()] : plan_parting_round();
  return current_.empty() ? std::nullopt : std::optional(current_);
}

void ProbePlan::note(std::span<const FlowResult> results) { findings_.add(current_, results); }

}  // namespace espalier::probe
