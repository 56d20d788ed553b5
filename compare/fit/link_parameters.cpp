#include "compare/fit/link_parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/check.h"
#include "base/format_units.h"

namespace espalier::compare {
namespace {

// What a topology leaves out begins next to nothing: a cost of so many seconds, an overhead of such a part of the
// latency if that is more, a reduction at so many times the fastest link.
constexpr double smallest_start = 10e-9;
constexpr double start_share = 0.05;
constexpr double reduction_headroom = 20;
constexpr double max_rate = 1e17;  // bytes per second
constexpr double max_seconds = 1e5;

std::string group_name(const Link& link) {
  if (!link.link_class.empty()) return link.link_class;
  std::string name = "links of " + format_bandwidth(link.bandwidth()) + ", " + format_latency(link.latency);
  if (link.overhead.count > 0) name += ", overhead " + format_latency(link.overhead);
  return name;
}

double seconds_or_start(double given, double latency) {
  return given > 0 ? given : std::max(start_share * latency, smallest_start);
}

std::int64_t rounded(double value, int digits, std::int64_t least) {
  if (digits > 0 && value > 0) {
    const double power = std::pow(10.0, digits - 1 - std::floor(std::log10(value)));
    value = std::round(value * power) / power;
  }
  return std::max(static_cast<std::int64_t>(std::llround(value)), least);
}

/// A rate scaled like the group's; at least one byte per second.
Bandwidth scaled_rate(Bandwidth own, double given, double value, int digits) {
  const double rate =
      own.bytes_per_second > 0 && given > 0 ? static_cast<double>(own.bytes_per_second) * value / given : value;
  return {rounded(std::min(rate, max_rate), digits, 1)};
}

Picoseconds scaled_time(Picoseconds own, double given, double value, int digits) {
  const double seconds = own.count > 0 && given > 0 ? own.seconds() * value / given : value;
  return {rounded(std::min(seconds, max_seconds) * static_cast<double>(picoseconds_per_second), digits, 0)};
}

void add_link_groups(const Topology& topology, std::vector<Parameter>& parameters) {
  std::map<std::string, std::size_t> known;
  for (std::size_t i = 0; i < topology.link_count(); ++i) {
    const Link& link = topology.links()[i];
    const auto [group, is_new] = known.emplace(group_name(link), parameters.size());
    if (is_new) {
      const auto rate = static_cast<double>(link.bandwidth().bytes_per_second);
      const double latency = link.latency.seconds();
      const double overhead = link.overhead.seconds();
      parameters.push_back({ParameterKind::bandwidth, group->first, rate, rate, {}, {}});
      parameters.push_back({ParameterKind::latency, group->first, latency, seconds_or_start(latency, 0), {}, {}});
      parameters.push_back(
          {ParameterKind::overhead, group->first, overhead, seconds_or_start(overhead, latency), {}, {}});
    }
    for (std::size_t k = 0; k < 3; ++k) parameters[group->second + k].links.emplace_back(i);
  }
}

void add_reductions(const Topology& topology, std::vector<Parameter>& parameters) {
  double fastest = 1;
  for (const Link& link : topology.links()) {
    fastest = std::max(fastest, static_cast<double>(link.bandwidth().bytes_per_second));
  }
  std::map<std::pair<bool, std::int64_t>, Parameter> groups;
  for (std::size_t i = 0; i < topology.node_count(); ++i) {
    const Node& node = topology.nodes()[i];
    if (!node.is_rank && !node.reduction) continue;
    const std::int64_t rate = node.reduce_bandwidth.bytes_per_second;
    Parameter& group = groups[{node.is_rank, rate}];
    if (group.nodes.empty()) {
      group.kind = ParameterKind::reduce_bandwidth;
      group.group = node.is_rank ? "ranks" : "switches";
      group.given = static_cast<double>(rate);
      group.start = rate > 0 ? group.given : reduction_headroom * fastest;
    }
    group.nodes.emplace_back(i);
  }
  std::map<bool, std::size_t> of_kind;
  for (const auto& [key, group] : groups) ++of_kind[key.first];
  for (auto& [key, group] : groups) {
    if (of_kind[key.first] > 1) group.group += " of " + format_parameter(group.kind, group.given);
    parameters.push_back(std::move(group));
  }
}

}  // namespace

std::string_view to_string(ParameterKind kind) {
  switch (kind) {
    case ParameterKind::bandwidth: return "bandwidth";
    case ParameterKind::latency: return "latency";
    case ParameterKind::overhead: return "overhead";
    case ParameterKind::reduce_bandwidth: return "reduce_bandwidth";
  }
  ESPALIER_CHECK(false, "a parameter kind without a name");
}

std::string Parameter::name() const { return fmt::format("{} of {}", to_string(kind), group); }

std::vector<Parameter> find_parameters(const Topology& topology, bool with_reduction) {
  std::vector<Parameter> parameters;
  add_link_groups(topology, parameters);
  if (with_reduction) add_reductions(topology, parameters);
  return parameters;
}

Result<Topology> with_parameters(const Topology& topology, std::span<const Parameter> parameters,
                                 std::span<const double> values, int digits) {
  ESPALIER_CHECK(parameters.size() == values.size(), "a value per parameter");
  std::vector<Node> nodes(topology.nodes().begin(), topology.nodes().end());
  std::vector<Link> links(topology.links().begin(), topology.links().end());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& parameter = parameters[i];
    const double value = values[i];
    if (value == parameter.given) continue;
    for (const LinkId id : parameter.links) {
      Link& link = links[id.index()];
      switch (parameter.kind) {
        case ParameterKind::bandwidth: link.nominal = scaled_rate(link.nominal, parameter.given, value, digits); break;
        case ParameterKind::latency: link.latency = scaled_time(link.latency, parameter.given, value, digits); break;
        case ParameterKind::overhead: link.overhead = scaled_time(link.overhead, parameter.given, value, digits); break;
        case ParameterKind::reduce_bandwidth: break;
      }
    }
    for (const NodeId id : parameter.nodes) {
      Bandwidth& rate = nodes[id.index()].reduce_bandwidth;
      rate = value > 0 ? scaled_rate(rate, parameter.given, value, digits) : Bandwidth{};
    }
  }
  return Topology::make(topology.name(), std::move(nodes), std::move(links));
}

std::string format_parameter(ParameterKind kind, double value) {
  if (!(value > 0)) return "none";
  if (kind == ParameterKind::bandwidth || kind == ParameterKind::reduce_bandwidth) {
    const auto [unit, name] = value >= 1e9 ? std::pair(1e9, "GB/s") : std::pair(1e6, "MB/s");
    return fmt::format("{:.4g} {}", value / unit, name);
  }
  const auto [unit, name] = value >= 1e-3   ? std::pair(1e-3, "ms")
                            : value >= 1e-6 ? std::pair(1e-6, "us")
                                            : std::pair(1e-9, "ns");
  return fmt::format("{:.4g} {}", value / unit, name);
}

}  // namespace espalier::compare
