#include "probe/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace espalier::probe {
namespace {

constexpr std::size_t min_flows_of_kind = 3;
constexpr double min_shortfall = 0.12;  ///< A flow that is closer to its kind is not slow.
constexpr double max_shortfall = 0.5;   ///< However noisy a kind is, one at half its rate is.
constexpr double deviations = 4;
constexpr double normal_deviations = 1.4826;  ///< Of a normal distribution's median absolute deviation.
constexpr double nearly_all = 0.95;

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// Of the two middle flows the faster one: one slow flow of four does not lower what is usual.
double usual_of(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

double Findings::load(const PairPath& path, std::uint32_t hop, double rate) {
  for (const HopShare& share : path.shares) {
    if (share.hop == hop) return share.part * rate;
  }
  return 0;
}

void Findings::add(std::span<const std::uint32_t> round, std::span<const FlowResult> results) {
  std::map<std::uint32_t, std::pair<double, double>> loads;  // measured, described
  for (std::size_t i = 0; i < round.size(); ++i) {
    flows_.push_back({round[i], rounds_, results[i]});
    const PairPath& path = paths_[round[i]];
    for (const HopShare& share : path.shares) {
      loads[share.hop].first += share.part * results[i].rate;
      loads[share.hop].second += share.part * path.rate;
    }
  }
  for (const auto& [hop, load] : loads) {
    carried_[hop] = std::max(carried_[hop], load.first);
    const bool limits = load.second >= nearly_all * (*hops_)[hop].rate || load.first > (*hops_)[hop].rate;
    if (limits) limit_[hop] = std::max(limit_[hop], load.first);
  }
  ++rounds_;
}

std::optional<double> Findings::measured_rate(std::uint32_t hop) const {
  return limit_[hop] > 0 ? std::optional(limit_[hop]) : std::nullopt;
}

std::vector<KindFinding> Findings::kinds() const {
  std::vector<KindFinding> found;
  std::map<std::string, std::size_t> places;
  std::vector<std::vector<double>> rates, latencies;
  for (const MeasuredFlow& flow : flows_) {
    const PairPath& path = paths_[flow.path];
    const auto [place, is_new] = places.emplace(path.kind, found.size());
    if (is_new) {
      found.push_back({path.kind, path.rate});
      rates.emplace_back();
      latencies.emplace_back();
    }
    rates[place->second].push_back(flow.result.rate);
    if (flow.result.latency > 0) latencies[place->second].push_back(flow.result.latency);
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    found[i].flows = rates[i].size();
    found[i].slowest = std::ranges::min(rates[i]);
    found[i].fastest = std::ranges::max(rates[i]);
    found[i].latency = median_of(latencies[i]);
    found[i].rate = median_of(rates[i]);
  }
  return found;
}

std::optional<double> Findings::usual_part(const std::string& kind) const {
  std::vector<double> parts;
  for (const MeasuredFlow& flow : flows_) {
    const PairPath& path = paths_[flow.path];
    if (path.kind == kind) parts.push_back(flow.result.rate / path.rate);
  }
  return parts.size() < min_flows_of_kind ? std::nullopt : std::optional(usual_of(std::move(parts)));
}

bool Findings::is_slow(const MeasuredFlow& flow) const {
  const PairPath& path = paths_[flow.path];
  const auto usual = usual_part(path.kind);
  if (!usual) return false;
  std::vector<double> apart;
  for (const MeasuredFlow& other : flows_) {
    if (paths_[other.path].kind != path.kind) continue;
    apart.push_back(std::abs(other.result.rate / paths_[other.path].rate / *usual - 1));
  }
  const double shortfall =
      std::clamp(deviations * normal_deviations * median_of(std::move(apart)), min_shortfall, max_shortfall);
  return flow.result.rate / path.rate < (1 - shortfall) * *usual;
}

std::vector<std::uint32_t> Findings::candidates(const MeasuredFlow& flow) const {
  std::vector<std::uint32_t> left;
  for (const HopShare& share : paths_[flow.path].shares) {
    if (carried_[share.hop] <= clearance * share.part * flow.result.rate) left.push_back(share.hop);
  }
  return left;
}

/// Hops that the same slow flows cross.
struct Findings::Group {
  std::set<std::uint32_t> flows;
  std::vector<std::uint32_t> hops;
};

std::vector<Suspect> Findings::suspects() const {
  std::map<std::uint32_t, std::set<std::uint32_t>> flows_of_hop;
  std::set<std::uint32_t> unexplained;
  std::map<std::string, bool> known;
  for (std::uint32_t i = 0; i < flows_.size(); ++i) {
    if (!is_slow(flows_[i])) continue;
    for (const std::uint32_t hop : candidates(flows_[i])) {
      flows_of_hop[hop].insert(i);
      unexplained.insert(i);
    }
  }
  std::vector<Suspect> found;
  while (!unexplained.empty()) {
    std::map<std::set<std::uint32_t>, std::vector<std::uint32_t>> groups;
    for (const auto& [hop, flows] : flows_of_hop) {
      std::set<std::uint32_t> open;
      std::ranges::set_intersection(flows, unexplained, std::inserter(open, open.end()));
      if (!open.empty()) groups[open].push_back(hop);
    }
    const auto best = std::ranges::max_element(groups, {}, [](const auto& group) { return group.first.size(); });
    Suspect suspect;
    suspect.hops = best->second;
    suspect.flows.assign(best->first.begin(), best->first.end());
    std::vector<double> parts;
    std::set<std::uint32_t> rounds;
    for (const std::uint32_t flow : suspect.flows) {
      const PairPath& path = paths_[flows_[flow].path];
      parts.push_back(flows_[flow].result.rate / path.rate / usual_part(path.kind).value_or(1));
      rounds.insert(flows_[flow].round);
      unexplained.erase(flow);
    }
    suspect.left = median_of(std::move(parts));
    suspect.is_confirmed = rounds.size() > 1;
    name(suspect);
    found.push_back(std::move(suspect));
  }
  std::ranges::stable_sort(found, {}, &Suspect::left);
  return found;
}

void Findings::name(Suspect& suspect) const {
  std::map<NodeId, std::size_t> touched;
  std::set<std::pair<NodeId, NodeId>> ways;
  for (const std::uint32_t index : suspect.hops) {
    const Hop& hop = (*hops_)[index];
    for (const NodeId node : std::set{hop.tail, hop.head}) ++touched[node];
    ways.emplace(hop.tail, hop.head);
  }
  for (const auto& [node, count] : touched) {
    const bool is_backplane = ways.contains({node, node});
    if (is_backplane || (count == suspect.hops.size() && count > 1)) suspect.parts.push_back(topology_->node(node).id);
  }
  for (const auto& [tail, head] : ways) {
    if (tail == head) continue;
    const bool both = ways.contains({head, tail});
    if (both && head < tail) continue;
    suspect.parts.push_back(
        fmt::format("{}{}{}", topology_->node(tail).id, both ? '-' : '>', topology_->node(head).id));
  }
}

}  // namespace espalier::probe
