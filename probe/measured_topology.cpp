#include "probe/measured_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/counted.h"
#include "base/format_units.h"
#include "base/parse_units.h"

namespace espalier::probe {
namespace {

/// Measured over described, of one class of links.
struct ClassRatio {
  std::vector<double> parts;
  std::vector<double> rates;  ///< Of hops, in bytes per second.

  [[nodiscard]] double middle() const {
    std::vector<double> sorted = parts;
    std::ranges::sort(sorted);
    return sorted[sorted.size() / 2];
  }
};

/// As a value of four digits, which is more than a measurement has.
std::int64_t rounded(double value) {
  if (value < 1) return 1;
  const double unit = std::pow(10.0, std::max(0.0, std::floor(std::log10(value)) - 3));
  return static_cast<std::int64_t>(std::llround(value / unit) * static_cast<std::int64_t>(unit));
}

const Link& first_link(const Topology& topology, const Hop& hop) { return topology.link(hop.links.front()); }

std::map<std::string, ClassRatio> bandwidth_ratios(const Topology& topology, const Hops& hops, const Findings& findings,
                                                   const std::set<std::uint32_t>& bad) {
  std::map<std::string, ClassRatio> ratios;
  for (std::uint32_t i = 0; i < hops.count(); ++i) {
    const auto rate = findings.measured_rate(i);
    if (!rate || hops[i].links.empty() || bad.contains(i)) continue;
    ClassRatio& ratio = ratios[first_link(topology, hops[i]).link_class];
    ratio.parts.push_back(*rate / hops[i].rate);
    ratio.rates.push_back(*rate);
  }
  return ratios;
}

std::map<std::string, ClassRatio> latency_ratios(const Topology& topology, const Hops& hops,
                                                 std::span<const PairPath> paths, const Findings& findings) {
  std::map<std::string, ClassRatio> ratios;
  for (const MeasuredFlow& flow : findings.flows()) {
    const PairPath& path = paths[flow.path];
    if (!(flow.result.latency > 0) || !(path.latency > 0)) continue;
    std::map<std::string, double> shares;
    for (const HopShare& share : path.shares) {
      if (hops[share.hop].links.empty()) continue;
      const Link& link = first_link(topology, hops[share.hop]);
      shares[link.link_class] += share.part * link.latency.seconds();
    }
    const auto most = std::ranges::max_element(shares, {}, [](const auto& share) { return share.second; });
    ratios[most->first].parts.push_back(flow.result.latency / path.latency);
  }
  return ratios;
}

}  // namespace

Result<MeasuredMachine> measured_topology(const Topology& topology, const Hops& hops, std::span<const PairPath> paths,
                                          const Findings& findings) {
  std::map<std::uint32_t, const Suspect*> bad;
  const std::vector<Suspect> suspects = findings.suspects();
  std::set<std::uint32_t> bad_hops;
  for (const Suspect& suspect : suspects) {
    for (const std::uint32_t hop : suspect.hops) {
      bad.emplace(hop, &suspect);
      bad_hops.insert(hop);
    }
  }
  const auto bandwidths = bandwidth_ratios(topology, hops, findings, bad_hops);
  const auto latencies = latency_ratios(topology, hops, paths, findings);

  std::vector<Link> links(topology.links().begin(), topology.links().end());
  std::set<ProvenanceRow> rows;
  for (std::size_t i = 0; i < links.size(); ++i) {
    Link& link = links[i];
    const std::uint32_t hop = hops.of(LinkId(i));
    const auto described = static_cast<double>(link.bandwidth().bytes_per_second);
    const auto ratio = bandwidths.find(link.link_class);
    const auto suspect = bad.find(hop);
    if (suspect != bad.end() && findings.carried(hop) > 0) {
      const auto strands = static_cast<double>(hops[hop].links.size());
      link.nominal = {rounded(std::min(described, findings.carried(hop) / strands))};
      link.efficiency_ppm = 1'000'000;
      rows.insert(
          {link.link_class, "bandwidth", format_bandwidth(link.nominal), Origin::measured,
           fmt::format("probe: {} at {:.0f} % of others of its kind; described {}", suspect->second->parts.front(),
                       100 * suspect->second->left, format_bandwidth({static_cast<std::int64_t>(described)}))});
    } else if (ratio != bandwidths.end()) {
      link.nominal = {rounded(described * ratio->second.middle())};
      link.efficiency_ppm = 1'000'000;
      const auto [least, most] = std::ranges::minmax(ratio->second.parts);
      rows.insert({link.link_class, "bandwidth", format_bandwidth(link.nominal), Origin::measured,
                   fmt::format("probe: {:.0f} % of what is described, {:.0f} to {:.0f} % over {}; described {}",
                               100 * ratio->second.middle(), 100 * least, 100 * most,
                               counted(ratio->second.parts.size(), "hop"),
                               format_bandwidth({static_cast<std::int64_t>(described)}))});
    }
    const auto latency = latencies.find(link.link_class);
    if (latency == latencies.end()) continue;
    const Picoseconds before = link.latency;
    link.latency = {std::min(max_latency.count, rounded(static_cast<double>(before.count) * latency->second.middle()))};
    const auto [least, most] = std::ranges::minmax(latency->second.parts);
    rows.insert({link.link_class, "latency", format_latency(link.latency), Origin::measured,
                 fmt::format("probe: {:.2f} times what is described, {:.2f} to {:.2f} over {}; described {}",
                             latency->second.middle(), least, most, counted(latency->second.parts.size(), "pair"),
                             format_latency(before))});
  }
  auto made = Topology::make(topology.name(), {topology.nodes().begin(), topology.nodes().end()}, std::move(links));
  if (!made) return tl::unexpected(made.error());
  return MeasuredMachine{*std::move(made), {rows.begin(), rows.end()}};
}

}  // namespace espalier::probe
