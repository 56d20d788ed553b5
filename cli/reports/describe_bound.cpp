#include "cli/reports/describe_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "planners/bounds/bound.h"

namespace espalier::cli {

std::optional<double> algbw_of(const Rational& time_per_byte) {
  if (time_per_byte == 0) return std::nullopt;
  return to_double(1 / time_per_byte);
}

std::string gigabytes_per_second(std::optional<double> bytes_per_second) {
  if (!bytes_per_second) return "-";
  const double rate = *bytes_per_second / 1e9;
  return rate < 10 ? fmt::format("{:.3f}", rate) : fmt::format("{:.2f}", rate);
}

void add_shares(nlohmann::ordered_json& document, const Collective& collective) {
  if (collective.has_matrix()) {
    nlohmann::ordered_json& rows = document["matrix"] = nlohmann::ordered_json::array();
    const std::size_t ranks = collective.rank_count;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      rows.push_back(std::span(collective.shares).subspan(rank * ranks, ranks));
    }
  } else if (!collective.shares.empty()) {
    document["shares"] = collective.shares;
  }
}

std::string percent(double share) {
  std::string text = fmt::format("{:.1f}", 100 * share);
  return text == "-0.0" ? "0.0" : text;
}

std::string_view floor_mark(const Bound& bound) { return bound.is_floor ? " (a floor)" : ""; }

nlohmann::ordered_json bound_json(const Bound& bound, const Collective& collective, const Topology& topology) {
  nlohmann::ordered_json document;
  document["time_per_byte"] = to_string(bound.time_per_byte);
  const auto algbw = algbw_of(bound.time_per_byte);
  if (algbw) {
    document["algbw"] = *algbw;
    document["busbw"] = to_double(collective.busbw_factor() / bound.time_per_byte);
  } else {
    document["algbw"] = nullptr;
    document["busbw"] = nullptr;
  }
  document["cut"] = nlohmann::ordered_json::array();
  for (const NodeId node : bound.cut) document["cut"].push_back(topology.node(node).id);
  document["what"] = bound.what;
  document["floor"] = bound.is_floor;
  return document;
}

nlohmann::ordered_json bound_json(const planners::PricedBound& priced, const Collective& collective,
                                  const Topology& topology) {
  nlohmann::ordered_json document = bound_json(priced.bound, collective, topology);
  document["binding"] = nlohmann::ordered_json::array();
  for (const planners::BindingClass& each : planners::binding_classes(priced.prices, topology)) {
    nlohmann::ordered_json entry = {{"class", each.name}, {"share", each.share}};
    entry["links"] = nlohmann::ordered_json::array();
    for (const LinkId link : each.links) entry["links"].push_back(topology.link_name(link));
    entry["nodes"] = nlohmann::ordered_json::array();
    for (const NodeId node : each.nodes) entry["nodes"].push_back(topology.node(node).id);
    document["binding"].push_back(std::move(entry));
  }
  return document;
}

std::string first_names(const std::vector<std::string>& names, std::size_t most, std::string_view separator) {
  const auto shown = static_cast<std::ptrdiff_t>(std::min(names.size(), most));
  std::string text = fmt::format("{}", fmt::join(names.begin(), names.begin() + shown, separator));
  if (names.size() > most) text += fmt::format(" and {} more", names.size() - most);
  return text;
}

std::string cut_text(const Bound& bound, const Topology& topology, std::size_t most) {
  std::vector<bool> is_named(topology.node_count(), false);
  for (const NodeId node : bound.cut) is_named[node.index()] = true;
  const bool others = 2 * bound.cut.size() > topology.node_count();
  if (others) is_named.flip();
  std::vector<std::string> names;
  for (std::size_t i = 0; i < is_named.size(); ++i) {
    if (is_named[i]) names.push_back(topology.node(NodeId(i)).id);
  }
  if (others && names.empty()) return "all nodes";
  return fmt::format("{}{{{}}}", others ? "all but " : "", first_names(names, most));
}

}  // namespace espalier::cli
