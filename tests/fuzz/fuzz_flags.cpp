// Any text is read as any value of a flag without harm: units, lists, parts of a machine, parameters. The text is cut
// at its line breaks; each line goes to every reader.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/format_units.h"
#include "base/parse_units.h"
#include "base/printable.h"
#include "cli/flags/algorithm_flags.h"
#include "cli/flags/flag_values.h"
#include "cli/flags/sizes.h"
#include "lab/scale.h"
#include "scenario/workload/flop_rate.h"
#include "sim/core/endpoints.h"
#include "sweep/shard.h"
#include "topology/names/group.h"
#include "topology/topology_builder.h"
#include "topology/without.h"
#include "topology/yaml/read_topology.h"

namespace {

using namespace espalier;

template <class T>
void check(const Result<T>& read) {
  ESPALIER_CHECK(read.has_value() || !read.error().message.empty(), "an error says what is wrong");
}

Topology make_star() {
  TopologyBuilder builder;
  const Wire wire{.bandwidth = {1'000'000'000}, .latency = {1'000'000}, .link_class = ""};
  const NodeId hub = builder.forwarder(NodeKind::switch_node, "hub");
  for (int i = 0; i < 4; ++i) builder.cable(builder.rank("gpu" + std::to_string(i)), hub, wire);
  return *std::move(builder).build("star");
}

void read_units(const std::string& text) {
  if (const auto size = parse_size(text)) {
    ESPALIER_CHECK(*size <= max_message_size && parse_size(format_size(*size)).value_or(Bytes{-1}) == *size,
                   "a size is read back");
  }
  if (const auto rate = parse_bandwidth(text)) {
    ESPALIER_CHECK(parse_bandwidth(format_bandwidth(*rate)).value_or(Bandwidth{-1}) == *rate, "a rate is read back");
  }
  if (const auto time = parse_duration(text)) {
    ESPALIER_CHECK(*time <= max_duration && parse_duration(format_latency(*time)).value_or(Picoseconds{-1}) == *time,
                   "a time is read back");
  }
  check(parse_latency(text));
  check(parse_part(text));
  check(cli::parse_part("--flag", text));
  check(cli::parse_message_size(text));
  check(scenario::parse_flop_rate(text));
  check(sim::parse_payload(text));
  check(sim::parse_copy_engines(text));
  check(lab::parse_scale(text));
  check(sweep::parse_shard(text));
  check(cli::parse_algorithms(text));
}

void read_sizes(const std::string& text) {
  cli::SizeFlags single, smallest, factor, step;
  single.single = smallest.begin = factor.factor = step.step = text;
  for (const cli::SizeFlags* flags : {&single, &smallest, &factor, &step}) {
    check(cli::parse_sizes(*flags, ElementType::float32));
  }
}

void read_parts(const Topology& star, const std::string& text) {
  check(find_rank_nodes(star, text));
  const std::vector<std::string> names{text};
  check(without(star, names));
  static constexpr std::string_view compact =
      "espalier: 1\nname: c\nparameters: {n: 2}\n"
      "nodes: [{id: \"gpu[0-{n}]\", kind: gpu}]\nlinks: [{between: [\"gpu[*]\", \"gpu[*]\"], bandwidth: 1 GB/s}]\n";
  constexpr ExpansionLimits limits{.nodes = 100, .links = 1'000, .steps = 10'000};
  const TopologyReading reading = read_topology_text(compact, "fuzz", std::nullopt, {{"n", text}}, limits);
  ESPALIER_CHECK(reading.topology.has_value() || has_errors(reading.diagnostics), "either a topology or errors");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Topology star = make_star();
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  constexpr int max_lines = 4;
  for (int line = 0; line < max_lines && !rest.empty(); ++line) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string text(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    read_units(text);
    read_sizes(text);
    read_parts(star, text);
    const std::string shown = printable_line(text);
    ESPALIER_CHECK(printable_line(shown) == shown, "what is printable stays as it is");
  }
  return 0;
}
