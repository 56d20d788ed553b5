#include "lab/scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>

#include "base/format_units.h"

namespace espalier::lab {
namespace {

constexpr std::size_t max_digits = 15;

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= max_digits &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

BigInteger whole(std::string_view digits) {
  BigInteger value = 0;
  for (const char digit : digits) value = value * 10 + (digit - '0');
  return value;
}

std::int64_t rounded_down(const Rational& value) {
  const BigInteger quotient = numerator(value) / denominator(value);
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  return quotient > most ? most : static_cast<std::int64_t>(quotient);
}

/// Counts links or nodes with a property that the lab leaves out.
template <class Things, class HasIt>
void note(std::vector<std::string>& left_out, const Things& things, const HasIt& has_it, std::string_view what) {
  const auto count = std::ranges::count_if(things, has_it);
  if (count > 0) left_out.push_back(fmt::format("{} ({})", what, count));
}

std::vector<std::string> what_is_left_out(const Topology& topology, bool delays_packets) {
  std::vector<std::string> left_out;
  const auto links = topology.links();
  const auto nodes = topology.nodes();
  if (!delays_packets) {
    note(
        left_out, links, [](const Link& link) { return link.latency.count > 0; }, "latency of links");
  }
  note(
      left_out, links, [](const Link& link) { return link.overhead.count > 0; }, "overhead of links");
  note(
      left_out, nodes, [](const Node& node) { return node.bandwidth.bytes_per_second > 0; }, "backplanes of nodes");
  note(
      left_out, nodes, [](const Node& node) { return node.reduce_bandwidth.bytes_per_second > 0; },
      "reduce_bandwidth of nodes");
  note(
      left_out, nodes, [](const Node& node) { return node.multicast || node.reduction; },
      "copying and adding in switches");
  return left_out;
}

}  // namespace

Result<Rational> parse_scale(std::string_view text) {
  const auto refuse = [&](std::string_view why) {
    return fail(ErrorCode::invalid_input, fmt::format("--scale: '{}' {}", text, why),
                "write auto, a number such as 0.01, or a fraction such as 1/128");
  };
  Rational factor = 0;
  if (const std::size_t slash = text.find('/'); slash != std::string_view::npos) {
    const std::string_view above = text.substr(0, slash);
    const std::string_view below = text.substr(slash + 1);
    if (!is_number(above) || !is_number(below) || whole(below) == 0) return refuse("is not a fraction");
    factor = Rational(whole(above), whole(below));
  } else {
    const std::size_t point = std::min(text.find('.'), text.size());
    const std::string_view before = text.substr(0, point);
    const std::string_view behind = point < text.size() ? text.substr(point + 1) : std::string_view();
    if (!is_number(before) || (point < text.size() && !is_number(behind))) return refuse("is not a number");
    BigInteger unit = 1;
    for (std::size_t digit = 0; digit < behind.size(); ++digit) unit *= 10;
    factor = Rational(whole(before) * unit + whole(behind), unit);
  }
  if (factor <= 0 || factor > 1) return refuse("is not above 0 and at most 1");
  return factor;
}

std::string format_scale(const Rational& factor) {
  BigInteger unit = 1;
  for (std::size_t digits = 0; digits <= max_digits; ++digits, unit *= 10) {
    const Rational scaled = factor * unit;
    if (denominator(scaled) != 1) continue;
    std::string text = numerator(scaled).str();
    if (digits == 0) return text;
    if (text.size() <= digits) text.insert(0, digits + 1 - text.size(), '0');
    return text.insert(text.size() - digits, ".");
  }
  return to_string(factor);
}

Result<ScaledTopology> scale_topology(const Topology& topology, const Rational& factor, bool delays_packets) {
  std::vector<Link> links(topology.links().begin(), topology.links().end());
  for (std::size_t i = 0; i < links.size(); ++i) {
    Link& link = links[i];
    link.nominal = {rounded_down(factor * link.bandwidth().bytes_per_second)};
    link.efficiency_ppm = 1'000'000;
    link.latency = {delays_packets ? rounded_down(Rational(link.latency.count) / factor) : 0};
    link.overhead = {};
    if (link.nominal < slowest_link) {
      return fail(ErrorCode::infeasible,
                  fmt::format("scaled by {}, link {} would carry {} bytes/s; a lab's links carry at least {}",
                              format_scale(factor), topology.link_name(LinkId(i)), link.nominal.bytes_per_second,
                              format_bandwidth(slowest_link)),
                  "give a larger --scale, if the machine can carry it");
    }
  }
  std::vector<Node> nodes(topology.nodes().begin(), topology.nodes().end());
  for (Node& node : nodes) {
    node.bandwidth = {};
    node.reduce_bandwidth = {};
    node.multicast = false;
    node.reduction = false;
  }
  auto scaled =
      Topology::make(fmt::format("{} x {}", topology.name(), format_scale(factor)), std::move(nodes), std::move(links));
  if (!scaled) return tl::unexpected(scaled.error());
  return ScaledTopology{std::move(*scaled), factor, what_is_left_out(topology, delays_packets)};
}

}  // namespace espalier::lab
