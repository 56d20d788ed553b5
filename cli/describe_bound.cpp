#include "cli/describe_bound.h"

#include <fmt/format.h>

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

std::string percent(double share) { return fmt::format("{:.1f}", 100 * share); }

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
  return document;
}

std::string cut_text(const Bound& bound, const Topology& topology, std::size_t most) {
  std::string text = "{";
  for (std::size_t i = 0; i < bound.cut.size() && i < most; ++i) {
    text += (i > 0 ? ", " : "") + topology.node(bound.cut[i]).id;
  }
  if (bound.cut.size() > most) text += fmt::format(", ... {} more", bound.cut.size() - most);
  return text + "}";
}

}  // namespace espalier::cli
